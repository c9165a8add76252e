# No secret anywhere. Every command of the table runs, well and badly, with a marked secret in every place that can hold
# one; then everything that it wrote is read: stdout, stderr, each form of the result, run folders, .sim, the registry of
# generators, the command lines and environments of its children. A command that is added and not driven here fails.
use strict;
use warnings;
no warnings 'qw'; # lists with commas are words of a command line
use File::Find;
use File::Path qw(make_path);
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $dir = $stack->{dir};
my ($table) = slurp('sim/main.c') =~ /#define COMMANDS\(X\) \\\n(.*?)\n\/\*/s;
my @commands = $table =~ /X\((\w+)\)/g;

# ---- what must not be seen ----
my $n = 0;
my %secret;    # value => where it was
sub mark { my ($where, $form) = @_; my $m = sprintf $form // '%s', sprintf 'Mk%02dz7Qw', ++$n; $secret{$m} = $where; return $m }
my $own = json_file("$dir/.sim/stack.json");
$secret{ $own->{$_} } = "the stack's $_" for qw(password s3_secret jwt_secret file_key);
my %coded;     # how it may stand in a text: percent-encoded, for JSON, HTML
sub coded {
    my ($s) = @_;
    return @{ $coded{$s} //= do {
        my %all = ($s => 1);
        (my $url = $s) =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ge;
        (my $json = $s) =~ s/(["\\])/\\$1/g;
        (my $html = $s) =~ s/&/&amp;/g;
        $html =~ s/</&lt;/g;
        $html =~ s/"/&quot;/g;
        @all{ $url, lc $url, $json, $html, encode_base64($s, '') } = ();
        [keys %all];
    } };
}
sub seen {
    my ($text, @but) = @_;
    my %but = map { $_ => 1 } @but;
    return join ', ', sort map { my $s = $_; (grep { index($text, $_) >= 0 } coded($s)) ? "$secret{$s} ($s)" : () } grep { !$but{$_} } keys %secret;
}

my $password = mark('TMA_LOAD_PASSWORD', '%s"&<+ /%%');
my @proxies = (mark('http_proxy'), mark('HTTPS_PROXY'));
make_path("$dir/tmp", "$dir/state");
my %env = (TMPDIR => "$dir/tmp", XDG_STATE_HOME => "$dir/state", TMA_LOAD_PASSWORD => $password, TMA_LOAD_SSH_PASSPHRASE => mark('TMA_LOAD_SSH_PASSPHRASE'), AWS_SECRET_ACCESS_KEY => mark('AWS_SECRET_ACCESS_KEY'),
    http_proxy => "http://me:$proxies[0]\@127.0.0.1:1/", HTTPS_PROXY => "http://$proxies[1]\@127.0.0.1:1/");

# ---- children ----
my %children;    # name => how often it was seen
my @told;        # what they told
sub look_at_children {
    my %allowed = map { $_ => 1 } @$own{qw(password s3_secret jwt_secret file_key)};    # those of the stack's own parts
    for my $p (glob '/proc/[0-9]*') {
        my $name = eval { slurp("$p/comm") } // next;
        chomp $name;
        next if $name =~ /^(?:sim|perl|sh|prove|nice|make)/;
        my ($line, $its) = map { eval { slurp("$p/$_") } // '' } qw(cmdline environ);
        next if $line eq '';
        $children{$name}++;
        push @told, "$name: " . seen($line) if seen($line);
        my @its_own = (keys %allowed, $line =~ /\b(?:npm|docker)/ ? @proxies : ());    # those two go to the Internet
        push @told, "$name, environment: " . seen($its, @its_own) if seen($its, @its_own);
    }
    return;
}

# ---- all of them, well ----
my $url = $stack->env->{TMA_URL};
spew("$dir/counts", "action,count\ndownload,3\n");
my ($key, $tab, $basic, $bearer, $cookie, $token, $sig, $bare) = map { mark($_) }
    'X-Api-Key without a blank', 'a header with a tab', 'Basic', 'Bearer', 'a cookie', '?token=', '&sig=', 'a lone token as user';
my @http = (-H => "X-Api-Key:$key", -H => "X-Tab:\t$tab", -H => "Authorization: Bearer $bearer", '--header=Cookie: a=1; sid=' . $cookie);
my %well = (
    stack => [['status'], ['logs'], ['up']], seed => [[qw(1 0.01)]], fixture => [[qw(save base)], ['list'], [qw(load base)]], run => [[qw(2 2 240 2 --run-dir kept)]],
    check => [[], [qw(--run kept)]], report => [['kept']], bigfiles => [[qw(1 0.1)]], bulk => [[]], refusals => [[qw(--tries 1 --background 0 --only wrong_password,over_quota)]],
    reads => [[qw(-n 1 --background 0)]], pairs => [[qw(2 2)]], ramp => [[qw(1 --session sign-in --arrive 0 --hold 0 --run-dir ramped)]], baseline => [[qw(--time 200ms --only disk,network,postgres,redis)]],
    http => [["$url/health?token=$token&sig=$sig", @http], ["http://ann:$basic\@" . substr($url, 7) . '/health'], ["http://$bare\@" . substr($url, 7) . '/none', '-n', 3]],
    mix => [['sql'], [qw(import counts --out team.mix)]], stop => [['kept'], []], clean => [['--dry-run']], serve => [[]], doctor => [[]],
);
is_deeply [sort keys %well], [sort @commands], 'every command of the table is driven';
my @forms = qw(json csv html junit prometheus hdr);
my $run = 0;
sub drive {
    my ($what, $args, %opt) = @_;
    my ($c) = @$args;
    $run++;
    my $h = sim_start([@$args, qw(--trace all --log-level debug), map { ("--$_", "out.$run.$_") } @forms], dir => $dir, env => { %env, %{ $opt{env} // {} } });
    if ($opt{live}) {
        look_at_children() until sim_read($h, 0.03);
    }
    my $r = sim_finish($h);
    isnt $r->{status}, 'timeout', "$what: it ends";
    diag sprintf "%5.1f s  %s", $r->{seconds}, $what if $ENV{SLOW};
    # 'stack up' prints the variables of the stack, which is what it is called for.
    my @but = $c eq 'stack' && $args->[1] eq 'up' ? @$own{qw(password s3_secret)} : ();
    is seen($r->{out}, @but), '', "$what: stdout";
    is seen($r->{err}), '', "$what: stderr";
    return $r;
}
for my $c (qw(stack seed fixture run check report), grep { !/^(?:stack|seed|fixture|run|check|report)$/ } @commands) {
    for (@{ $well{$c} }) {
        my $r = drive("$c @$_[0 .. ($#$_ > 0 ? 1 : $#$_)]", [$c, @$_], live => 1);
        is $r->{status}, 0, "$c ends well" or diag $r->{out}, $r->{err} if $c !~ /^(?:serve|http|baseline|refusals|stop)$/;
    }
}
ok $children{$_}, "$_ was seen at work" for grep { my $t = $_; grep { -x "$_/$t" } split /:/, $ENV{PATH} } qw(fio iperf3);
is_deeply \@told, [], 'no child is told any, in its arguments or its environment';

# ---- badly: nothing answers, and what is given is no URL ----
sub userinfo { return 'me:' . mark("the password of $_[0]") . '@' }
my %away = (TMA_URL => 'http://127.0.0.1:1', DATABASE_URL => 'postgresql://' . userinfo('DATABASE_URL') . '127.0.0.1:1/db', REDIS_URL => 'redis://:' . mark('REDIS_URL') . '@127.0.0.1:1/0',
    TMA_LOAD_S3_ENDPOINT => 'http://127.0.0.1:1', TMA_LOAD_S3_BUCKET => 'b', TMA_LOAD_S3_ACCESS_KEY => mark('S3 access key'), TMA_LOAD_S3_SECRET_KEY => mark('S3 secret key'));
my @bad = (
    ['nothing answers', {}],
    ['settings', { DATABASE_URL => "host=127.0.0.1 port=1 user=me password='" . mark('password=', "%s it\\'s") . "' sslpassword=" . mark('sslpassword=') }],
    ['a query', { DATABASE_URL => 'postgresql://127.0.0.1:1/db?user=me&password=' . mark('?password=') }],
    ['PGPASSWORD', { DATABASE_URL => 'postgresql://me@127.0.0.1:1/db', PGPASSWORD => mark('PGPASSWORD') }],
    ['a slash in it', { DATABASE_URL => 'postgresql://me:' . mark('before the slash') . '/' . mark('behind the slash') . '@127.0.0.1:1/db' }],
    ['half an escape', { DATABASE_URL => 'postgresql://me:%' . mark('half an escape') . '@127.0.0.1:1/db', REDIS_URL => 'redis://:%zz' . mark('half an escape') . '@127.0.0.1:1/0' }],
    ['no scheme', { DATABASE_URL => 'postgresql//me:' . mark('no scheme') . '@127.0.0.1:1/db', REDIS_URL => 'me:' . mark('no scheme') . '@127.0.0.1:1' }],
    ['a port that is none', { DATABASE_URL => 'postgresql://me:' . mark('bad port') . '@127.0.0.1:x/db', REDIS_URL => 'redis://:' . mark('bad port') . '@127.0.0.1:x/0' }],
    ['a token', { TMA_URL => 'http://' . mark('a lone token in TMA_URL') . '@127.0.0.1:1/' }],
    ['TMA_URL that is none', { TMA_URL => 'http//me:' . mark('TMA_URL') . '@127.0.0.1:1' }],
    ['TMA_URL with a query', { TMA_URL => 'http://127.0.0.1:1/?token=' . mark('query of TMA_URL') }],
    ['webdav', { TMA_URL => 'webdav://ann:' . mark('webdav') . '@127.0.0.1:1/x' }],
    ['sftp', { TMA_URL => 'sftp://ann:' . mark('sftp') . '@127.0.0.1:1/x' }],
    ['a server of its own', { JWT_SECRET => mark('JWT_SECRET'), FILE_ENCRYPTION_KEY => mark('FILE_ENCRYPTION_KEY') }],
    ['an endpoint', { TMA_LOAD_S3_ENDPOINT => 'http://me:' . mark('S3 endpoint') . '@127.0.0.1:1' }],
);
my %least = (seed => [qw(1 0.01)], run => [qw(1 1 1 1)], bigfiles => [qw(1 0.1)], pairs => [qw(1 1)], ramp => ['1'], http => ['http://127.0.0.1:1/'], mix => [qw(import)], stack => ['status'],
    fixture => ['list'], report => ['nosuch'], serve => [qw(--wait 0)], baseline => [qw(--only postgres,redis,store,drive --time 100ms)]);
for my $c (@commands) {
    for (@bad) {
        my ($what, $more) = @$_;
        # What asks none of these fails alike.
        next if $c =~ /^(?:stack|fixture|report|stop|http)$/ && $what ne 'nothing answers';
        # A Redis that is away is waited for: once is enough.
        my %env = (%away, $what eq 'nothing answers' ? () : (REDIS_URL => ''), %$more);
        drive("$c, $what", [$c, @{ $least{$c} // [] }], env => \%env);
    }
    my $at = mark('beside a mistake');
    drive("$c with an unknown option", [$c, @{ $least{$c} // [] }, '--headr', "X-Api-Key:$at", '--bogus']);
    drive("$c with a header", [$c, @{ $least{$c} // [] }, '--bogus', -H => 'Authorization:' . mark('beside a mistake')]);
    drive("$c with a URL", [$c, @{ $least{$c} // [] }, 'http://me:' . mark('one too many') . '@h/']);
    drive("$c --help", [$c, 'http://me:' . mark('before --help') . '@h/', '--help']);
}
spew("$dir/users", 'ann:' . mark('a line of users') . "\nbob " . mark('a line of users') . "\n");
drive("$_ with users", [$_, @{ $least{$_} // [] }, qw(--users users)], env => { TMA_URL => 'webdav://127.0.0.1:1/x' }) for qw(check run seed doctor);
drive('mix with a database', ['mix', 'import', '--database', 'postgresql://me:' . mark('--database') . '@127.0.0.1:1/x']);
drive('mix with settings', ['mix', 'import', '--database=host=127.0.0.1 port=1 password=' . mark('--database')]);
drive('a URL without //', ['http', 'me:' . mark('no scheme') . '@127.0.0.1']);
drive('a URL of another kind', ['http', 'htp://me:' . mark('another scheme') . '@127.0.0.1']);
drive('one with a slash', ['http', 'http://me:' . mark('before the slash') . '/' . mark('behind the slash') . '@127.0.0.1:1/']);

# ---- in the list of processes, and in the registry of generators, while it runs ----
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $!";
my ($user, $header) = (mark('in the list of processes'), mark('in the list of processes'));
my $h = sim_start(['http', "http://me:$user\@127.0.0.1:" . $silent->sockport . '/', qw(-n 1 --timeout 1h -H), "X-Api-Key:$header"], dir => $dir, env => \%env);
my $asked = $silent->accept;
is seen(slurp("/proc/$h->{pid}/cmdline")), '', 'its own command line';
like slurp("/proc/$h->{pid}/cmdline"), qr/\0http:\/\/me:\*\*\*\@127/, 'tells the rest';
my $registry = join '', map { slurp($_) } grep { -f } glob "$dir/tmp/drivesim-*/*";
like $registry, qr/^http$/m, 'the registry names the command';
is seen($registry), '', 'and no secret';
my $list = sim([qw(stop --all)], dir => $dir, env => \%env);
like $list->{out}, qr/sim http/, 'sim stop --all says what it ends';
is seen($list->{out} . $list->{err}), '', 'sim stop --all';
sim_finish($h);
is seen($h->{out} . $h->{err}), '', 'and it was ended without telling';

# ---- everything that was written ----
my $sessions = join '', map { slurp($_) } grep { -f } glob "$dir/.sim/sessions/*";
$secret{$_} = 'a session token' for $sessions =~ /"token":"([^"]{20,})"/g;
my %read;
find({ no_chdir => 1, wanted => sub {
    return if $_ eq $dir;
    my $file = substr $_, length($dir) + 1;
    return $File::Find::prune = 1 if $file =~ m{^\.sim/(?:postgres|redis|store|fixtures|sessions)$};    # the stack's own parts, and what keeps tokens
    return if !-f || $file =~ m{^\.sim/(?:env|stack\.json)$|^users$};
    my $told = seen(slurp($_));
    is $told, '', $file if $told;
    $read{ $file =~ s/\d+/N/gr }++;
} }, $dir);
ok $read{"out.N.$_"}, "files of --$_ were read" for @forms;
ok $read{$_}, "$_ was read" for qw(kept/run.json kept/result.json kept/ledger.bin ramped/sessions.csv .sim/logs/server.log);
done_testing;
