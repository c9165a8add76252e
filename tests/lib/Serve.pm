package Serve;
# A reference server of a test's own on the services of a Sim::Stack, and HTTP by hand: what clients must not do, no client
# library does. Every wait has an end.
use strict;
use warnings;
use Exporter 'import';
use Failed;
use IO::Socket::INET;
use JSON::PP;
use Sim;
use Time::HiRes qw(time);

our @EXPORT = qw(head answer rest try_write cpu_ms resident_kib);

# Serve->new($stack, '--option', …) starts it on a free port and waits until it listens.
sub new {
    my ($class, $stack, @args) = @_;
    my $self = bless { stack => $stack, owner => $$ }, $class;
    my $wrap = ref $args[0] eq 'ARRAY' ? shift @args : undef;
    my %keys = (JWT_SECRET => 'a secret that only tests know', FILE_ENCRYPTION_KEY => 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=');
    my %env = (%keys, %{ ref $args[0] eq 'HASH' ? shift @args : {} });
    $self->{run} = $stack->start(['serve', '--port', 0, @args], env => \%env, ($wrap ? (wrap => $wrap) : ()));
    sim_await($self->{run}, sub { $_[0]{out} =~ m{listening on http://127\.0\.0\.1:(\d+)\n} });
    ($self->{port}) = $self->{run}{out} =~ m{listening on http://127\.0\.0\.1:(\d+)\n} or die "no server: $self->{run}{err}";
    return $self;
}

sub port { return $_[0]{port} }
sub url { return "http://127.0.0.1:$_[0]{port}" }
sub pid { return $_[0]{run}{pid} }

# Ends it by SIGTERM; returns the finished handle of Sim (status, out, err, seconds).
sub stop {
    my ($self, $signal) = @_;
    kill $signal // 'TERM', $self->{run}{pid};
    return sim_finish(delete $self->{run});
}

sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner} || !$self->{run};
    local ($?, $@);
    kill 'KILL', $self->{run}{pid};
    waitpid $self->{run}{pid}, 0;
    return;
}

sub connect {
    my ($self) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 60) or die "connect: $@";
    setsockopt $s, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
    binmode $s;
    return $s;
}

# One call on a connection of its own: {status, headers, body, json}. body: text, or a structure that becomes JSON.
sub call {
    my ($self, $method, $path, $body, %headers) = @_;
    my $s = $self->connect;
    if (ref $body) {
        $headers{'Content-Type'} //= 'application/json';
        $body = JSON::PP->new->utf8->encode($body);
    }
    $headers{'X-Requested-With'} //= 'XMLHttpRequest';
    $headers{'Content-Length'} //= length $body if defined $body;
    print {$s} head("$method $path", %headers, Connection => 'close'), $body // '';
    return answer($s);
}

# Signs in; makes the account when there is none yet. Returns the token.
sub token {
    my ($self, $email, $password) = @_;
    my %who = (email => $email, password => $password // 'load-test-password');
    my $r = $self->call('POST', '/api/login', \%who);
    $r = $self->call('POST', '/api/signup', \%who) if $r->{status} == 401;
    return ($r->{headers}{'set-cookie'} // '') =~ /^token=([^;]+)/ ? $1 : die "no token for $email: $r->{status} $r->{body}";
}

# Connects the stack's bucket, as its administrator.
sub connect_store {
    my ($self, $token) = @_;
    my $env = $self->{stack}->env;
    my $version = $self->call('GET', '/api/user/storage-config', undef, $self->auth($token))->{json}{version};
    my $r = $self->call('PUT', '/api/user/storage-config', { provider => 's3', forcePathStyle => JSON::PP::true, version => $version,
        endpoint => $env->{TMA_LOAD_S3_ENDPOINT}, bucket => $env->{TMA_LOAD_S3_BUCKET},
        accessKeyId => $env->{TMA_LOAD_S3_ACCESS_KEY}, secretAccessKey => $env->{TMA_LOAD_S3_SECRET_KEY} }, $self->auth($token));
    die "the bucket cannot be connected: $r->{status} $r->{body}" if $r->{status} != 200;
    return;
}

sub auth { my (undef, $token) = @_; return (Cookie => "token=$token") }

# The value of one metric.
sub metric {
    my ($self, $name) = @_;
    return $self->call('GET', '/metrics')->{body} =~ /^\Q$name\E (\S+)$/m ? $1 : undef;
}

# A request's head; "GET /path" and header pairs. Host and HTTP/1.1 unless given.
sub head {
    my ($line, @headers) = @_;
    $line .= ' HTTP/1.1' if $line !~ m{ HTTP/};
    my $text = "$line\r\n";
    $text .= "Host: test\r\n" if !grep { lc $_ eq 'host' } @headers;
    while (my ($name, $value) = splice @headers, 0, 2) { $text .= "$name: $value\r\n" }
    return "$text\r\n";
}

# Reads at least one more byte; false at the end, on a reset, or after $timeout seconds.
sub more {
    my ($s, $buf, $timeout) = @_;
    $$buf //= '';
    my $bits = '';
    vec($bits, fileno $s, 1) = 1;
    return 0 if !select $bits, undef, undef, $timeout;
    return sysread $s, $$buf, 65536, length $$buf;
}

# One answer: {status, headers, body, json}. What follows it stays in ${*$s}{rest}.
sub answer {
    my ($s, $timeout) = @_;
    my $buf = delete ${*$s}{rest} // '';
    while ($buf !~ /\r\n\r\n/) { more($s, \$buf, $timeout // 60) or do { Failed::answered('no answer', $buf); return { status => 0, headers => {}, body => $buf } } }
    my ($top, $rest) = split /\r\n\r\n/, $buf, 2;
    my ($line, @lines) = split /\r\n/, $top;
    my %r = (status => (split ' ', $line)[1], headers => { map { /^([^:]+):\s*(.*)$/ ? (lc $1, $2) : () } @lines });
    if ($r{status} == 100) { ${*$s}{rest} = $rest; return { %r, body => '' } }
    if (defined(my $n = $r{headers}{'content-length'})) {
        while (length $rest < $n) { more($s, \$rest, $timeout // 60) or last }
        $r{body} = substr $rest, 0, $n, '';
        ${*$s}{rest} = $rest;
    }
    elsif (($r{headers}{'transfer-encoding'} // '') eq 'chunked') {
        $r{body} = '';
        while (1) {
            while ($rest !~ /^([0-9a-f]+)\r\n/) { more($s, \$rest, $timeout // 60) or return { %r, cut => 1 } }
            my $n = hex $1;
            my $need = length($1) + 2 + $n + 2;
            while (length $rest < $need) { more($s, \$rest, $timeout // 60) or return { %r, cut => 1 } }
            $r{body} .= substr $rest, length($1) + 2, $n;
            substr $rest, 0, $need, '';
            last if !$n;
        }
        ${*$s}{rest} = $rest;
    }
    else { $r{body} = $rest . rest($s, $timeout) }
    $r{json} = eval { JSON::PP->new->utf8->allow_nonref->decode($r{body}) };
    Failed::answered("answer: $line", $r{body});
    return \%r;
}

# Everything until the other side closes; ${*$s}{ended} tells whether it did.
sub rest {
    my ($s, $timeout) = @_;
    my $buf = delete ${*$s}{rest} // '';
    my $n;
    1 while $n = more($s, \$buf, $timeout // 60);
    ${*$s}{ended} = defined $n && $n eq '0' && !$!{ECONNRESET};
    return $buf;
}

# Writes blindly until done or the other side refuses; never reads. Returns how many bytes went.
sub try_write {
    my ($s, $text) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $at = 0;
    while ($at < length $text) {
        my $n = syswrite $s, $text, 65536, $at;
        last if !defined $n;
        $at += $n;
    }
    return $at;
}

sub cpu_ms {
    my ($pid) = @_;
    my @f = split ' ', slurp("/proc/$pid/stat") =~ s/^.*\) //r;
    return ($f[11] + $f[12]) * 10;
}

sub resident_kib { my ($pid) = @_; return slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }

1;
