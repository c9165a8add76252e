# Upload portals: random files by PUT, POST or a form to any URL, signed in by Basic, Digest or a login form; status and
# time of each on record, refusals and silence told apart.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64);
use Test::More;
use lib 'tests/lib';
use Sim;

my $dir = tempdir(CLEANUP => 1);
my $log = "$dir/requests";
my ($user, $password) = ('ann', 's:cret/@');

# ---- the portal: one process a connection; what it got stands in the log, a line each
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 100) or die $!;
my $server = fork // die "fork: $!";
if (!$server) {
    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';
    while (1) {
        my $c = $listen->accept or next;
        next if fork;
        serve($c);
        POSIX::_exit(0);
    }
}
my $port = $listen->sockport;
close $listen;
END { local $?; if ($server) { kill 'KILL', $server; waitpid $server, 0 } }

sub serve {
    my ($c) = @_;
    my $buf = '';
    while (1) {
        while ($buf !~ /\r\n\r\n/) { sysread($c, $buf, 65536, length $buf) or return }
        (my $head, $buf) = split /\r\n\r\n/, $buf, 2;
        my ($length) = $head =~ /^content-length: (\d+)/im;
        while (length $buf < ($length // 0)) { sysread($c, $buf, 65536, length $buf) or return }
        my $body = substr $buf, 0, $length // 0, '';
        my ($status, @headers) = answer($head, $body);
        open my $fh, '>>', $log or die $!;
        syswrite $fh, join(' ', (split ' ', $head)[0, 1], $status, length $body, md5_hex($body)) . "\n";
        syswrite $c, join "\r\n", "HTTP/1.1 $status X", 'Content-Length: 2', @headers, '', 'ok';
    }
}

sub answer {
    my ($head, $body) = @_;
    my ($method, $path) = split ' ', $head;
    if ($path eq '/login') {
        my $want = 'login=ann&pass=s%3Acret%2F%40';
        return $body eq $want && $head =~ m{^content-type: application/x-www-form-urlencoded}im ? (302, 'Location: /in', 'Set-Cookie: a=1; Path=/', 'Set-Cookie: sid=42; HttpOnly') : 200;
    }
    return 413 if $path =~ /full/;
    return 201 if $path =~ m{^/open/};
    return $head =~ /^cookie: a=1; sid=42\r?$/im ? 201 : 403 if $path =~ m{^/form/};
    return $head =~ m{^authorization: basic \Q@{[encode_base64("$user:$password", '')]}\E\r?$}im ? 201 : (401, 'WWW-Authenticate: Basic realm="x"') if $path =~ m{^/basic/};
    my %d = $head =~ /^authorization: digest (.*)$/im ? $1 =~ /(\w+)="?([^",\r]*)"?/g : ();
    my $ha = md5_hex(join ':', md5_hex("$user:r:$password"), $d{nonce} // '', $d{nc} // '', $d{cnonce} // '', 'auth', md5_hex("$method:$path"));
    return 201 if $path =~ m{^/digest/} && ($d{response} // '') eq $ha && $d{nonce} eq 'n1';
    return (401, 'WWW-Authenticate: Digest realm="r", nonce="n1", qop="auth", algorithm=MD5');
}

sub requests { my @r = split /\n/, slurp($log); spew($log, ''); return @r }
spew($log, '');

sub ramp {
    my ($dialect, $place, @args) = @_;
    my %env = %{ ref $args[0] ? shift @args : {} };
    (my $p = $password) =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge;
    return sim(['ramp', @args, '--no-stop', '--dialect', $dialect, '--json', "$dir/r.json"], dir => $dir,
        env => { TMA_URL => "http://$user:$p\@127.0.0.1:$port/$place/", HOME => $dir, %env });
}
sub report { return json_file("$dir/r.json") }
my @one = qw(2 --hold 0 --arrive 0 --session upload:70KiB);

# ---- the ways of sending, and of signing in
for (['portal', 'open', qr{^PUT /open/ramp-\w+-1-1-[12]-1\.bin 201 71680}], ['portal-post', 'open', qr{^POST /open/ 201 71680}],
     ['portal-form', 'open', qr{^POST /open/ 201 7[12]\d\d\d}], ['portal', 'basic', qr{^PUT /basic/\S+ 201 71680}],
     ['portal', 'digest', qr{^PUT /digest/\S+ 201 71680}], ['portal-post', 'digest', qr{^POST /digest/ 201 71680}]) {
    my ($dialect, $place, $sent) = @$_;
    my $r = ramp($dialect, $place, @one);
    is $r->{status}, 0, "$dialect to /$place/" or diag $r->{out}, $r->{err};
    my @got = grep { $_ =~ $sent } my @all = requests();
    is scalar @got, 2, "$dialect to /$place/: two files arrive whole" or diag join "\n", @all;
    isnt((split ' ', $got[0])[4], (split ' ', $got[1])[4], "$dialect to /$place/: of different bytes");
    my $j = report();
    is $j->{steps}[0]{ok}, 2, "$dialect to /$place/: both sessions are well";
    is $j->{operations}{$_}{ok}, 2, "$dialect to /$place/: $_ is timed" for qw(sign_in upload);
    unlike slurp("$dir/r.json") . $r->{out} . $r->{err}, qr/cret/, "$dialect to /$place/: the password is told nowhere";
}
my $r = ramp('portal', 'form', { TMA_LOAD_PORTAL_LOGIN => '/login login pass' }, @one);
is $r->{status}, 0, 'a login form' or diag $r->{out}, $r->{err};
is scalar(grep { m{^PUT /form/\S+ 201} } requests()), 2, 'its cookies go with the uploads';
$r = ramp('portal', 'form', { TMA_LOAD_PORTAL_LOGIN => '/login' }, @one);
is $r->{status}, 3, 'other fields than the form has';
like $r->{err}, qr/gave no cookie/, 'are noticed';
$r = ramp('portal', 'form', { TMA_LOAD_PORTAL_LOGIN => '/login ' . 'x' x 17_000 }, @one);
is $r->{status}, 3, 'a login that no form takes';
like $r->{err}, qr/too long for its form/, 'is told as that';

# ---- status and time of each
$r = ramp('portal', 'open/full', @one);
my $j = report();
is $j->{steps}[0]{refused}, 2, 'a portal that is full refuses' or diag $r->{out}, $r->{err};
is $j->{operations}{upload}{outcomes}{refused}, 2, 'as an outcome of its own';
my @lines = grep { /,upload,/ } split /\n/, slurp("$dir/$j->{run_dir}/sessions.csv");
is scalar @lines, 2, 'each upload has a line';
like $_, qr/^1,[12],upload,\d{4}-\d\d-\d\dT[\d:.]+Z,\d+\.\d{3},refused,413,\d+,"HTTP 413"$/, 'with status and time' for @lines;
(my $wrong = $password) =~ s/cret/xxxx/;
$r = sim(['ramp', @one, '--dialect', 'portal'], dir => $dir, env => { TMA_URL => "http://ann:bad\@127.0.0.1:$port/basic/" });
is $r->{status}, 3, 'a wrong password';
like $r->{err}, qr/does not let ann in: 401/, 'is told before anything is sent';

# ---- held: uploads one after another
for my $hold (2, 10, 60) { # how many there is time for is the machine's affair
    $r = ramp('portal', 'basic', '1,2', qw(--settle 0 --arrive 0 --session upload:10KiB --hold), "${hold}s");
    $j = report();
    last if $r->{status} ne '0' || $j->{steps}[1]{uploads} > 4;
}
is $r->{status}, 0, 'a held ramp' or diag $r->{out}, $r->{err};
cmp_ok $j->{steps}[1]{uploads}, '>', 4, 'uploads again and again';
cmp_ok $j->{steps}[1]{mb_per_s}, '>', 0, 'at a rate';

$r = sim([qw(seed 1 0.01 --dialect portal)], dir => $dir, env => { TMA_URL => "http://127.0.0.1:$port/open/" });
isnt $r->{status}, 0, 'a portal keeps no tree';
done_testing;
