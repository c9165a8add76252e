# sim ramp on real services: a limit is found and pushed past, a knee stands where the arithmetic puts it, what was agreed
# beforehand ends the ramp by a real cause, and the kill switch ends every generator.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(time);
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $dir = $stack->{dir};
my $server;
sub serve { undef $server; $server = Serve->new($stack, '--login-budget', 0, @_); return }
sub target { return (env => { TMA_URL => $server->url }) }
sub start { return $stack->start(['ramp', @_, '--json', 'r.json'], target()) }
sub report { return json_file("$dir/r.json") }
sub ramp {
    my $r = sim_finish(start(@_));
    $r->{json} = -s "$dir/r.json" ? report() : {};
    return $r;
}
# Waits for a file of the ramp's folder to say something.
sub said { my ($run, $file, $what) = @_; return wait_until(sub { -e "$dir/$run/$file" && slurp("$dir/$run/$file") =~ $what }) }

serve();
my $r = $stack->sim([qw(seed 0 0.01 --accounts 4)], target());
is $r->{status}, 0, 'seed: four accounts' or diag $r->{out}, $r->{err};

subtest 'a limit is found, and pushed past' => sub {
    serve('--max-sessions', 30);
    my $r = ramp('10,20,40', qw(--no-stop --session sign-in --arrive 0 --hold 300ms --settle 0 --drain 2s --expect limit=30 --expect refused@20=0));
    is $r->{status}, 0, 'steps' or diag $r->{out}, $r->{err};
    my @s = @{ $r->{json}{steps} };
    is_deeply [map { $_->{up} } @s], [10, 20, 26], 'so many got in: 30 with the 4 of the set-up';
    is_deeply [map { $_->{refused} } @s], [0, 0, 14], 'the others were refused';
    cmp_ok $s[2]{refused_max_ms}, '<', 25_000, 'before any time limit of a request is over';
    is $r->{json}{ramp}{limit_found}, 30, 'the limit is found';
    like $r->{out}, qr/refused after .*: 503 TOO_MANY_SESSIONS$/m, 'the server says why';
    is_deeply [map { $_->{score} } @{ $r->{json}{predictions} }], ['hit', 'hit'], 'as was predicted';

    $r = ramp(4, qw(--no-stop --session upload:2KiB --arrive 0 --hold 3s --settle 300ms --drain 2s --limit 30));
    my $p = $r->{json}{past_limit};
    is $p->{inside} + $p->{own}, 30, 'as many as are allowed are in' or diag $r->{out}, $r->{err};
    is_deeply [@$p{qw(extra refused let_in timed_out failed)}], [10, 10, 0, 0, 0], 'ten more: all refused';
    cmp_ok $p->{refusal_max_ms}, '<', 25_000, 'before any time limit of a request is over';
    cmp_ok $p->{"upload_p95_${_}_ms"}, '>', 0, "those inside were measured $_" for qw(before during);
    like $r->{out}, qr/^  (?:ok|VIOLATED) +limit +30 sessions in \(4 of the set-up\), 10 more: 10 refused/m, 'a row among the checks';

    serve('--max-sessions', 40);
    $r = ramp(4, qw(--no-stop --session upload:2KiB --arrive 0 --hold 1s --settle 0 --drain 2s --limit 30));
    is $r->{status}, 1, 'a limit that does not hold' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/10 sessions beyond the limit of 30 were let in/, 'is told';
};

# A commit holds its account for 1 s, so that each of the four accounts takes one upload a second: the lines cross at
# four sessions, and above by what an upload is more than its commit: two sessions that are alone with their accounts
# show that. A machine that stops for a moment puts a short measurement off, a longer one less.
subtest 'a knee where the arithmetic puts it' => sub {
    serve('--fault', 'slow-commit');
    my ($r, @knees, @most);
    for my $hold (2, 8, 30) {
        $r = ramp('2,12', qw(--no-stop --session upload:1KiB --arrive 0 --settle 300ms --drain 1s --repeat 3 --keep --expect knee=4 --hold), "${hold}s");
        @knees = @{ $r->{json}{knee}{passes} // [] };
        @most = map { 4 * $_->{upload_p50_ms} / 1000 * 1.25 + 0.5 } grep { $_->{sessions} == 2 } @{ $r->{json}{steps} // [] };
        last if @knees == 3 && !grep { !defined $_->{sessions} || $_->{sessions} < 3 } @knees and !grep { $knees[$_]{sessions} > $most[$_] } 0 .. 2;
    }
    is $r->{status}, 0, 'three ramps' or diag $r->{out}, $r->{err};
    for (0 .. $#knees) {
        is $knees[$_]{state}, 'found', 'a knee';
        cmp_ok $knees[$_]{sessions}, '>=', 3, 'not below four';
        cmp_ok $knees[$_]{sessions}, '<=', $most[$_], 'nor above what an upload by itself takes' or diag $r->{out};
        ok defined $knees[$_]{set_by}, "set by $knees[$_]{set_by}";
    }
    is scalar @knees, 3, 'three times of three' or diag $r->{out};
    ok defined $r->{json}{steps}[1]{server}{$_}, "$_ stands beside the step" for qw(cpu_pct pg_commits_per_s pg_locks_waited);
    ok !exists $r->{json}{ramp}{knee}, 'of three ramps there is no single number';
    my ($least) = sort { $a <=> $b } map { $_->{sessions} } @knees;
    my ($limit) = $r->{out} =~ /^recommended  a limit of (\d+) sessions?: 70 %/m;
    ok $limit && $limit <= 0.7 * ($least + 0.06) && $limit + 1 > 0.7 * ($least - 0.06), 'a limit below it' or diag $r->{out};
};

subtest 'a server that stops' => sub {
    serve();
    my $h = start(qw(8 --session apps --per-minute 600 --folders 3 --arrive 0 --hold 10min --settle 0 --timeout 5s --run-dir stopped --stop-on timed_out>0));
    ok wait_until(sub { -e "$dir/stopped/watch.csv" && $stack->sql("SELECT count(*) FROM locks WHERE expires_at > now()") > 0 }), 'apps at work, with locks';
    kill 'STOP', $server->pid;
    my $from = time;
    sim_await($h, sub { 0 });
    my $took = time - $from;
    kill 'CONT', $server->pid;
    sim_finish($h);
    is $h->{status}, 4, 'ends the ramp' or diag $h->{out}, $h->{err};
    cmp_ok $took, '<', 300, "after the first timeout, not at the end of its ten minutes (${took} s)";
    is report()->{stopped}{condition}, 'timed_out>0', 'for what was agreed';
    like $h->{err}, qr/stopped by timed_out>0: \d+ at the step of 8 sessions/, 'in a sentence';
    $stack->sql('DELETE FROM locks'); # nobody could let them go
};

subtest 'a disk that is full' => sub {
    serve();
    my $h = start(qw(8 --no-stop --session apps --per-minute 600 --folders 3 --arrive 0 --hold 10min --settle 0 --run-dir full --stop-on failed_pct>2));
    ok wait_until(sub { $stack->sql("SELECT count(*) FROM locks WHERE expires_at > now()") > 0 }), 'apps at work, with locks';
    my $fill = $stack->start([qw(stack fill store --for 10min)]);
    ok sim_await($h, sub { $_[0]{err} =~ /stopped by/ }), 'what fails is counted';
    kill 'TERM', $fill->{pid};
    sim_finish($h);
    is $h->{status}, 4, 'ends the ramp' or diag $h->{out}, $h->{err};
    is report()->{stopped}{condition}, 'failed_pct>2', 'for what was agreed';
    is $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()'), 0, 'and leaves no lock';
    is sim_finish($fill)->{status}, 130, 'the disk has room again';
};

# A group that may use 1 % of a processor; undef where none can be made, or where it limits nothing.
sub tiny_group {
    my $v2 = -e '/sys/fs/cgroup/cgroup.controllers';
    my $group = ($v2 ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu') . "/drivesim-$$";
    mkdir $group or return;
    eval { $v2 ? spew("$group/cpu.max", '1000 100000') : spew("$group/cpu.cfs_quota_us", 1000); 1 } or do { rmdir $group; return };
    my $pid = fork // die "fork: $!";
    if (!$pid) { # so much is had at once, but not in a hundred times that
        eval { spew("$group/cgroup.procs", $$) };
        for (my $end = time + 4; time < $end;) { POSIX::_exit(1) if (times)[0] > 0.1 }
        POSIX::_exit(0);
    }
    waitpid $pid, 0;
    return $group if $? == 0;
    rmdir $group;
    return;
}

subtest 'a tiny cgroup' => sub {
    my $group = tiny_group() or plan skip_all => 'no cgroup limits processors here';
    serve();
    my $h = start(qw(48 --no-stop --session upload:64KiB --arrive 0 --hold 10min --settle 0 --run-dir tiny --stop-on max_upload>1500ms));
    ok said('tiny', 'sessions.csv', qr/,upload,/), 'uploads';
    spew("$group/cgroup.procs", $server->pid);
    sim_finish($h);
    is $h->{status}, 4, 'ends the ramp' or diag $h->{out}, $h->{err};
    undef $server;
    ok wait_until(sub { rmdir $group }), 'the group is gone';
};

# ---- X04: the kill switch
for my $drill (['X04: the kill switch at 25 sessions', 'run', 25, qw(5 60 240)],
               ['X04: the kill switch at 400 sessions', 'ramp', 400, qw(--no-stop --session upload:1KiB --arrive 0 --hold 4min)]) {
    my ($name, $command, $n, @args) = @$drill;
    subtest $name => sub {
        serve();
        my $dir_name = "drill-$n";
        my $h = $stack->start([$command, $n, @args, '--run-dir', $dir_name, '--json', 'r.json'], target());
        my $ready = $command eq 'run' ? sub { $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()') > 0 } : sub { -e "$dir/$dir_name/sessions.csv" && slurp("$dir/$dir_name/sessions.csv") =~ /^1,400,upload/m };
        ok wait_until($ready), 'all at work';
        my $rss = resident_kib($h->{pid});
        is $stack->sim(['stop', 'another'], target())->{status}, 0, 'the name of another run';
        ok kill(0, $h->{pid}), 'ends nothing';
        my $s = $stack->sim(['stop', $n == 25 ? () : $dir_name], target());
        is $s->{status}, 0, 'sim stop' or diag $s->{out}, $s->{err};
        like $s->{out}, qr{^stopping: sim $command, process $h->{pid} since \S+, target localhost:\d+, \S*/$dir_name$}m, 'says whom it ends';
        ok !-e "/proc/$h->{pid}/cmdline" || slurp("/proc/$h->{pid}/cmdline") eq '', 'and comes back when it has ended';
        cmp_ok $s->{seconds}, '<', 150, "not at the end of its minutes ($s->{seconds} s)";
        sim_finish($h);
        is $h->{status}, 130, 'interrupted' or diag $h->{out}, $h->{err};
        like $h->{err}, qr/stopped by 'sim stop'/, 'it says by whom';
        like $h->{out}, qr/^summary of $command/m, 'with a report';
        is report()->{exit}, 130, 'as JSON too';
        is $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()'), 0, 'no lock is left';
        cmp_ok $rss, '<', 200 * 1024, "in little memory ($rss KiB)" if $n == 400 && !sanitized();
    };
}

# From another machine: one that shares Redis alone. The store is first let finish what four hundred sessions have sent.
serve();
ok wait_until(sub { $stack->sim(['doctor'], target())->{out} =~ /^  ok +S3 bucket .* work$/m }), 'the store answers';
my $h = $stack->start([qw(ramp 3 --no-stop --session upload:1KiB --arrive 0 --hold 10min --run-dir afar)], target());
ok said('afar', 'sessions.csv', qr/,upload,/), 'a generator at work';
my $redis = $stack->env->{REDIS_URL};
ok wait_until(sub { `redis-cli -u $redis CLIENT LIST` =~ / name=drivesim:\S+:ramp:afar:\S+ / }), 'is seen on Redis';
my $s = $stack->sim(['stop', 'runs/afar'], env => { %{ (target())[1] }, TMPDIR => tempdir(CLEANUP => 1), REDIS_URL => $redis });
like $s->{out}, qr/^stopping: sim ramp, process $h->{pid} on \S+, target \S+, afar$/m, 'where it is';
is $s->{status}, 0, 'and waited for' or diag $s->{out}, $s->{err};
sim_finish($h);
is $h->{status}, 130, 'it ended';
like $stack->sim(['stop'], target())->{out}, qr/^no generator runs for localhost:\d+/, 'no other runs';

undef $server;
$stack->close;
done_testing;
