# sim ramp on a scripted server: steps, what sessions do, refusals and silence told apart, drains, an interruption.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use File::Temp;
use Runs;
use Sim;

my $dir = File::Temp::tempdir(CLEANUP => 1);
sub ramp { my ($d, @args) = @_; return sim(['ramp', @args, '--no-stop', '--json', 'r.json'], dir => $dir, env => { TMA_URL => $d->url }) }
sub report { return json_file("$dir/r.json") }

my $d = FakeDrive->new(sub_users => 3, folders => 4, files => 4);

# ---- uploads: steps, figures, nothing left
$d->rule(method => 'POST', path => qr{^/api/files/upload$}, delay => 0.02);
my $r = ramp($d, '2:6:+2', qw(--session upload:20KiB --hold 1s --settle 200ms --arrive 100/s --link 10MB/s));
is $r->{status}, 0, 'uploads' or diag $r->{out}, $r->{err};
my $j = report();
is_deeply [map { $_->{sessions} } @{ $j->{steps} }], [2, 4, 6], 'the steps asked for';
for my $s (@{ $j->{steps} }) {
    my $n = $s->{sessions};
    is $s->{ok}, $n, "$n sessions: all well";
    is $s->{up}, $n, "$n sessions: all at once";
    cmp_ok $s->{uploads}, '>', $n, "$n sessions: again and again";
    cmp_ok $s->{upload_p50_ms}, '<=', $s->{upload_p95_ms}, "$n sessions: percentiles rise";
    cmp_ok abs($s->{expected_upload_p95_ms} - $n * 20480 / 1e4), '<', 0.1, "$n sessions: what the link would take";
    cmp_ok $s->{measured_seconds}, '>', 0.6, "$n sessions: measured after settling";
    cmp_ok $s->{measured_seconds}, '<=', $s->{seconds}, "$n sessions: for a part of the step";
}
my @lines = split /\n/, slurp("$dir/$j->{run_dir}/steps.csv");
is scalar @lines, 4, 'steps.csv: a line a step, under their names';
like $lines[0], qr/^sessions,up,ok,refused,timed_out,failed,/, 'by name';
like $lines[3], qr/^6,6,6,0,0,0,0,(?:[\d.]+,){3}\d+,/, 'sessions, sign-ins, uploads';
like $lines[3], qr/,,,/, 'what was not measured is empty';
is scalar(grep { /^\d+,\d+,upload,/ } split /\n/, slurp("$dir/$j->{run_dir}/sessions.csv")), $j->{operations}{upload}{ok}, 'sessions.csv: a line an upload';
cmp_ok $d->count(qr{^POST /api/files/delete}), '>', 0, 'what was uploaded is removed';
my $page = sim(['report', $j->{run_dir}, '--html', 'ramp.html', '--hdr', 'ramp.hdr'], dir => $dir);
is $page->{status}, 0, 'a page of it, afterwards' or diag $page->{err};
like slurp("$dir/ramp.html"), qr{<title>Bytes moved by step</title>}, 'with its steps';
is scalar(() = slurp("$dir/ramp.hdr") =~ /^Tag=upload,/mg), 3, 'HDR: a histogram a step';

# ---- no room for the lines of its sessions
my $full = sim([qw(ramp 6 --session upload:1KiB --arrive 0 --hold 1s --settle 0 --no-stop --run-dir full)], dir => $dir,
    env => { TMA_URL => $d->url }, wrap => ['sh', '-c', 'trap "" XFSZ; ulimit -f 2; exec "$@"', 'sh']);
is $full->{status}, 3, 'a full disk: status 3' or diag $full->{out}, $full->{err};
like $full->{err}, qr{cannot write (?:all of )?full/sessions\.csv(?::(?! Success)|$)}m, 'and said plainly';

$d->rules_clear;

# ---- each once
$r = ramp($d, 5, qw(--session upload:1KiB --hold 0 --arrive 0));
is $r->{status}, 0, 'without a hold' or diag $r->{out}, $r->{err};
is report()->{steps}[0]{uploads}, 5, 'each session uploads once';

# ---- arrivals
my $before = $d->count(qr{^POST /api/login});
$r = ramp($d, 6, qw(--session sign-in --hold 0 --arrive 10/s));
cmp_ok report()->{steps}[0]{seconds}, '>=', 0.5, 'sessions come at the rate asked for';
is report()->{steps}[0]{ok}, 6, 'all sign in';
my $setup = $d->count(qr{^POST /api/login}) - $before - 6; # sign-ins that come before those of the step

# ---- who uploads signs in for it, unless that would spend the logins' budgets
$r = ramp($d, '3', qw(--session upload:1KiB --hold 0 --arrive 0 --expect p50_login@3<1min --expect p50<1min --expect p95_login@3<1min));
is_deeply [map { $_->{score} } @{ report()->{predictions} }], ['hit', 'hit', 'too few samples'], 'sign-ins are timed; a p95 of three is none' or diag $r->{out};
is_deeply report()->{steps}[0]{few_samples}{sign_in_p95_ms}, { samples => 3, needs => 20 }, 'nor in the figures';
like $r->{out}, qr/^ +3 .* ~[\d.]+ \/ ~[\d.]+ /m, 'nor in the table';
$r = ramp($d, '60', qw(--session upload:1KiB --hold 0 --arrive 0));
ok !report()->{operations}{sign_in}, 'sixty sign-ins of four logins are too many' or diag $r->{out};
like $r->{out}, qr/^ +sessions share the sign-ins of 4 logins: /m, 'it says so';
is report()->{steps}[0]{ok}, 60, 'and all upload';
$d->rule(method => 'POST', path => qr{^/api/login}, status => 429, body => { error => 'too many' });
$r = ramp($d, '3', qw(--session upload:1KiB --hold 0 --arrive 0));
is_deeply [@{ report()->{steps}[0] }{qw(ok refused)}], [3, 0], 'a budget that is spent all the same refuses no session' or diag $r->{out};
like $r->{err}, qr/budgets of sign-ins are spent \(429\)/, 'but is told';
$r = ramp($d, '3', qw(--session upload:1KiB --hold 0 --arrive 0 --own-sign-in));
is report()->{steps}[0]{refused}, 3, 'unless each must have its own' or diag $r->{out};
$d->rules_clear;

# ---- refused, silent, broken: told apart
$d->rule(method => 'POST', path => qr{^/api/login}, after => $setup + 1, times => 2, status => 429, body => { error => 'too many' });
$d->rule(method => 'POST', path => qr{^/api/login}, after => $setup + 3, times => 1, hang => 1);
$d->rule(method => 'POST', path => qr{^/api/login}, after => $setup + 4, times => 1, status => 500, body => { message => 'oops' });
$r = ramp($d, 6, qw(--session sign-in --hold 500ms --arrive 20/s --timeout 5s));
my $s = report()->{steps}[0];
is_deeply [@$s{qw(ok refused timed_out failed unfinished)}], [2, 2, 1, 1, 0], 'refused, timed out and failed are told apart' or diag explain $s, $r->{out}, $r->{err};
is $r->{status}, 0, 'they are what is measured, no failure of the command';
$d->rules_clear;

# ---- a step is not left before the server is as quick as before
$d->rule(method => 'GET', path => qr{^/api/files\?}, delay => 1.5, after => 6, times => 2);
$r = ramp($d, '2,2', qw(--session upload:1KiB --hold 0 --arrive 0));
cmp_ok report()->{steps}[0]{drained_seconds}, '>', 1, 'a slow server is waited for' or diag $r->{out}, $r->{err};
$d->rules_clear;

# ---- desktop apps
$r = ramp($d, '1,2', qw(--session apps --hold 3s --settle 1s --arrive 0 --folders 3 --per-minute 120 --drain 1s));
is $r->{status}, 0, 'apps' or diag $r->{out}, $r->{err};
is_deeply [map { $_->{up} } @{ report()->{steps} }], [1, 2], 'so many at once';
cmp_ok report()->{steps}[1]{operations}{download}{ok} // 0, '>', 0, 'they do what apps do';
cmp_ok report()->{steps}[1]{operations_per_s}, '>', 0, 'at a rate';

# ---- what was agreed beforehand ends it at once
$d->rule(method => 'POST', path => qr{^/api/files/upload$}, after => 20, hang => 1);
$r = ramp($d, '2,2', qw(--session upload:1KiB --hold 5min --settle 0 --arrive 0 --timeout 3s --stop-on timed_out>0 --expect ok=2 --expect p95_upload@2<5s --expect knee=3));
is $r->{status}, 4, 'a timeout after acceptance' or diag $r->{out}, $r->{err};
cmp_ok $r->{seconds}, '<', 250, 'ends the ramp, not its hold';
is report()->{stopped}{condition}, 'timed_out>0', 'the report says which';
is report()->{stopped}{sessions}, 2, 'where';
like $r->{out}, qr/^stopped +\S+, by timed_out>0: [12], at the step of 2 sessions/m, 'in words';
like $r->{err}, qr/stopped by timed_out>0/, 'and why it ended';
is scalar @{ report()->{steps} }, 1, 'no further step';
is report()->{steps}[0]{ok} + report()->{steps}[0]{timed_out} + report()->{steps}[0]{unfinished}, 2, 'all sessions accounted for';
is report()->{predictions}[$_]{score}, 'not measured', 'what was not held scores nothing' for 0 .. 2;
like slurp("$dir/" . report()->{run_dir} . '/predictions.txt'), qr/^predicted \S+\nok=2\n.*^scored/ms, 'predictions stand in the run folder';
$d->rules_clear;
$d->rule(method => 'POST', path => qr{^/api/files/upload$}, after => 5, status => 500, body => { message => 'oops' });
$r = ramp($d, 20, qw(--session upload:1KiB --hold 5min --settle 0 --arrive 0 --stop-on failed_pct>5));
is $r->{status}, 4, 'a share of failures' or diag $r->{out}, $r->{err};
$d->rules_clear;
$d->rule(method => 'POST', path => qr{^/api/files/upload$}, delay => 0.2);
$r = ramp($d, 5, qw(--session upload:1KiB --hold 5min --settle 0 --arrive 0 --stop-on p95.upload>100ms));
is $r->{status}, 4, 'a percentile' or diag $r->{out}, $r->{err};
cmp_ok report()->{stopped}{value}, '>=', 200, 'its value is told';
$d->rules_clear;

# ---- several ramps: ranges
$r = ramp($d, '1,2', qw(--session upload:1KiB --hold 400ms --settle 0 --arrive 0 --repeat 2 --drain 1s));
is_deeply [map { $_->{pass} } @{ report()->{steps} }], [1, 1, 2, 2], 'the whole ramp again';
cmp_ok report()->{ranges}[1]{mb_per_s}{least}, '<=', report()->{ranges}[1]{mb_per_s}{most}, 'every figure is a range';
is scalar @{ report()->{knee}{passes} }, 2, 'a knee each';
like $r->{out}, qr/^ranges over 2 ramps$/m, 'in the text';

# ---- an interruption ends the step, sums up and cleans up
my $h = sim_start(['ramp', '3,3', qw(--session upload:1MiB --hold 1min --arrive 0 --run-dir cut --json r.json)], dir => $dir, env => { TMA_URL => $d->url });
ok wait_until(sub { -e "$dir/cut/sessions.csv" && slurp("$dir/cut/sessions.csv") =~ /,upload,/ }), 'a ramp at work';
kill 'INT', $h->{pid};
sim_finish($h);
is $h->{status}, 130, 'interrupted' or diag $h->{out}, $h->{err};
is scalar @{ report()->{steps} }, 1, 'no further step is begun';
is report()->{steps}[0]{ok} + report()->{steps}[0]{unfinished}, 3, 'its sessions are accounted for';

# ---- a server that is gone for good: its report, and no step more
sub gone_at {
    my ($rule, $sign_in, @args) = @_; # once it was asked for so many sign-ins
    my $gone = FakeDrive->new(sub_users => 1, folders => 1, files => 1);
    $gone->rule(method => 'POST', path => qr{^/api/login$}, @$rule);
    my $h = sim_start(['ramp', @args, qw(--session sign-in --arrive 0 --drain 500ms --no-stop --json r.json)], dir => $dir, env => { TMA_URL => $gone->url });
    ok wait_until(sub { $gone->count(qr{^POST /api/login$}) >= $sign_in }), 'gone: a ramp at work';
    $gone->outage(600);
    sim_finish($h);
    is $h->{status}, 3, 'gone: status 3' or diag $h->{out}, $h->{err};
    like $h->{err}, qr/the server has answered nothing for \S+ \S+ after the step of 1 session: the ramp ends/, 'gone: says so' or diag $h->{out};
    return;
}
gone_at([delay => 0], 4, join(',', (1) x 60), qw(--hold 500ms --settle 0)); # one of the set-up
cmp_ok scalar @{ report()->{steps} }, '<', 60, 'gone: no further step';
gone_at([after => 1, delay => 600], 2, 1, qw(--hold 0));
is report()->{steps}[0]{failed}, 1, 'gone in the last step: it is told' or diag slurp("$dir/r.json");

# ---- what cannot be asked for
for (['25:400'], ['0'], ['5', '--arrive', 'fast'], ['5', '--session', 'download'], ['5', '--link', '110'], ['5', '--settle', '2s', '--hold', '1s'],
     ['5', '--session', 'apps', '--hold', '0'], ['5', '--expect', 'knee'], ['5', '--expect', 'p95_upload@6<1s'], ['5', '--stop-on', 'knee>3'],
     ['5', '--repeat', 0], ['5', '--limit', 10, '--hold', 0]) {
    $r = ramp($d, @$_);
    is $r->{status}, 2, "usage: @$_";
}
done_testing;
