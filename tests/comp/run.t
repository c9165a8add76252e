# sim run against a scripted server: what the user sees of a plan, a course, an end. Cases L04 L05 L07 L08 L10 L20, X03 to
# X05, E12 and the plan's refusals.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use FakeDrive;
use Sim;

my $dir = tempdir(CLEANUP => 1);
my $n = 0;

# Starts sim run against $d; finish with done_run.
sub start_run { my ($d, @args) = @_; my $json = "$dir/" . ++$n . '.json'; my $h = sim_start(['run', @args, '--json', $json], env => { TMA_URL => $d->url }, dir => $dir); $h->{json_name} = $json; return $h }
sub done_run { my ($h, $timeout) = @_; sim_finish($h, $timeout // 60); $h->{json} = $h->{json_name} ? json_file($h->{json_name}) : {}; return $h }
sub run_sim { return done_run(start_run(@_)) }
sub in_window { my ($h) = @_; return sim_read($h, 20, sub { $_[0]{out} =~ /measured window begins/ }) }
sub ops { my ($h, $op) = @_; return $h->{json}{operations}{$op} // { ok => 0, failed => 0 } }

# The tables of a report: [{op => [ok, failed, p50, p95, p99, slowest]}, …], the last is the summary's.
sub tables {
    my ($text) = @_;
    my @t;
    for (split /\n/, $text) {
        if (/^operation +ok +failed/) { push @t, {} }
        elsif (@t && /^([a-z][a-z ]+?) {2,}(\d+) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)/) { $t[-1]{$1} = [ $2, $3, $4, $5, $6, $7 ] }
    }
    return @t;
}

# ---- a plain run: every figure adds up
my $d = FakeDrive->new(sub_users => 3, folders => 12, files => 5);
my $r = run_sim($d, qw(6 5 120 4 --report-every 1));
is $r->{status}, 0, 'a plain run' or diag $r->{out}, $r->{err};
is $r->{json}{failed}, 0, 'without failures';
is $r->{json}{causes}{first_pass}, 30, 'each app lists its folders once at first';
is ops($r, 'full_pass')->{ok}, 6, 'in one full pass an app';
is ops($r, 'first_list')->{ok}, 30, 'counted apart from later listings';
is $r->{json}{apps}{streams_up}, 6, 'all streams are up';
is $r->{json}{seconds}, 4, 'the measured time is the one asked for';
my $sum = 0;
$sum += $_ for values %{ $r->{json}{causes} };
is $sum, $r->{json}{requests}, 'every request has a cause';
is $d->count(qr{^GET \S+/download}), ops($r, 'download')->{ok} + ($r->{json}{checks}[4]{examined} // 0),
    'the server saw as many downloads as are reported, and those of the check';
my @t = tables($r->{out});
cmp_ok scalar(@t), '>=', 6, 'arrival, four intervals, summary';
for my $op ('download', 'save', 'list', 'first list', 'changes') {
    my $parts = 0;
    $parts += $_->{$op} ? $_->{$op}[0] : 0 for @t[ 0 .. $#t - 1 ];
    is $parts, $t[-1]{$op} ? $t[-1]{$op}[0] : 0, "$op: the intervals add up to the summary";
}
unlike $r->{out}, qr/[\e\r]/, 'plain text in a pipe';
like $r->{out}, qr/^healthy$/m, 'healthy';
is $d->state->{locks}, 0, 'no lock is left';
is $d->state->{streams_open}, 0, 'no stream either';
my ($plan) = $r->{out} =~ /^plan: seed 1 \((\w+)\)/m;
ok -s "$dir/$r->{json}{run_dir}/ledger.bin" && -s "$dir/$r->{json}{run_dir}/run.json", 'ledger and settings are kept';
my $settings = json_file("$dir/$r->{json}{run_dir}/run.json");
is $settings->{apps}, 6, 'what was asked for';
is scalar(@{ $settings->{logins} }), 4, 'and who was used';
unlike slurp("$dir/$r->{json}{run_dir}/run.json"), qr/password|token/i, 'no secret';

# ---- the same seed plans the same, another one does not
$r = run_sim($d, qw(6 5 120 1s --no-ledger --seed 2));
unlike $r->{out}, qr/^plan: seed 2 \($plan\)/m, 'another seed, another plan';
is $r->{json}{run_dir}, undef, '--no-ledger keeps nothing';
my $again = FakeDrive->new(sub_users => 3, folders => 12, files => 5);
my $h1 = start_run($again, qw(6 5 120 4 --no-ledger));
$r = done_run($h1);
like $r->{out}, qr/^plan: seed 1 \($plan\)/m, 'the same seed, the same plan';

# ---- L04: the rate is kept whatever the service time; first actions are spread
{
    my ($fast, $slow) = map { FakeDrive->new(sub_users => 1, folders => 4, files => 20) } 1 .. 2;
    my @h = (start_run($fast, qw(20 2 60 6 --no-ledger)), start_run($slow, qw(20 2 60 6 --no-ledger)));
    in_window($h[1]);
    $slow->rule(path => qr{/(download|replace|lock|upload|rename|move|copy|delete|folder)}, delay => 0.2);
    done_run($_) for @h;
    for (@h) {
        my ($planned) = $_->{out} =~ /actions   planned (\d+)/;
        my $started = $_->{json}{actions}{planned} - $_->{json}{actions}{not_started};
        is $planned, 120, '20 apps, 60 a minute, 6 s: 120 actions planned';
        cmp_ok $started, '>=', 114, 'and at least 95 of 100 started';
    }
    my @at = map { $_->{t} } grep { "$_->{method} $_->{path}" =~ m{/(download|lock|upload|rename|move|copy|delete|folder)$} } @{ $fast->log };
    my $first = (sort { $a <=> $b } @at)[0];
    my $second1 = grep { $_ < $first + 1 } @at;
    cmp_ok $second1, '<', 45, 'not all in the first second';
    cmp_ok ops($h[1], 'download')->{from_due}{p50_ms}, '>=', 200, 'slow answers are in the latency';
}

# ---- L05: arrivals are evenly spaced, and no part of the measured time
{
    my $even = FakeDrive->new(sub_users => 1, folders => 4);
    my $h = run_sim($even, qw(12 2 0 1s --arrive 10 --no-ledger));
    my @at = map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $even->log };
    is scalar(@at), 12, 'a stream an app';
    my @gap = map { $at[$_] - $at[ $_ - 1 ] } 1 .. $#at;
    ok !(grep { $_ < 0.05 || $_ > 0.25 } @gap), 'a tenth of a second apart' or diag "@gap";
    is $h->{json}{seconds}, 1, 'the measured time starts afterwards';
}

# ---- L10: an interval's figures are its own
{
    my $late = FakeDrive->new(sub_users => 1, folders => 4, files => 20);
    my $h = start_run($late, qw(10 2 120 6 --report-every 2 --no-ledger));
    sim_read($h, 20, sub { $_[0]{out} =~ /  4 s of 6 s/ });
    $late->rule(path => qr{/download}, delay => 0.3);
    done_run($h);
    my @iv = tables($h->{out});
    cmp_ok $iv[1]{download}[2], '<', 100, 'fast before the change';
    cmp_ok $iv[-2]{download}[2], '>', 250, 'the interval after it shows the change alone';
    cmp_ok $iv[-1]{download}[2], '<', 250, 'the summary covers all';
}

# ---- L20, S05: sign-in and cold listings have rows of their own
{
    my $cold = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
    $cold->rule(path => qr{/api/login}, delay => 0.4);
    my $h = start_run($cold, qw(2 2 120 4 --no-ledger));
    sim_read($h, 20, sub { $_[0]{out} =~ /^run: /m });
    $cold->rule(path => qr{^/api/files\?}, delay => 0.4, times => 4);
    done_run($h);
    cmp_ok ops($h, 'sign_in')->{p50_ms}, '>=', 400, 'sign-in is slow';
    cmp_ok ops($h, 'first_list')->{max_ms}, '>=', 400, 'first listings are slow';
    cmp_ok ops($h, 'full_pass')->{max_ms}, '>=', 800, 'so is the full pass';
    cmp_ok ops($h, 'list')->{p95_ms} // 0, '<', 300, 'later listings are not';
    is $h->{json}{seconds}, 4, 'and the measured time is as asked';
}

# ---- L07: a server that stops answering
{
    my $dead = FakeDrive->new(sub_users => 1, folders => 4);
    $dead->rule(path => qr{^/api/files(?:\?|/changes|/events)}, hang => 1, after => 5); # the root and 4 folders are read
    my $h = run_sim($dead, qw(2 4 60 5 --grace 2));
    isnt $h->{status}, 0, 'not a success';
    cmp_ok $h->{seconds}, '<', 5 + 2 + 3, 'over within the time and the grace';
    cmp_ok $h->{json}{failed}, '>=', 2, 'open calls are counted';
    cmp_ok $h->{json}{seconds}, '<=', 5, 'the elapsed time is sane';
    is ops($h, 'first_list')->{p50_ms}, undef, 'no samples: null';
    unlike slurp($h->{json_name}), qr/nan|inf(?!o)/i, 'no NaN';
    like $h->{out}, qr/^full pass +0 +2 +- +- +- +-/m, 'and "-" in the text';
}

# ---- L08: one sample fills every column
{
    my $one = FakeDrive->new(sub_users => 0, folders => 1);
    my $h = run_sim($one, qw(1 1 0 1s --no-ledger));
    my @t1 = tables($h->{out});
    my $row = $t1[-1]{'full pass'};
    is $row->[0], 1, 'one sample';
    is scalar(grep { $_ ne $row->[2] } @$row[ 2 .. 5 ]), 0, 'the same value everywhere';
}

# ---- E12: an app's stream delays none of its other requests
{
    my %p50;
    for my $events (0, 1) {
        my $e = FakeDrive->new(sub_users => 1, folders => 4, files => 20, caps => { events => $events });
        my $h = run_sim($e, qw(4 2 120 3 --no-ledger));
        $p50{$events} = ops($h, 'download')->{p50_ms};
        is $h->{json}{failed}, 0, $events ? 'with streams' : 'without streams';
    }
    cmp_ok $p50{1}, '<', 5 * $p50{0} + 20, 'downloads are as fast with the stream as without';
}

# ---- refused before the start, with the number that would do
{
    my $few = FakeDrive->new(sub_users => 1, folders => 10);
    my $h = run_sim($few, qw(41 2 1 10));
    is $h->{status}, 3, 'too few logins for the streams';
    like $h->{err}, qr/41 apps need more than the 2 logins.*2 sub-users would do/, 'how many would do';
    is $few->count(qr{/events}), 0, 'nothing was started';
    $h = run_sim($few, qw(20 8 30 900));
    is $h->{status}, 3, 'too many requests for the budgets';
    like $h->{err}, qr/requests in 15 minutes, 10000 are allowed: \d+ sub-users would do/, 'how many would do';
    $h = done_run(sim_start([qw(run 100 2 1 5)], env => { TMA_URL => $few->url }, dir => $dir, wrap => [ 'sh', '-c', 'ulimit -n 64; exec "$@"', 'sh' ]));
    is $h->{status}, 3, 'too few open files';
    like $h->{err}, qr/100 apps need \d+ open files, 64 are allowed/, 'both numbers are told';
    $h = run_sim($few, qw(2 2 1 1s --mix /nonexistent));
    is $h->{status}, 2, 'a mix that is not there';
    my $locked = FakeDrive->new(password => 'another');
    $h = run_sim($locked, qw(2 2 1 1s));
    is $h->{status}, 3, 'a server that was not seeded';
    like $h->{err}, qr/owner\@load\.test cannot sign in.*sim seed/, 'one sentence';
    my $empty = FakeDrive->new(folders => 0);
    $h = run_sim($empty, qw(2 2 1 1s));
    is $h->{status}, 3, 'no folders';
    like $h->{err}, qr/no folders to open.*sim seed/, 'one sentence';
    my $taken = FakeDrive->new;
    mkdir "$dir/taken";
    spew("$dir/taken/ledger.bin", '');
    $h = run_sim($taken, qw(2 2 1 1s --run-dir taken));
    is $h->{status}, 3, 'a run folder in use';
    like $h->{err}, qr/ledger\.bin is there already/, 'is not written over';
}

# ---- X04, X05: reports at once, one Ctrl-C drains, two end
{
    my $s = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $h = start_run($s, qw(6 4 120 60 --grace 3 --report-every 1));
    ok in_window($h), 'the first report is there at once';
    ok sim_read($h, 5, sub { $_[0]{out} =~ /  2 s of 60 s/ }), 'and each interval';
    kill INT => $h->{pid};
    done_run($h, 10);
    is $h->{status}, 130, 'one Ctrl-C: 130';
    like $h->{out}, qr/summary of run: interrupted after \d/, 'a full summary says so';
    is ops($h, 'full_pass')->{ok}, 6, 'with all figures';
    is $h->{json}{failed}, 0, 'what ran was finished';
    is $s->state->{locks}, 0, 'locks are let go';
    is $s->state->{streams_open}, 0, 'streams closed';

    $h = start_run($s, qw(6 4 120 60 --grace 20));
    in_window($h);
    $s->rule(path => qr{/(download|replace)}, hang => 1);
    sim_read($h, 2, sub { 0 });
    kill INT => $h->{pid};
    ok !sim_read($h, 1, sub { $_[0]{out} =~ /summary/ }), 'a hung server holds the drain';
    my $t0 = Time::HiRes::time();
    kill INT => $h->{pid};
    done_run($h, 10);
    is $h->{status}, 130, 'twice: 130';
    cmp_ok Time::HiRes::time() - $t0, '<', 3, 'at once';
    like $h->{out}, qr/summary of run: interrupted after \d/, 'and still tells what there is';
    is $s->state->{locks}, 0, 'locks are let go even then';

    $s->rules_clear;
    $h = start_run($s, qw(6 4 120 60 --grace 3));
    in_window($h);
    kill TERM => $h->{pid};
    is done_run($h, 10)->{status}, 130, 'SIGTERM is as Ctrl-C';
}

# ---- X03: the reader goes away
{
    my $s = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $out = do {
        local $ENV{TMA_URL} = $s->url;
        my $sim = sim_path();
        `cd $dir && bash -c 'set -o pipefail; $sim run 4 4 120 30 --report-every 1 2>err | head -1'`;
    };
    is $? >> 8, 141, 'status 141, as standard tools';
    like $out, qr/\Atarget: /, 'the first line came';
    unlike slurp("$dir/err"), qr/pipe|signal|abort/i, 'no crash text';
    is $s->state->{locks}, 0, 'locks are let go';
}

done_testing;
