# The command line as a user meets it, without any server: help, mistakes, missing environment, signals, readers that
# leave, terminals and pipes (cases X01, X03, X04, X05, X10, X11).
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use Sim;

my $dir = tempdir(CLEANUP => 1);

# ---- help ----
my $r = sim([]);
is $r->{status}, 2, 'no command: usage';
like $r->{err}, qr/^usage: sim COMMAND/m, 'and the list of commands';
is $r->{out}, '', 'nothing on stdout';

my $overview = sim(['--help']);
is $overview->{status}, 0, '--help';
my @commands = $overview->{out} =~ /^  (\w+)  +\S/mg;
cmp_ok scalar(@commands), '>=', 3, 'commands are listed';
for my $c (@commands) {
    my $help = sim([$c, '--help']);
    is $help->{status}, 0, "$c --help";
    like $help->{out}, qr/\Ausage: sim $c\b/, "$c: usage";
    like $help->{out}, qr/^examples:\n  .*\bsim $c/m, "$c: an example";
    like $help->{out}, qr/--json FILE/, "$c: the options of all";
    is sim(['help', $c])->{out}, $help->{out}, "help $c is the same";
    unlike $help->{out}, qr/[\e\r]/, "$c: plain text";
}
like sim(['bigfiles', '--help'])->{out}, qr/^  uploads\. .*\bmb_per_s\b/m, 'bigfiles --help names its figures';
like sim(['bulk', '--help'])->{out}, qr/^  bulk_copy\. .*\bitems_per_s\b/m, 'bulk --help too';
like sim(['http', '--help'])->{out}, qr/^  http\.(.|\n    )* requests_per_s (.|\n    )*total_ms\.p99/m, 'http --help too';
like sim(['run', '--help'])->{out}, qr/^  window\. .*\brequests_per_s\b/m, 'and run --help';
for (['reads', 'list_hot', 'alone.p95_ms'], ['refusals', 'over_quota', 'ok']) {
    my ($c, $row, $figure) = @$_;
    my $text = sim([$c, '--help'])->{out};
    like $text, qr/^  $c\.ROW\.(.|\n    )* \Q$figure\E\b/m, "$c --help names a row's figures";
    like $text, qr/^    ROW:(.|\n    )* $row\b/m, "$c --help names the rows";
}
$r = sim([qw(serve --fault help)]);
is $r->{status}, 0, 'serve --fault help is no mistake';
like $r->{out}, qr/^  lost-update +\S/m, 'and lists the faults';
like sim(['--version'])->{out}, qr/\Adrivesim \S+\n\z/, '--version';

# ---- completion in bash: what --help lists ----
sub completed {
    my @words = @_;
    my $script = '. sim/completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sim; printf "%s\n" "${COMPREPLY[@]}"';
    open my $pipe, '-|', 'bash', '-c', $script, 'bash', sim_path(), @words or die "bash: $!";
    chomp(my @said = <$pipe>);
    return [sort @said];
}
is_deeply completed('re'), [sort grep { /^re/ } @commands], 'a command';
is_deeply completed(qw(run --re)), [qw(--reconnect-storm --report-every)], 'an option of its own';
is_deeply completed(qw(check --js)), ['--json'], 'an option of all';
is_deeply completed(qw(stack sta)), [qw(start status)], 'an action of the stack';

# ---- mistakes: one sentence, status 2, JSON when asked for ----
$r = sim(['chekc']);
is $r->{status}, 2, 'unknown command';
like $r->{err}, qr/did you mean 'check'\?/, 'with a suggestion';
like sim(['--quiet', 'check'])->{err}, qr/options come after the command/, 'an option in front of the command';
like sim(['up'])->{err}, qr/no command 'up'; 'sim --help'/, 'a short word is no slip of another';
for my $case (
    [['check', '--onyl', 'x'], qr/--onyl.*--only/],
    [['check', 'surplus'], qr/unexpected argument "surplus"/],
    [['check', '--fail-on', 'save.p99<fast'], qr/save\.p99<fast/],
    [['check', '--fail-on', 'sav.p99<5'], qr/no such figure/],
    [['check', '--log-level', 'loud'], qr/loud/],
    [['check', '--seed', '1,5'], qr/--seed.*1,5/],
    [['check', '--json'], qr/--json needs FILE/],
    [['check', '--json', ''], qr/its name is empty/],
    [['check', '--json', '-', '--csv', '-'], qr/--json and --csv cannot both go to stdout/],
    [['check', '--json', 'same', '--csv', './same'], qr/--json and --csv cannot both go to same/],
    [['check', '--trace', 'pg,nosuch'], qr/no module is called 'nosuch'/],
    [['check', '--only', 'storage', '--only', 'nosuch'], qr/no check is called 'nosuch'/],
    [['check', '--only', ''], qr/no check is called ''/],
    [['check', '--only', 'storage,'], qr/no check is called ''/],
    [['check', "\e]0;x\a"], qr/\\x1b\]0;x\\x07/],
) {
    my ($args, $pattern) = @$case;
    $r = sim($args, dir => $dir);
    is $r->{status}, 2, "@{$args}[0, 1]: usage";
    like $r->{err}, qr/\Asim check: .*$pattern/, 'says what is wrong';
    unlike $r->{err}, qr/\e/, 'escaped';
}
for my $case (
    [[qw(bigfiles 1 0)], qr/<MiB> takes a number from 0\.001 /],
    [[qw(run 1 1 1 1), 'surplus'], qr/unexpected argument "surplus"/],
    [[qw(seed 1 0.01 --preset huge)], qr/--preset takes drive or desktop, not "huge"/],
    [[qw(ramp 5 --stop-on nonsense)], qr/nonsense/],
    [[qw(ramp 5 --settle 2min --hold 1min)], qr/--settle is longer than --hold/],
    [[qw(refusals --only no_token --only nosuch)], qr/no refusal is called 'nosuch'/],
    [[qw(baseline --only disk --only nosuch)], qr/"nosuch"/],
    [[qw(http http://127.0.0.1:1/ --header nocolon)], qr/--header takes 'Name: value'/],
) {
    my ($args, $pattern) = @$case;
    $r = sim($args, dir => $dir);
    is $r->{status}, 2, "@$args: usage, before a server is asked for";
    like $r->{err}, qr/\Asim $args->[0]: .*$pattern/, 'says what is wrong';
    is $r->{out}, '', 'nothing on stdout';
}
$r = sim(['check', '--run', 'nosuch'], dir => $dir);
is $r->{status}, 3, 'a run that is not there is told before a server is asked for';
like $r->{err}, qr{cannot open the ledger nosuch/ledger\.bin}, 'and named';
$r = sim(['check', '--json', "$dir/wrong.json", '--nonsense'], dir => $dir);
is json_file("$dir/wrong.json")->{exit}, 2, 'a mistake leaves its JSON too';
$r = sim(['check', '--json', "$dir/no/such/folder.json"], dir => $dir, env => { TMA_URL => 'http://127.0.0.1:1' });
is $r->{status}, 2, 'a JSON file that cannot be written is found before the work';
like $r->{err}, qr{no/such/folder\.json}, 'and named';

# ---- environment ----
$r = sim(['check'], dir => $dir, wrap => ['env', '-i']);
is $r->{status}, 2, 'no environment at all: usage';
like $r->{err}, qr/TMA_URL/, 'names the variable';
$r = sim(['check', '--json', '-'], dir => $dir, env => { TMA_URL => 'http://127.0.0.1:1' });
is $r->{status}, 3, 'nothing listens: environment';
my $json = JSON::PP->new->decode($r->{out});
is $json->{exit}, 3, '--json -: stdout is JSON and nothing else';
is $json->{error}{code}, 'ENV', 'with the reason';
unlike $r->{out}, qr/nan|inf/i, 'no figure that is none';

# ---- a server that accepts and never answers ----
my $hung = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die $!;
my %target = (dir => $dir, env => { TMA_URL => 'http://127.0.0.1:' . $hung->sockport });
my @held; # a connection that goes out of scope would be an answer
sub waiting {
    my ($h) = @_;
    sim_await($h, sub { "$_[0]{out}$_[0]{err}" =~ /^target/m });
    push @held, $hung->accept;
    ok $held[-1], 'it asks the server';
    return $h;
}

$SIG{HUP} = 'DEFAULT';    # who started the tests with nohup meant the tests
for my $signal (qw(INT TERM HUP)) {
    my $h = waiting(sim_start(['check', '--json', "$dir/$signal.json"], %target));
    my $from = time;
    kill $signal, $h->{pid};
    sim_finish($h);
    is $h->{status}, 130, "SIG$signal: 130";
    cmp_ok time - $from, '<', 25, 'before any time limit of a request is over';
    my $j = json_file("$dir/$signal.json");
    ok $j->{interrupted}, 'the JSON says so';
    is $j->{exit}, 130, 'and tells the status';
}

for my $args (['check'], ['check', '--json', '-']) {
    my $h = waiting(sim_start($args, %target));
    my $from = time;
    close $h->{out_fh};
    sim_finish($h);
    is $h->{status}, 141, "@$args: the reader left: 141, as SIGPIPE would tell";
    cmp_ok time - $from, '<', 25, 'noticed without writing';
    unlike $h->{err}, qr/pipe|abort|signal|core/i, 'without crash text';
}

$r = sim(['check'], %target, env => { TMA_URL => 'http://127.0.0.1:1' }, wrap => ['sh', '-c', 'exec "$@" >&-', 'sh']);
is $r->{status}, 3, 'a closed stdout harms nothing';
$r = sim(['check', '--json', '-'], %target, wrap => ['sh', '-c', 'exec "$@" >&-', 'sh']);
is $r->{status}, 2, 'unless the result was to go there';
like $r->{err}, qr/stdout is closed/, 'and says so';
SKIP: {
    my @print = (['--help'], ['--version'], ['help', 'run'], ['run', '--help'], [qw(mix sql)], [qw(serve --fault help)],
        [qw(seed 2 0.02 --explain)], [qw(fixture list)], ['doctor'], ['stop']);
    skip 'no /dev/full', 2 * @print unless -e '/dev/full';
    for my $args (@print) {
        $r = sim($args, %target, wrap => ['sh', '-c', 'exec "$@" >/dev/full', 'sh']);
        is $r->{status}, 3, "@$args: a full disk under stdout is told";
        like $r->{err}, qr/^sim[a-z ]*: cannot write to stdout/m, 'in words';
    }
}

# ---- locale ----
SKIP: {
    my $made = system("localedef -i de_DE -f UTF-8 $dir/de_DE.UTF-8 >/dev/null 2>&1") == 0;
    skip 'no locale with a decimal comma can be made', 2 unless $made;
    my %german = (LC_ALL => 'de_DE.UTF-8', LOCPATH => $dir, ASAN_OPTIONS => 'detect_leaks=0'); # the C library leaks a LOCPATH
    my @args = ('check', '--fail-on', 'seconds<0.5', '--json', '-');
    my ($plain, $comma) = map { sim(\@args, dir => $dir, env => { TMA_URL => 'http://127.0.0.1:1', %$_ }) } {}, \%german;
    is $comma->{out}, $plain->{out}, 'a decimal comma changes no JSON';
    is $comma->{err}, $plain->{err}, 'and no text';
}

done_testing;
