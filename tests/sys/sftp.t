# The scenarios on OpenSSH: seed, run, bigfiles, check; sessions that are refused before they sign in; keys of hosts and
# users, passwords; and a server that cannot replace a file in one step.
use strict;
use warnings;
use File::Find ();
use Test::More;
use lib 'tests/lib';
use Sim;
use Sshd;

plan skip_all => 'no sshd here' if !Sshd::available();
my $sshd = Sshd->new(MaxStartups => '10:30:60');
my $dir = File::Temp::tempdir(CLEANUP => 1);

sub on { my ($server, $args, %opt) = @_; return sim($args, dir => $dir, env => { %{ $server->env }, %{ $opt{env} // {} } }) }
sub report { return json_file("$dir/r.json") }
sub check_of { my ($j, $name) = @_; return (grep { $_->{name} eq $name } @{ $j->{checks} })[0] }

# What lies there under a temporary name.
sub leftovers {
    my ($server) = @_;
    my @found;
    File::Find::find(sub { push @found, $_ if /^\.drivesim-/ }, $server->files);
    return \@found;
}

# ---- the main job, by a server that replaces atomically and by one that cannot
my $plain = Sshd->new(sftp => '-P posix-rename');
for ([$sshd, 'OpenSSH'], [$plain, 'without posix-rename']) {
    my ($server, $what) = @$_;
    my $r = on($server, [qw(seed 3 0.02 --json r.json)]);
    is $r->{status}, 0, "$what: seed" or diag $r->{out}, $r->{err};
    my $made = report()->{tree};
    is $made->{files}, 336, "$what: all files";
    like $r->{out}, qr/signs nobody up: 1 given login/, "$what: the logins are those that were given";
    $r = on($server, [qw(run 5 8 90 4 --mix mix --json r.json)]) if spew("$dir/mix", "download 20\nsave 50\nupload 10\ntrash 5\nrename 8\nmove 4\nnew_folder 3\n") || 1;
    is $r->{status}, 0, "$what: run" or diag $r->{out}, $r->{err};
    my $j = report();
    is $j->{failed}, 0, "$what: no failed operation" or diag explain $j->{failures};
    cmp_ok $j->{operations}{save}{ok}, '>', 0, "$what: saves";
    is check_of($j, $_)->{status}, 'ok', "$what: $_" for qw(structure ledger convergence changes);
    like check_of($j, 'objects')->{summary} // '', qr/not offered/, "$what: what needs a database is not offered" or diag explain check_of($j, 'objects');
    is_deeply leftovers($server), [], "$what: K10: saves leave nothing under a temporary name";
}

# S03: what is there is neither made twice nor replaced.
my $r = on($sshd, [qw(seed 3 0.02 --json r.json)]);
is $r->{status}, 0, 'S03: seeding what was worked in since' or diag $r->{out}, $r->{err};
is_deeply leftovers($sshd), [], 'S03: nothing half made';

$r = on($sshd, [qw(bigfiles 2 3 --json r.json)]);
is $r->{status}, 0, 'bigfiles' or diag $r->{out}, $r->{err};
is report()->{operations}{download}{ok}, 2, 'both came down and were compared';

$r = on($sshd, [qw(reads -n 3 --background 0 --json r.json)]);
is $r->{status}, 0, 'reads' or diag $r->{out}, $r->{err};
$r = on($sshd, [qw(refusals --background 0 --json r.json)]);
is $r->{status}, 0, 'refusals' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^ok +30\/30 +\Q$_\E/m, 'the reason arrives every time' for '409', '401';

# ---- S06: refused before the banner
$r = on($sshd, [qw(ramp 100 --no-stop --session sign-in --arrive 0 --hold 2s --timeout 5min --json r.json)]);
is $r->{status}, 0, 'S06: 100 sessions at once' or diag $r->{out}, $r->{err};
my $step = report()->{steps}[0];
is $step->{ok} + $step->{refused}, 100, 'each is in or refused' or diag explain $step;
cmp_ok $step->{refused}, '>', 0, 'some are refused';
is $step->{timed_out} + $step->{failed}, 0, 'none counts as timed out or failed';
is report()->{operations}{sign_in}{outcomes}{refused}, $step->{refused}, 'as an outcome of their own';
like $r->{out}, qr/refused before sign-in: Exceeded MaxStartups/, 'and as a reason of its own, with what the server says';
unlike $r->{out}, qr/^limit found/m, 'how many may sign in at once is no limit of sessions';
my ($run_dir) = report()->{run_dir};
my @lines = split /\n/, slurp("$dir/$run_dir/sessions.csv");
is scalar(grep { /^1,\d+,sign_in,.*,refused,0,0,"refused before sign-in/ } @lines), $step->{refused}, 'each stands in sessions.csv';
is scalar @lines, 101, 'a line a session';

# The slower they come the fewer are at the door at once, and on a busy machine it takes longer to get in.
for my $rate ('5/s', '1/s', '0.2/s') {
    $r = on($sshd, ['ramp', 25, '--no-stop', '--session', 'sign-in', '--arrive', $rate, '--hold', '0', '--timeout', '5min', '--json', 'r.json', '--fail-on', 'sign_in.failed==0']);
    last if $r->{status} eq '0';
}
is $r->{status}, 0, 'S06: one after another none is lost' or diag $r->{out}, $r->{err};
is report()->{steps}[0]{ok}, 25, 'all got in';

# A server that takes the connection and says nothing is a timeout. What stands before the sessions connects as well: the
# first session is the last one that comes through the door.
{
    my $connected = sub { my $n = () = $sshd->log_text =~ /^Connection from /mg; return $n };
    my @ramp = qw(ramp 3 --no-stop --session sign-in --arrive 1/s --hold 0 --timeout 5s --json r.json);
    my $before = $connected->();
    on($sshd, ['ramp', 1, @ramp[2 .. $#ramp]]);
    my $door = $sshd->door($connected->() - $before);
    my $h = on($sshd, \@ramp, env => { TMA_URL => $sshd->url =~ s/:\d+\//:$door\//r });
    $step = report()->{steps}[0];
    is_deeply [@$step{qw(ok refused timed_out failed)}], [1, 0, 2, 0], 'S06: silence counts as timed out, not as refused' or diag $h->{out}, $h->{err};
    like $h->{out}, qr/timed out, waiting for the banner/, 'and says where';
}

# ---- a ramp of uploads
$r = on($sshd, ['ramp', '1,3', qw(--no-stop --session upload:1MiB --arrive 20/s --hold 2s --settle 0 --link 50MB/s --json r.json --watch), 'ssh:127.0.0.1:' . $sshd->port]);
is $r->{status}, 0, 'a ramp of uploads' or diag $r->{out}, $r->{err};
my @steps = @{ report()->{steps} };
is scalar @steps, 2, 'two steps';
cmp_ok $_->{uploads}, '>=', $_->{sessions}, "$_->{sessions} sessions upload" for @steps;
cmp_ok $_->{mb_per_s}, '>', 0, 'a rate is measured' for @steps;
cmp_ok abs($steps[1]{expected_upload_p95_ms} - 3 * 1048.576 / 50), '<', 0.2, 'what the link alone would allow';
cmp_ok $steps[1]{expected_mb_per_s}, '<=', 50, 'shared by all';
cmp_ok report()->{watch}{memory_mib}, '>', 0, 'its machine is watched over ssh, by the same key and known host';
is_deeply [grep { /ramp/i } map { (split m{/})[-1] } glob $sshd->files . '/drivesim-load/*'], [], 'nothing is left of it';

# ---- who is let in, and who is believed
$r = on($sshd, ['reads'], env => { TMA_URL => 'sftp://u@127.0.0.1:' . Sshd::free_port() . '/' });
is $r->{status}, 3, 'nobody there';
like $r->{err}, qr/nothing is listening at sftp:/, 'is said';
$r = on($sshd, ['doctor'], env => { TMA_LOAD_KNOWN_HOSTS => '' });
like $r->{out} . $r->{err}, qr/host key of \[127\.0\.0\.1\]:\d+ \(SHA256:[^)]+\) is not in \S*known_hosts:.*--known-hosts/s, 'an unknown host is refused with its fingerprint and what to do';
$r = on($sshd, [qw(seed 1 0.01)], env => { TMA_LOAD_KNOWN_HOSTS => '' });
is $r->{status}, 3, 'and nothing is done there';
spew("$dir/other", '[127.0.0.1]:' . $sshd->port . ' ' . slurp($plain->dir . '/host_key.pub'));
$r = on($sshd, [qw(seed 1 0.01 --known-hosts), "$dir/other"]);
is $r->{status}, 3, 'another key than the known one is refused';
like $r->{err}, qr/is not the one in/, 'and said so';
$r = on($sshd, [qw(seed 1 0.01 --ssh-key), $plain->dir . '/id']);
is $r->{status}, 3, 'a key that the server does not know';
like $r->{err}, qr/may not sign in with this key \(the server takes publickey/, 'is told as that';

SKIP: {
    skip 'no shadow file of our own can be put in place here', 4 if !Sshd::can_use_password();
    my $guarded = Sshd->new(password => 'pa ss:wo/rd%', PubkeyAuthentication => 'no');
    my $url = 'sftp://' . $guarded->user . ':pa%20ss%3Awo%2Frd%25@127.0.0.1:' . $guarded->port . $guarded->files;
    my %env = (TMA_URL => $url, TMA_LOAD_SSH_KEY => '');
    $r = on($guarded, [qw(seed 1 0.005)], env => \%env);
    is $r->{status}, 0, 'a password signs in' or diag $r->{out}, $r->{err};
    unlike $r->{out} . $r->{err}, qr/pa ss|pa%20ss/, 'and is told nowhere';
    $env{TMA_URL} =~ s/rd%25/xx/;
    $r = on($guarded, [qw(seed 1 0.005)], env => \%env);
    is $r->{status}, 3, 'a wrong one does not';
    like $r->{err}, qr/may not sign in with this password/, 'and is told as that';
}

# X04: transfers in flight on a server that stands still: the second Ctrl-C cuts them, and the report is whole.
{
    my $run = sim_start([qw(bigfiles 3 4000 --json r.json)], dir => $dir, env => $sshd->env);
    ok wait_until(sub { my $n = 0; File::Find::find(sub { $n++ if /^\.drivesim-/ && -s > 1 << 16 }, $sshd->files); $n == 3 }), 'X04: three large uploads are under way';
    $sshd->freeze;
    kill 'INT', $run->{pid};
    ok sim_await($run, sub { $_[0]{err} =~ /interrupted: finishing what is running/ }), 'X04: it is told';
    kill 'INT', $run->{pid};
    my $end = sim_finish($run);
    $sshd->thaw;
    is $end->{status}, 130, 'X04: interrupted';
    like $end->{out}, qr/^summary of bigfiles: interrupted after/m, 'X04: the report is whole' or diag $end->{out}, $end->{err};
    is report()->{operations}{upload}{failed}, 3, 'X04: each was cut' or diag explain report()->{operations}{upload};
    like $end->{err}, qr/left behind: folder "Big files/, 'X04: and what is left there is told' or diag $end->{err}, $end->{out};
}

$r = on($sshd, [qw(clean --yes)]);
is $r->{status}, 0, 'clean' or diag $r->{out}, $r->{err};
is_deeply [glob $sshd->files . '/*'], [], 'takes away what was made, and the folder of all work';
done_testing;
