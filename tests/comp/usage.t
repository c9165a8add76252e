# Every argument of every command is judged before anything is needed or dialled: with no server anywhere, a wrong value is
# status 2 and named, never "nothing is listening". An option that is added has to say here what it does not take.
use strict;
use warnings;
use File::Temp qw(tempdir);
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

done_testing;
