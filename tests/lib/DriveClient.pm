package DriveClient;
# A client of the drive API that writes its requests byte by byte, so that a test can stop in the middle, ask for
# "100 Continue", send chunks, or go on sending after it was refused. One connection a request.
use strict;
use warnings;
use Failed;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;

my $json = JSON::PP->new->utf8->canonical->boolean_values(0, 1);

# new(url => 'http://127.0.0.1:3200', email => …, password => …): signs in.
sub new {
    my ($class, %opt) = @_;
    my ($host, $port) = $opt{url} =~ m{^http://([^/:]+):(\d+)} or die "url $opt{url}";
    my $self = bless { host => $host, port => $port }, $class;
    my $r = $self->json('POST', '/api/login', { email => $opt{email}, password => $opt{password} // 'load-test-password' });
    ($self->{token}) = ($r->{headers}{'set-cookie'} // '') =~ /token=([^;]+)/ or die "sign in: $r->{status} $r->{body}";
    return $self;
}

sub connect {
    my ($self) = @_;
    local $SIG{PIPE} = 'IGNORE';
    return IO::Socket::INET->new(PeerAddr => $self->{host}, PeerPort => $self->{port}, Proto => 'tcp') // die "connect: $!";
}

# The request's head; headers is a list of "Name: value".
sub head {
    my ($self, $method, $path, @headers) = @_;
    push @headers, "Authorization: Bearer $self->{token}" if $self->{token};
    return join "\r\n", "$method $path HTTP/1.1", "Host: $self->{host}:$self->{port}", 'X-Requested-With: XMLHttpRequest',
        'Connection: close', @headers, '', '';
}

# Sends as much as the other side takes; false when it has closed.
sub put {
    my ($sock, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    for (my $at = 0; $at < length $bytes;) {
        my $n = syswrite $sock, $bytes, 65536, $at;
        return 0 if !$n;
        $at += $n;
    }
    return 1;
}

# Reads an answer up to its end. {status, headers, body, continued, cut}: continued when a 100 came first, cut when the
# connection ended before the body did.
sub answer {
    my ($sock, %opt) = @_;
    my ($text, %r) = ('');
    my $sel = IO::Select->new($sock);
    my $more = sub {
        return 0 if !$sel->can_read($opt{timeout} // 300);
        return sysread($sock, $text, 1 << 20, length $text) ? 1 : 0;
    };
    while (1) {
        while ($text !~ /\r\n\r\n/) { $more->() or return { status => 0, cut => 1, body => $text } }
        $text =~ s/^HTTP\/1\.1 (\d+)(.*?\r\n)\r\n//s or die "not HTTP: $text";
        ($r{status}, my $head) = ($1, $2);
        if ($r{status} == 100) { $r{continued} = 1; return \%r if $opt{continue}; next }
        $r{headers}{ lc $1 } = $2 while $head =~ /^([^:\r\n]+):[ \t]*([^\r\n]*)\r\n/mg;
        last;
    }
    my $h = $r{headers};
    if ($opt{head} || $r{status} =~ /^(?:204|304)$/) { $text = '' }
    elsif (defined $h->{'content-length'}) {
        while (length $text < $h->{'content-length'}) { $more->() or do { $r{cut} = 1; last } }
    } elsif (($h->{'transfer-encoding'} // '') eq 'chunked') {
        my $body = '';
        while (1) {
            while ($text !~ /^[0-9a-f]+\r\n/) { $more->() or do { $r{cut} = 1; last } }
            last if $r{cut} || $text !~ s/^([0-9a-f]+)\r\n//;
            my $n = hex $1;
            while (length $text < $n + 2) { $more->() or do { $r{cut} = 1; last } }
            last if $r{cut};
            $body .= substr $text, 0, $n, '';
            substr $text, 0, 2, '';
            last if $n == 0;
        }
        $text = $body;
    } else { 1 while $more->() }
    $r{body} = $text;
    $r{json} = eval { $json->decode($text) } if ($h->{'content-type'} // '') =~ m{^application/json};
    Failed::answered("answer: $r{status}", $text);
    return \%r;
}

sub request {
    my ($self, $method, $path, $headers, $body, %opt) = @_;
    my $sock = $self->connect;
    put($sock, $self->head($method, $path, @{ $headers // [] }, defined $body ? 'Content-Length: ' . length $body : ()) . ($body // ''));
    return answer($sock, head => $method eq 'HEAD', %opt);
}

sub get { my ($self, $path, @headers) = @_; return $self->request('GET', $path, \@headers) }
sub json { my ($self, $method, $path, $data) = @_; return $self->request($method, $path, ['Content-Type: application/json'], $json->encode($data // {})) }

my $boundary = '----drivesim-test-7b1c';
# The framing around a file's content: (content type header, what stands before, what stands behind). fields are pairs;
# those of behind come after the file. last => '' leaves out the last CRLF.
sub framing {
    my (%f) = @_;
    my $field = sub { my ($n, $v) = @_; return qq{--$boundary\r\nContent-Disposition: form-data; name="$n"\r\n\r\n$v\r\n} };
    my ($before, $behind) = ('', '');
    for (my @l = @{ $f{fields} // [] }; @l;) { $before .= $field->(splice @l, 0, 2) }
    for (my @l = @{ $f{behind} // [] }; @l;) { $behind .= $field->(splice @l, 0, 2) }
    my $part = $f{part} // 'file';
    my $type = $f{type} ? "Content-Type: $f{type}\r\n" : '';
    $before .= qq{--$boundary\r\nContent-Disposition: form-data; name="$part"; filename="$f{name}"\r\n$type\r\n};
    return ("Content-Type: multipart/form-data; boundary=$boundary", $before, "\r\n$behind--$boundary--" . ($f{last} // "\r\n"));
}

# upload(name => …, content => …, path => …, fields => […], chunked => 1, expect => 1, headers => […])
sub upload {
    my ($self, %f) = @_;
    my ($type, $before, $behind) = framing(%f);
    my $sock = $self->connect;
    my $body = $before . $f{content} . $behind;
    my @headers = ($type, @{ $f{headers} // [] });
    push @headers, $f{chunked} ? 'Transfer-Encoding: chunked' : 'Content-Length: ' . length $body;
    push @headers, 'Expect: 100-continue' if $f{expect};
    put($sock, $self->head('POST', $f{path} // '/api/files/upload', @headers));
    if ($f{expect}) {
        my $r = answer($sock, continue => 1);
        return $r if $r->{status} != 100;
    }
    if ($f{chunked}) {
        for (my $at = 0; $at < length $body;) {
            my $n = 70000 < length($body) - $at ? 70000 : length($body) - $at;
            put($sock, sprintf("%x\r\n", $n) . substr($body, $at, $n) . "\r\n") or last;
            $at += $n;
        }
        put($sock, "0\r\n\r\n");
    } else { put($sock, $body) }
    return answer($sock);
}

# Several files: files => [{name, content, path?, id?, time?}, …]
sub bulk {
    my ($self, %f) = @_;
    my $body = '';
    my $field = sub { my ($n, $v) = @_; $body .= qq{--$boundary\r\nContent-Disposition: form-data; name="$n"\r\n\r\n$v\r\n} };
    $field->('parentId', $f{parent}) if $f{parent};
    for my $file (@{ $f{files} }) {
        $field->('relativePaths', $file->{path} // '');
        $field->('clientIds', $file->{id} // '');
        $field->('lastModifiedTimes', $file->{time} // '');
    }
    for my $file (@{ $f{files} }) {
        $body .= qq{--$boundary\r\nContent-Disposition: form-data; name="files"; filename="$file->{name}"\r\n\r\n$file->{content}\r\n};
    }
    $body .= "--$boundary--\r\n";
    return $self->request('POST', '/api/files/upload/bulk', ["Content-Type: multipart/form-data; boundary=$boundary"], $body);
}

# Waits for a job's end and gives back its last answer.
sub job {
    my ($self, $r, $timeout) = @_;
    my $id = $r->{json}{jobId} // die "no job: $r->{status} $r->{body}";
    for (my $end = time + ($timeout // 600); time < $end; select undef, undef, undef, 0.03) {
        my $state = $self->get("/api/files/jobs/$id");
        return $state if $state->{status} != 202;
    }
    die "job $id does not end";
}

1;
