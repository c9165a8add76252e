package Drive;
# A plain client of the Drive API for tests that look at single answers: one login, HTTP::Tiny, no retries.
use strict;
use warnings;
use Failed;
use HTTP::Tiny;
use JSON::PP;

my $json = JSON::PP->new->utf8->canonical->allow_nonref;

# Drive->sign_up($url, $email) or Drive->sign_in: a session of that login.
sub sign_up { my ($class, $url, $email) = @_; return $class->enter($url, 'signup', { email => $email, password => 'password1', name => $email }) }
sub sign_in { my ($class, $url, $email) = @_; return $class->enter($url, 'login', { email => $email, password => 'password1' }) }

sub enter {
    my ($class, $url, $how, $body) = @_;
    my $self = bless { url => $url, http => HTTP::Tiny->new(timeout => 300, keep_alive => 1) }, $class;
    my $r = $self->call(POST => "/api/$how", $body);
    die "$how: $r->{status} $r->{text}" if $r->{status} != 200;
    ($self->{token}) = ($r->{headers}{'set-cookie'} // '') =~ /token=([^;]+)/ or die "$how: no cookie";
    return $self;
}

# The first user of a fresh stack, its administrator, with the stack's bucket connected.
sub administrator {
    my ($class, $stack) = @_;
    my $env = $stack->env;
    my $self = $class->sign_up($env->{TMA_URL}, 'owner@load.test');
    my $r = $self->call(PUT => '/api/user/storage-config', { provider => 's3', forcePathStyle => JSON::PP::true, version => 0,
        endpoint => $env->{TMA_LOAD_S3_ENDPOINT}, bucket => $env->{TMA_LOAD_S3_BUCKET},
        accessKeyId => $env->{TMA_LOAD_S3_ACCESS_KEY}, secretAccessKey => $env->{TMA_LOAD_S3_SECRET_KEY} });
    die "the bucket cannot be connected: $r->{status} $r->{text}" if $r->{status} != 200;
    return $self;
}

# {status, json, text, headers}; body: a reference is sent as JSON.
sub call {
    my ($self, $method, $path, $body, %headers) = @_;
    my %h = ('X-Requested-With' => 'XMLHttpRequest', %headers);
    $h{Authorization} = "Bearer $self->{token}" if $self->{token};
    $h{'Content-Type'} //= 'application/json' if ref $body;
    my $r = $self->{http}->request($method, $self->{url} . $path, { headers => \%h, defined $body ? (content => ref $body ? $json->encode($body) : $body) : () });
    my $value = eval { $json->decode($r->{content}) };
    Failed::answered("$method $path: $r->{status}", $r->{content});
    return { status => $r->{status}, text => $r->{content}, json => $value, headers => $r->{headers} };
}

sub get  { my ($self, $path, %h) = @_; return $self->call(GET => $path, undef, %h) }
sub post { my ($self, $path, $body, %h) = @_; return $self->call(POST => $path, $body // {}, %h) }

sub multipart {
    my ($self, $path, $field, $name, $content, $fields, %h) = @_;
    my $b = 'boundary-of-the-test';
    my $body = join '', map { qq{--$b\r\nContent-Disposition: form-data; name="$_"\r\n\r\n$fields->{$_}\r\n} } sort keys %{ $fields // {} };
    $body .= qq{--$b\r\nContent-Disposition: form-data; name="$field"; filename="$name"\r\nContent-Type: text/plain\r\n\r\n$content\r\n--$b--\r\n};
    return $self->call(POST => $path, $body, 'Content-Type' => "multipart/form-data; boundary=$b", %h);
}
sub upload  { my ($self, $parent, $name, $content) = @_; return $self->multipart('/api/files/upload', 'file', $name, $content, { defined $parent ? (parentId => $parent) : () }) }
sub replace { my ($self, $id, $content, %h) = @_; return $self->multipart("/api/files/$id/replace", 'file', 'x', $content, {}, %h) }

sub folder { my ($self, $name, $parent) = @_; return $self->post('/api/files/folder', { name => $name, parentId => $parent })->{json}{id} }

# All pages of a listing; dies when a page fails.
sub list {
    my ($self, $parent, $more) = @_;
    my (@all, $cursor);
    do {
        my $r = $self->get('/api/files?' . ($more // '') . ($parent ? "&parentId=$parent" : '') . ($cursor ? "&cursor=$cursor" : ''));
        die "list: $r->{status} $r->{text}" if $r->{status} != 200;
        push @all, @{ $r->{json} };
        $cursor = $r->{headers}{'x-next-cursor'};
        $self->{pages}++;
    } while $cursor;
    return @all;
}

# Waits for a job's end by asking; returns its last answer.
sub job {
    my ($self, $id) = @_;
    for (1 .. 6000) {
        my $r = $self->get("/api/files/jobs/$id");
        return $r if $r->{status} != 202;
        select undef, undef, undef, 0.05;
    }
    die "job $id does not end";
}

1;
