# Every argument of every command is judged before anything is needed or dialled: with no server anywhere, a wrong value is
# status 2 and named, never "nothing is listening". An option that is added has to say here what it does not take.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;
use lib 'tests/lib';
use Sim;

my $dir = tempdir(CLEANUP => 1);
my @away = (dir => $dir, env => { TMA_URL => 'http://127.0.0.1:1' });
mkdir "$dir/folder";
spew("$dir/taken", '');
spew("$dir/wide", "\xff\xfed\0o\0w\0n\0");
spew("$dir/bad-mix", "fly 1\n");
spew("$dir/empty-mix", "# nothing\n");

# What a command has to be given besides.
my %given = (run => [qw(2 2 2 5)], seed => [qw(1 0.01)], bigfiles => [qw(1 1)], pairs => [qw(1 1)], ramp => ['1,2'], http => ['http://127.0.0.1:1/'],
    mix => ['import'], stack => ['status'], fixture => ['list']);
# By the name of the value in the help; then by option, where that is not enough. undef: it takes whatever it is given.
my @FILE = ('/nonexistent/x', 'folder');
my %bad_kind = (TIME => ['abc', '-1s', '10xx', ''], SECOND => ['abc', '10xx'], SIZE => ['abc', '10xx', '-1'], N => ['abc', '1x', ''], PID => ['abc', '0', '1.5'],
    FILE => \@FILE, PORT => ['abc'], MiB => ['abc']);
my %bad = (
    'dialect' => ['nosuch'], 'fail-on' => ['', 'nonsense', 'save.p99', 'nosuch.figure<1', 'failed=<0'], 'log-level' => ['loud'], 'trace' => ['nosuch', 'pg,nosuch'],
    'allow-host' => undef, 'known-hosts' => undef, 'seed' => ['abc', '-1'],
    'cafile' => ['/nonexistent/x', 'folder'], 'cacert' => ['/nonexistent/x'], 'ssh-key' => ['/nonexistent/x', 'folder'], 'users' => undef,
    'run --mix' => [@FILE, 'bad-mix', 'empty-mix', 'wide'], 'run --chaos' => ['foo', '', 'kill:server', 'kill:nobody@1', 'fly:server@1', 'kill:server@99', 'kill:server@1,,', 'kill:server@1,kill:server@1'],
    'run --bigfiles' => ['10xx', 'abc', '10x300', '0x1@1', '1x1@99', '1x0@1'], 'run --bulk' => ['abc', '99'], 'run --reconnect-storm' => ['abc', '99'],
    'run --slow-readers' => ['abc', '', '101%', '-1%', '10xx'], 'run --watch' => ['abc', 'pid:', 'pid:x', 'ssh:', 'ssh:-x', 'docker:'], 'run --run-dir' => ['', 'taken/x', 'x' x 300],
    'run --arrive' => ['abc', '0'], 'ramp --watch' => ['abc', 'pid:x'], 'ramp --run-dir' => ['', 'taken/x'],
    'ramp --session' => ['abc', 'upload:', 'upload:xx'], 'ramp --arrive' => ['abc', '-1'], 'ramp --link' => ['abc'], 'ramp --expect' => ['abc', 'knee', 'p95_fly<1s'],
    'ramp --stop-on' => ['abc', 'p95'], 'ramp --per-minute' => ['abc'], 'ramp --folders' => ['abc', '0'],
    'check --only' => ['nosuch', 'ledger,nosuch'], 'check --run' => [''],
    'refusals --only' => ['nosuch'], 'refusals --except' => ['nosuch'],
    'baseline --only' => ['nosuch'], 'baseline --dir' => ['/nonexistent', 'taken'], 'baseline --iperf' => ['', ':1', 'h:x', 'h:0', 'h:99999', '[::1', '[::1]x', 'a/b'],
    'http --method' => ['', 'G ET'], 'http --header' => ['none', ': x', "a: b\nc: d", 'a b: c'], 'http --content-type' => ["a\nb"], 'http --rate' => ['abc', '0'],
    'mix --database' => ['nonsense', 'postgresql://127.0.0.1:x/'], 'mix --since' => ["'; DROP"], 'mix --until' => ["'"], 'mix --out' => ['/nonexistent/x', 'folder'],
    'seed --preset' => ['nosuch'], 'seed --bytes-scale' => ['abc', '-1'], 'seed --name-max' => ['abc'], 'serve --listen' => undef, 'stack --dir' => undef, 'stack --server-args' => undef, 'stack --account' => undef, 'stack --lines' => ['abc'], 'stack --for' => ['abc'],
    'fixture --dir' => undef, 'fixture --stack' => undef, 'serve --fault' => ['nosuch'],
);

my ($table) = slurp('sim/main.c') =~ /#define COMMANDS\(X\) \\\n(.*?)\n\/\*/s;
my @commands = $table =~ /X\((\w+)\)/g;
cmp_ok scalar @commands, '>=', 19, 'the table of commands is read';
my $common;
for my $c (@commands) {
    my $help = sim([$c, '--help'])->{out};
    my ($own, $all) = split /^options of every command:$/m, $help;
    for my $text ($own, $common++ ? () : $all) {
        while ($text =~ /^ {2}(?:-\w, | {4})--([\w-]+) (\S+)/mg) {
            my ($option, $kind) = ($1, $2);
            my ($of, $key) = ($text eq $own ? "$c --$option" : '', $option);
            my $values = exists $bad{$of} ? $bad{$of} : exists $bad{$key} && !$of ? $bad{$key} : $bad_kind{$kind};
            next if (exists $bad{$of} || (!$of && exists $bad{$key})) && !$values;
            ok $values, "$c --$option: what it does not take is known" or next;
            for my $v (@$values) {
                my $r = sim([$c, @{ $given{$c} // [] }, "--$option=$v"], @away);
                (my $shown = $v) =~ s/[^ -~]/?/g;
                ok $r->{status} eq '2', "$c --$option=$shown: status 2" or diag $r->{status}, ' ', $r->{err};
                unlike $r->{err}, qr/nothing is listening/, '  before anything is dialled';
            }
        }
    }
}

# What stands without a name.
for my $args ([qw(run 0 2 2 5)], [qw(run 2 2 2 x)], [qw(run 2 2 2)], [qw(run 2 2 2 5 6)], ['ramp', 'abc'], ['ramp', ''], ['ramp', '10:1:x2'], ['http', 'ftp://h/'], ['http', 'h'],
    ['http', 'http://127.0.0.1:1/ b'], ['http', 'http://127.0.0.1:99999/'], ['mix', 'fly'], ['mix', 'import', '/nonexistent/x'], ['mix', 'sql', 'x'], ['stack', 'fly'], ['stack', 'kill'],
    ['stack', 'kill', 'nobody'], ['stack', 'up', 'server'], ['fixture', 'fly'], ['fixture', 'save'], ['fixture', 'list', 'x'], ['check', 'x'], ['clean', 'x'], ['doctor', 'x'], ['serve', 'x'],
    ['clean', '--yes', '--dry-run'], ['pairs', '0', '1'], ['pairs', '1', '0'], ['bigfiles', '0', '1'], ['bigfiles', '1', '0'], ['seed', '-1', '1'], ['seed', '1', 'x'], ['report', 'a', 'b'], ['stop', 'a', 'b']) {
    my $r = sim($args, @away);
    ok $r->{status} eq '2', "sim @$args: status 2" or diag $r->{status}, ' ', $r->{err};
}

# ---- what somebody may have meant ----
for (['rnu'], [qw(run 1 1 1 1 --fail-on svae.p99<1s), 'save.p99'], [qw(run 1 1 1 1 --fail-on stream_conect.p99<1s), 'stream_connect.p99'], [qw(check --fail-on fialed==0), 'failed'],
    [qw(run 1 1 1 1 --fail-on wndow.seconds<1), 'window.seconds'], [qw(check --only ledgr), 'ledger'], [qw(refusals --only over_quotaa), 'over_quota'], [qw(baseline --only dsik), 'disk'],
    [qw(stack dwon), 'down'], [qw(stack kill redsi), 'redis'], [qw(fixture laod x), 'load'], [qw(check --trace htpc), 'httpc'], [qw(ramp 1 --stop-on p95_uplod<1s), 'p95_upload'],
    [qw(run 1 1 1 1 --mix slip-mix), 'download']) {
    my @args = @$_;
    my $meant = @args > 1 ? pop @args : 'run';
    spew("$dir/slip-mix", "dwonload 1\n");
    my $r = sim(\@args, @away);
    is $r->{status}, 2, "sim @args: status 2";
    like $r->{err}, qr/did you mean '\Q$meant\E'\?/, "  $meant is named";
}
# A row by the name that its table shows: status 3, since it is no mistake.
for my $name (qw(stream.p95 stream_connect.p95 stream-connect.p95 operations.stream_connect.p95 delete_for_good.failed purge.failed account_set-up.failed)) {
    my $r = sim([qw(run 1 1 1 1 --fail-on), "$name<1"], @away);
    is $r->{status}, 3, "--fail-on $name" or diag $r->{err};
}

# ---- files that people write: with a mark in front, with CR LF, in UTF-16 ----
my %text = (mix => "download 1\nsave 1\n", users => "ann:secret-of-ann\n", counts => "action,count\ndownload,3\n");
my %call = (mix => [qw(run 1 1 1 1 --mix)], users => [qw(check --users)], counts => [qw(mix import)]);
for my $kind (sort keys %text) {
    my @env = $kind eq 'users' ? (dir => $dir, env => { TMA_URL => 'webdav://127.0.0.1:1/' }) : @away;
    (my $crlf = $text{$kind}) =~ s/\n/\r\n/g;
    for (['a mark', "\xef\xbb\xbf$text{$kind}"], ['CR LF', $crlf], ['both', "\xef\xbb\xbf$crlf"]) {
        spew("$dir/text", $_->[1]);
        my $r = sim([@{ $call{$kind} }, 'text'], @env);
        is $r->{status}, $kind eq 'counts' ? 0 : 3, "$kind with $_->[0] is read" or diag $r->{err};
    }
    spew("$dir/text", "\xff\xfe" . join '', map { "$_\0" } split //, $text{$kind});
    my $r = sim([@{ $call{$kind} }, 'text'], @env);
    is $r->{status}, 2, "$kind in UTF-16 is refused";
    like $r->{err}, qr/UTF-(?:16|8)/, '  and told what it should be';
}

# ---- the files of a result: an older one stays until the new one is whole ----
my @forms = qw(json csv html junit prometheus hdr);
my @all = map { ("--$_", "r.$_") } @forms;
my $held = sub { return join ' ', map { slurp("$dir/r.$_") eq "older\n" ? $_ : () } @forms };
spew("$dir/r.$_", "older\n") for @forms;
for (['a wrong option', 2, 'check', '--bogus'], ['a server that is away', 3, 'check'], ['a wrong value', 2, qw(run 1 1 1 1 --chaos foo)]) {
    my ($what, $status, @args) = @$_;
    is sim([@args, @all], @away)->{status}, $status, $what;
    is $held->(), "@forms", '  leaves them as they were';
}
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $!";
my $h = sim_start(['http', 'http://127.0.0.1:' . $silent->sockport . '/', qw(-n 1 --timeout 1h), @all], @away);
ok my $asked = $silent->accept, 'while it runs';
is $held->(), "@forms", '  they are the older ones';
kill 'INT', $h->{pid};
my $first = sim_read($h, 60, sub { $h->{err} =~ /interrupted/ });
kill 'INT', $h->{pid};
is sim_finish($h)->{status}, 130, 'interrupted';
is $held->(), '', '  they are the new ones';
like slurp("$dir/r.prometheus"), qr/^# TYPE /m, '  whole';
is_deeply [glob "$dir/*.new"], [], '  and nothing stands beside them';
is sim([qw(http http://127.0.0.1:1/ --bogus --json first.json)], @away)->{status}, 2, 'where there was none';
is json_file("$dir/first.json")->{exit}, 2, '  one says that it was refused';
is sim([qw(http http://127.0.0.1:1/ -q --json same --csv ./same)], @away)->{status}, 2, 'two in one place';
my $mixed = sim(['http', 'http://127.0.0.1:1/', '--json', '/dev/stdout'], @away, wrap => ['sh', '-c', 'exec "$@" > to-stdout', 'sh']);
is $mixed->{status}, 1, '/dev/stdout';
like slurp("$dir/to-stdout"), qr/^not healthy.*\n?.*"command":"http"/ms, '  has the text and the result';

done_testing;
