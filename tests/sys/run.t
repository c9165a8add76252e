# The main job on real parts: the apps run, the figures add up, the checks hold; then the server is killed in mid-run.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 3 0.03)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};

sub report { return json_file("$stack->{dir}/run.json") }

# ---- a clean run
my $before = $stack->sql('SELECT now()');
$r = $stack->sim([qw(run 10 20 120 16 --json run.json)]);
is $r->{status}, 0, 'a clean run: exit status 0' or diag $r->{out}, $r->{err};
my $j = report();
is $j->{failed}, 0, 'no failures' or diag explain $j->{failures};
is $j->{apps}{planned}, 10, 'apps planned';
is $j->{apps}{streams_up}, 10, 'all streams up';
is $j->{exit}, 0, 'the JSON agrees with the exit status';
is $j->{causes}{first_pass}, 200, 'the first pass lists every open folder of every app';
is $j->{operations}{full_pass}{ok}, 10, 'one full pass an app';
for my $op (qw(download save upload)) {
    cmp_ok $j->{operations}{$op}{ok}, '>', 0, "$op: some were done";
    my $o = $j->{operations}{$op};
    ok $o->{p50_ms} <= $o->{p95_ms} && $o->{p95_ms} <= $o->{p99_ms} && $o->{p99_ms} <= $o->{max_ms}, "$op: percentiles in order";
    cmp_ok $o->{from_due}{max_ms}, '>=', $o->{max_ms}, "$op: from the due time is never less than from the send";
}
my $sum = 0;
$sum += $_ for values %{ $j->{causes} };
is $sum, $j->{requests}, 'every request has a cause';
is_deeply [grep { $_->{status} eq 'violated' } @{ $j->{checks} }], [], 'no check is violated';
my ($ledger) = grep { $_->{name} eq 'ledger' } @{ $j->{checks} };
is $ledger->{status}, 'ok', 'the ledger was judged';
cmp_ok $ledger->{examined}, '>', 0, 'and held acknowledged writes';
unlike $r->{out}, qr/[\e\r]/, 'no escape codes in a pipe';
like $r->{out}, qr/^full pass\s+10\s+0\s/m, 'the full pass stands in the text';

# ---- what the audit log tells of that run is its mix, action for action; the checks have read files besides. The server
# notes downloads a while after they were done.
{
    my $noted = "SELECT count(*) FROM audit_log WHERE action = 'file.download' AND created_at >= '$before'";
    ok wait_until(sub { $stack->sql($noted) >= $j->{operations}{download}{ok} + $j->{ledger}{files_read} }), 'downloads are noted';
    my $m = $stack->sim([qw(mix import --out run.mix --since), $before]);
    is $m->{status}, 0, 'mix import' or diag $m->{err};
    my %weight = slurp("$stack->{dir}/run.mix") =~ /^(\w+) (\d+) /mg;
    my @writes = qw(save upload trash rename copy new_folder move);
    is_deeply +{ map { $_ => $weight{$_} // 0 } @writes }, { map { $_ => $j->{operations}{$_}{ok} // 0 } @writes }, 'every write of the run counts'
      or diag slurp("$stack->{dir}/run.mix");
    cmp_ok $weight{download}, '>=', $j->{operations}{download}{ok}, 'and every download';
    my $q = $stack->sim([qw(mix sql --since), $before]);
    spew("$stack->{dir}/counts.csv", "action,actions\n" . $stack->sql($q->{out} =~ s/;\s*\z//r) =~ tr/|/,/r);
    $stack->sim([qw(mix import --out run.mix --since), $before]);
    is $stack->sim([qw(mix import counts.csv --out again.mix)])->{status}, 0, 'by its query and a file';
    is slurp("$stack->{dir}/again.mix") =~ s/\A.*//r, slurp("$stack->{dir}/run.mix") =~ s/\A.*//r, 'the same mix';
    $m = $stack->sim([qw(mix import --database), 'postgresql://me@db.example.com/drive']);
    is $m->{status}, 3, 'a database of another machine is not asked';
    like $m->{err}, qr/db\.example\.com.*run the query of `sim mix sql` there/, 'the way is told';
}

# ---- thresholds decide the exit status
$r = $stack->sim([qw(run 2 5 60 3 --mix again.mix --fail-on), 'download.slowest<0.001ms']);
is $r->{status}, judged($r, 1), 'a threshold that is missed: exit status 1';
like $r->{out} . $r->{err}, qr/download\.slowest/, 'and named';
$r = $stack->sim([qw(run 2 5 60 3 --fail-on), 'download.p99<<5']);
is $r->{status}, 2, 'a malformed threshold is a usage error';
unlike $r->{out}, qr/sign-in|window/, 'before anything starts';

# ---- the same judgement again, offline from the run's folder
my ($dir) = sort { -M $a <=> -M $b } glob "$stack->{dir}/runs/*";
ok -f "$dir/ledger.bin", 'the run keeps its ledger';

# ---- an acknowledged save that is taken back must be noticed
$r = $stack->sim([qw(run 6 20 120 8 --run-dir kept)]);
is $r->{status}, 0, 'a run to be spoilt' or diag $r->{out}, $r->{err};
is $stack->sim([qw(check --run kept --only ledger)])->{status}, 0, 'its ledger holds';
my ($lost) = split /\n/, $stack->sql("SELECT resource_id FROM audit_log WHERE action = 'file.upload' AND status = 'success'"
    . " AND resource_id IN (SELECT id FROM files WHERE deleted_at IS NULL) ORDER BY created_at DESC LIMIT 1");
SKIP: {
    skip 'no upload in that run', 2 unless $lost;
    $stack->sql("UPDATE files SET deleted_at = NULL, name = name WHERE id = '$lost'");
    $stack->sql("CREATE TABLE kept AS SELECT * FROM files WHERE id = '$lost'");
    $stack->sql("DELETE FROM files WHERE id = '$lost'");
    my $c = $stack->sim([qw(check --run kept --only ledger)]);
    is $c->{status}, 1, 'an acknowledged upload that is gone: exit status 1';
    like $c->{out}, qr/\Q$lost\E/, 'and named';
    $stack->sql('INSERT INTO files SELECT * FROM kept');
    $stack->sql('DROP TABLE kept');
}

# ---- the server dies in mid-run and comes back
my $h = $stack->start([qw(run 10 20 120 30 --json run.json --report-every 5)]);
ok sim_await($h, sub { ($_[0]{out} =~ s/^full pass//mgr) ne $_[0]{out} }), 'the apps are at work';
is $stack->stack('kill', 'server')->{status}, 0, 'the server is killed';
my $down = time;
sim_read($h, 3, sub { 0 });
is $stack->stack('start', 'server')->{status}, 0, 'and started again';
sim_finish($h);
$j = report();
my %check = map { $_->{name} => $_ } @{ $j->{checks} };
is $check{$_}{status}, 'ok', "after the kill: $_ holds" or diag explain $check{$_} for qw(aggregates storage structure ledger database);
is $j->{apps}{streams_up}, 10, 'every app came back' or diag $h->{out};
like $h->{out}, qr/unreachable|outage/i, 'the report shows the outage';
cmp_ok $j->{causes}{reconnect}, '>', 0, 'reconnects are counted';

# ---- Ctrl-C once: drained, reported, 130
my $since = $stack->sql('SELECT now()'); # a lock held when the server was killed above lapses by itself
$h = $stack->start([qw(run 10 20 60 120 --json run.json)]);
ok sim_await($h, sub { $_[0]{out} =~ /full pass|apps/ }), 'running';
sim_read($h, 4, sub { 0 });
kill 'INT', $h->{pid};
sim_finish($h);
is $h->{status}, 130, 'interrupted: exit status 130' or diag $h->{out}, $h->{err};
like $h->{out}, qr/interrupted after/, 'and says after how long';
is $stack->sql("SELECT count(*) FROM locks WHERE expires_at > now() AND locked_at >= '$since'"), 0, 'no lock is left';
is report()->{exit}, 130, 'the JSON too';
is $stack->sim(['check'])->{status}, 0, 'everything is exact afterwards';

done_testing;
