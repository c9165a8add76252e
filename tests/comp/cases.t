# Faults that people hit with load generators, each with its smallest input: the shared cases that need the whole program
# and a server that can be made to misbehave. tests/cases.txt says where the others are. What mostly waits is started
# together at the top and judged below; what needs a hand at the right moment is started where it is judged.
use strict;
use warnings;
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use Time::HiRes qw(time);
use lib 'tests/lib';
use Runs;

my $dir = run_folder();

sub median { my @v = sort { $a <=> $b } @_; return $v[ @v / 2 ] }

# Requests that are an action's own, or its first; not the question for locks, about a file that is not there.
my $ACTION = qr{^(?!POST \S+/z{16}/)(?:GET \S+/download|POST \S+/(?:lock|upload|rename|move|copy|delete|folder))$};

# ---- started together ------------------------------------------------------------------------------------------------

my (%drive, %run);

# 20 apps with a login each, an action every 2 s. The slow server takes 1 s for each: apps that waited for it before they
# counted their gap would do two thirds of the work.
for my $kind (qw(fast slow)) {
    my $d = $drive{$kind} = FakeDrive->new(sub_users => 19, folders => 4, files => 20);
    $d->rule(path => qr{/download$}, delay => 1) if $kind eq 'slow';
    $run{$kind} = start_run($d, qw(20 2 30 12 --no-ledger), $kind eq 'slow' ? mix("download 1\n") : ());
}

# What it has is asked, the root and four folders are read; then nothing about files is answered any more. And a server that never answers.
$drive{L07} = FakeDrive->new(sub_users => 1, folders => 4);
$drive{L07}->rule(path => qr{^/api/files(?:\?|/changes|/events)}, hang => 1, after => 7);
$run{L07} = start_run($drive{L07}, qw(2 4 60 5 --grace 2 --timeout 20min));
my $silent = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die $!;
$run{silent} = start_run('http://127.0.0.1:' . $silent->sockport, qw(2 1 60 5));

# A soft limit that is raised, and a hard one that is not enough.
$drive{L13} = FakeDrive->new(sub_users => 4, folders => 4);
$drive{hard} = FakeDrive->new(sub_users => 4, folders => 4);
my %under = (env => { TMA_URL => $drive{L13}->url }, wrap => [ 'sh', '-c', 'ulimit -S -n 64; exec "$@"', 'sh' ]);
$run{soft} = start_run(\%under, qw(20 2 0 1s));
$run{hard} = start_run({ env => { TMA_URL => $drive{hard}->url }, wrap => [ 'sh', '-c', 'ulimit -n 64; exec "$@"', 'sh' ] }, qw(100 2 1 5));

$drive{L15} = FakeDrive->new(sub_users => 1, folders => 2, files => 5);
$run{L15} = start_run($drive{L15}, qw(2 2 60 3 --no-ledger), mix("upload 1\nsave 1\n"));

$drive{L16} = FakeDrive->new(sub_users => 1, folders => 2);
$run{L16} = start_run('http://localhost:' . $drive{L16}->port, qw(2 2 60 1s --no-ledger));

$drive{L17} = FakeDrive->new(sub_users => 1, folders => 2);
$run{L17} = start_run({ env => { TMA_URL => $drive{L17}->url, map { $_ => 'http://127.0.0.1:9' } qw(http_proxy HTTP_PROXY https_proxy all_proxy ALL_PROXY) } },
    qw(2 2 60 1s --no-ledger));

# Each sign-in and each app's first listings are slow: the root and two folders are read before.
$drive{L20} = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
$drive{L20}->rule(path => qr{/api/login}, delay => 1.5);
$drive{L20}->rule(path => qr{^/api/files\?}, delay => 1.5, after => 4, times => 4);
$run{L20} = start_run($drive{L20}, qw(2 2 120 4 --no-ledger));

for my $streams (0, 1) {
    my $d = $drive{"E12 $streams"} = FakeDrive->new(sub_users => 1, folders => 4, files => 20, caps => { events => $streams });
    $run{"E12 $streams"} = start_run($d, qw(4 2 120 4 --no-ledger));
}

# Streams older than any timeout, kept alive by comments alone.
$drive{E13} = FakeDrive->new(sub_users => 1, folders => 2, keepalive => 0.5);
$run{E13} = start_run($drive{E13}, qw(2 2 0 12 --no-ledger --timeout 8s --stream-idle 8s));

# Three sign-ins, then a limiter that lets one through a second.
$drive{S05} = FakeDrive->new(sub_users => 5, folders => 2);
$drive{S05}->rule(method => 'POST', path => qr{/api/login}, after => $_, times => 1, status => 429, headers => { 'Retry-After' => 1 }, body => { error => 'Too many logins' })
    for 3, 5;
$run{S05} = start_run($drive{S05}, qw(6 2 1 1s --no-ledger));

# A decimal comma, in what is read and in what is written. (The C library leaks a LOCPATH.)
my $german = system("localedef -i de_DE -f UTF-8 $dir/de_DE.UTF-8 >/dev/null 2>&1") == 0;
$drive{X01} = FakeDrive->new(folders => 2);
$run{X01} = start_run({ env => { TMA_URL => $drive{X01}->url, LC_ALL => 'de_DE.UTF-8', LOCPATH => $dir, ASAN_OPTIONS => 'detect_leaks=0' } },
    qw(2 2 7.5 1.5s --no-ledger --csv run.csv --fail-on), 'seconds<1.6', '--fail-on', 'full_pass.p50<0.001') if $german;

# Nothing of the environment but the target; everything that is read from it empty.
$drive{X10} = FakeDrive->new(folders => 2);
my @names = qw(DATABASE_URL REDIS_URL TMA_LOAD_S3_ENDPOINT TMA_LOAD_S3_BUCKET TMA_LOAD_S3_ACCESS_KEY TMA_LOAD_S3_SECRET_KEY TMA_LOAD_PASSWORD
    HOME PATH USER LANG LC_ALL TERM TMPDIR TZ NO_COLOR);
$run{bare} = start_run({ wrap => [ 'env', '-i', 'TMA_URL=' . $drive{X10}->url ] }, qw(1 1 1 1s));
$run{empty} = start_run({ wrap => [ 'env', '-i', 'TMA_URL=' . $drive{X10}->url, map { "$_=" } @names ] }, qw(1 1 1 1s));

# The end of daylight saving time in New York, at 06:00 UTC, comes twenty seconds after the start.
my $fake = (grep { -x "$_/faketime" } split /:/, $ENV{PATH}) && sim(['--version'], wrap => ['faketime', '-f', '+1d'])->{status} eq '0';
for my $zone ($fake ? ('UTC', 'America/New_York') : ()) {
    $drive{$zone} = FakeDrive->new(folders => 2);
    my %opt = (env => { TMA_URL => $drive{$zone}->url, TZ => $zone, DONT_FAKE_MONOTONIC => 1 }, wrap => ['faketime', '-f', sprintf '%+ds', 1793512780 - time]);
    $run{$zone} = start_run(\%opt, qw(1 1 0 21 --no-ledger --report-every 2));
}

# ---- measurement -----------------------------------------------------------------------------------------------------

subtest 'L10: the reports after a slowdown show it, and all of them add up to the summary' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 20);
    my $h = start_run($d, qw(10 2 120 300 --report-every 1 --no-ledger));
    my $downloads = sub { my @t = tables($_[0]{out}); return map { $_->{download} // () } @t };
    # Those of a second are slow once those that were under way have ended; by then the fast ones are still the most.
    ok sim_await($h, sub { my $n = 0; $n += $_->[0] for $downloads->($_[0]); return $n >= 60 }), 'fast intervals';
    my $fast = $downloads->($h);
    $d->rule(path => qr{/download}, delay => 1.5);
    ok sim_await($h, sub { my @d = $downloads->($_[0]); return @d > $fast && grep { $_->[2] ne '-' && $_->[2] >= 1500 } @d[ $fast .. $#d ] }), 'a slow one';
    kill INT => $h->{pid};
    is done_run($h)->{status}, 130, 'and enough';
    my @t = tables($h->{out});
    my ($all, @parts) = reverse $downloads->($h);
    cmp_ok $all->[2], '<', 1500, 'undiluted by the fast ones, which are more';
    is $all->[5], (sort { $b <=> $a } map { $_->[5] } @parts)[0], 'the summary covers all: the slowest of all';
    for my $op (sort keys %{ $t[-1] }) {
        my $sum = 0;
        $sum += $_->{$op} ? $_->{$op}[0] : 0 for @t[ 0 .. $#t - 1 ];
        is $sum, $t[-1]{$op}[0], "$op: the intervals add up";
    }
};

subtest 'L04: the asked rate, whatever the service time; no waves' => sub {
    for my $kind (qw(fast slow)) {
        my $h = done_run($run{$kind});
        is $h->{json}{actions}{planned}, 120, "$kind: 20 apps, 30 a minute, 12 s: 120 actions";
        my $seen = $drive{$kind}->count($ACTION);
        my $more = ops($h, 'download')->{p50_ms} - ($kind eq 'slow' ? 1000 : 0);
        SKIP: { # who waits for an answer of more than two seconds cannot act every two seconds
            skip "$kind: this machine makes each request longer by $more ms", 1 if $more > 250;
            cmp_ok $seen, '>=', 95, "$kind: the server saw them, but for the last moment's";
        }
        cmp_ok $seen, '<=', 120, "$kind: and no others";
    }
    cmp_ok ops($run{slow}, 'download')->{p50_ms}, '>=', 1000, 'slow: service time is in the latency';
    cmp_ok ops($run{slow}, 'download')->{from_due}{max_ms}, '>', ops($run{slow}, 'download')->{max_ms} + 200, 'slow: what is due meanwhile waits, and that counts';
    my %first;
    for (@{ $drive{fast}->log }) { $first{ $_->{login} } //= $_->{t} if "$_->{method} $_->{path}" =~ $ACTION }
    my @at = sort { $a <=> $b } values %first;
    cmp_ok scalar(@at), '>=', 16, 'nearly each app acts';
    cmp_ok $at[-1] - $at[0], '>', 2, 'first actions are spread over more than the mean gap';
    my $crowd = 0;
    for my $from (@at) { my $together = grep { $_ >= $from && $_ < $from + 0.3 } @at; $crowd = $together if $together > $crowd }
    cmp_ok $crowd, '<', 0.8 * @at, 'no wave of all apps together';
};

subtest 'L05: arrivals are evenly spaced, and no part of the measured time' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 4);
    my $h = run_sim($d, qw(20 2 0 1s --arrive 10 --no-ledger));
    my @at = map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $d->log };
    is scalar(@at), 20, 'a stream an app';
    like $h->{out}, qr/arriving at 10 apps\/s/, 'the rate is stated';
    # How late each is, against the one that is least late: a busy machine delays some, and seldom most.
    my (@late, $late);
    for (1 .. 5) {
        @late = map { $at[$_] - $_ / 10 } 0 .. $#at;
        $late = median(@late) - (sort { $a <=> $b } @late)[0];
        last if $late < 0.25;
        my $again = FakeDrive->new(sub_users => 1, folders => 4);
        run_sim($again, qw(20 2 0 1s --arrive 10 --no-ledger));
        @at = map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $again->log };
    }
    cmp_ok $late, '<', 0.25, 'a tenth of a second apart, neither faster nor slower' or diag "@late";
    is $h->{json}{seconds}, 1, 'the measured time starts afterwards';
};

subtest 'L07: calls that never return end with the run' => sub {
    my $h = done_run($run{L07});
    is $h->{status}, 1, 'not a success';
    cmp_ok $h->{seconds}, '<', 300, 'over after the time and the grace, not when a time limit of a request is';
    cmp_ok ops($h, 'first_list')->{failed} + ops($h, 'changes')->{failed}, '>=', 2, 'each open call is counted';
    cmp_ok $h->{json}{seconds}, '<=', 5, 'the elapsed time is sane';
    is ops($h, 'full_pass')->{p50_ms}, undef, 'no samples: null';
    unlike slurp($h->{json_name}), qr/nan|inf(?!o)/i, 'no NaN';
    like $h->{out}, qr/^full pass +0 +2 +- +- +- +-/m, 'and "-" in the text';
    like $h->{out}, qr/^ +\d+  (?:changes|first list): not finished when the run ended$/m, 'the reason is the end of the run';
    $h = done_run($run{silent});
    is $h->{status}, 3, 'a server that never answers at all';
    like $h->{err}, qr/accepts connections but did not answer/, 'is named as that';
    cmp_ok $h->{seconds}, '<', 5 + 60, 'before the time and the grace are over';
    is $h->{json}{exit}, 3, 'with a whole JSON';
};

subtest 'L08: no sample is "-", one sample the same in every column' => sub {
    my @t = tables(done_run($run{bare})->{out});
    my $row = $t[-1]{'full pass'};
    is $row->[0], 1, 'one full pass';
    like $row->[5], qr/^\d+\.\d$/, 'with a figure';
    is scalar(grep { $_ ne "~$row->[5]" } @$row[ 2 .. 4 ]), 0, 'that is the p50, the p95, the p99, marked as of too few, and the slowest';
    my $dead = sim([qw(run 1 1 1 1 --json -)], env => { TMA_URL => 'http://127.0.0.1:1' }, dir => $dir);
    is $dead->{status}, 3, 'nothing listens';
    is_deeply(JSON::PP->new->decode($dead->{out})->{operations}, {}, 'no operation, and a whole JSON');
    unlike $dead->{out} . $dead->{err}, qr/nan|\binf/i, 'no figure that is none';
};

subtest 'L13: the need of open files is computed first: raised, or refused with the number' => sub {
    my $h = done_run($run{soft});
    is $h->{status}, 0, 'a soft limit of 64 is raised' or diag $h->{out}, $h->{err};
    my ($need, $limit) = $h->{out} =~ /(\d+) open files of (\d+)/;
    cmp_ok $need, '>', 64, 'the need is more';
    cmp_ok $limit, '>=', $need, 'and fits then';
    $h = done_run($run{hard});
    is $h->{status}, 3, 'a hard limit is not';
    like $h->{err}, qr/100 apps would need \d+ open files, 64 are allowed/, 'both numbers are told';
    is $drive{hard}->count(qr{/login}), 0, 'before anything is started';
};

subtest 'L15: uploads and saves ask for no 100-continue' => sub {
    my $h = done_run($run{L15});
    is $h->{status}, 0, 'a server that never sends 100' or diag $h->{out};
    my @bodies = grep { $_->{path} =~ m{/(?:upload|replace)$} } @{ $drive{L15}->log };
    cmp_ok scalar(@bodies), '>=', 3, 'bodies were sent';
    is scalar(grep { defined $_->{expect} } @bodies), 0, 'none behind Expect';
};

subtest 'L16: localhost with a server on IPv4 alone' => sub {
    my $h = done_run($run{L16});
    is $h->{status}, 0, 'works' or diag $h->{out}, $h->{err};
    sim(['http', 'http://localhost:' . $drive{L16}->port . '/health', qw(-n 10 --json localhost.json)], dir => $dir);
    cmp_ok json_file("$dir/localhost.json")->{http}{connect_ms}{min}, '<', 180, 'without a wait for the other address';
};

subtest 'L17: proxy variables do not redirect the test' => sub {
    my $h = done_run($run{L17});
    is $h->{status}, 0, 'the server itself is measured' or diag $h->{out}, $h->{err};
    is $h->{json}{failed}, 0, 'without a failure';
};

subtest 'L20: sign-in and cold listings are in rows of their own, rates in the window' => sub {
    my $h = done_run($run{L20});
    cmp_ok ops($h, 'sign_in')->{p50_ms}, '>=', 1500, 'sign-in is slow';
    cmp_ok ops($h, 'first_list')->{p50_ms}, '>=', 1500, 'so are first listings';
    cmp_ok ops($h, 'full_pass')->{p50_ms}, '>=', 3000, 'and the full pass';
    cmp_ok ops($h, 'list')->{p50_ms} // 0, '<', 1400, 'later listings are not';
    is $h->{json}{window}{seconds}, 4, 'the window is as long as asked';
    my $w = $h->{json}{window};
    cmp_ok abs($w->{requests_per_s} - $w->{requests} / 4), '<=', 0.1, 'the rate is of the window alone';
    cmp_ok $w->{requests}, '<=', $h->{json}{requests} - $h->{json}{causes}{setup} - $h->{json}{causes}{first_pass} - $h->{json}{causes}{heartbeat},
        'whose requests leave out set-up, first pass and first heartbeats' or diag explain $h->{json}{causes};
};

# ---- event streams ---------------------------------------------------------------------------------------------------

subtest 'E12: an open stream delays no other request of its app' => sub {
    my ($without, $with) = map { done_run($run{"E12 $_"}) } 0, 1;
    is $with->{json}{apps}{streams_up}, 4, 'streams are up';
    is $_->{json}{failed}, 0, 'no failure' for $without, $with;
    my ($p50, $base) = map { ops($_, 'download')->{from_due}{p50_ms} } $with, $without;
    ok $p50 && $base, 'downloads with and without';
    cmp_ok $p50, '<', 5 * $base + 500, '… are as fast';
};

subtest 'E13: comments keep a stream beyond any timeout; a frozen server is noticed' => sub {
    my $h = done_run($run{E13});
    is $h->{json}{reconnects}, 0, 'healthy streams stay';
    is $drive{E13}->count(qr{/events}), 2, 'each was opened once';
    my $d = FakeDrive->new(sub_users => 1, folders => 2, keepalive => 0.5);
    $h = start_run($d, qw(2 2 0 300 --no-ledger --report-every 1 --stream-idle 2s));
    ok in_window($h), 'running';
    my $up = sub { my ($x) = @_; my ($last) = $x->{out} =~ /.*^interval .* streams up (\d) of 2$/ms; return $last // -1 };
    kill STOP => $d->pid;
    ok sim_await($h, sub { $up->($_[0]) == 0 }), 'frozen streams are declared dead';
    kill CONT => $d->pid;
    ok sim_await($h, sub { $up->($_[0]) == 2 }), 'both are back';
    kill INT => $h->{pid};
    done_run($h);
    cmp_ok $h->{json}{reconnects}, '>=', 2, 'opened again, and counted';
    cmp_ok $d->count(qr{/events}), '>=', 4, 'as the server saw';
};

# ---- seeding and sign-in ---------------------------------------------------------------------------------------------

subtest 'S05: a limiter of sign-ins is waited out, and the delay told first' => sub {
    my $h = done_run($run{S05});
    is $h->{status}, 0, 'not a failure' or diag $h->{out}, $h->{err};
    is $h->{json}{failed}, 0, 'of no app';
    like $h->{err}, qr/sign-in limited: waiting 1\.\d s, about [\d.]+ m?s until the \d of 6 that are left are in/, 'how long, and for how many';
    is $h->{json}{throttled}, 2, 'both refusals are counted as waiting';
    is $drive{S05}->count(qr{^POST /api/login}), 6 + 2, 'one sign-in a login, and two that were refused: tokens are reused';
};

# ---- command line and reports ----------------------------------------------------------------------------------------

subtest 'X01: a decimal comma' => sub {
    plan skip_all => 'no locale with a decimal comma can be made' if !$german;
    my $h = done_run($run{X01});
    like $h->{out}, qr/^run: .*, 7\.5 actions\/min each, 1\.5 s$/m, 'numbers are read with a point' or diag $h->{out}, $h->{err};
    is $h->{json}{seconds}, 1.5, 'JSON is written with one';
    is_deeply [map { $_->{met} ? 1 : 0 } @{ $h->{json}{thresholds} }], [limited($h) ? 0 : 1, 0], 'thresholds are judged by it';
    unlike $h->{out}, qr/\d,\d(?!\d\d)/, 'a comma in the text separates thousands only';
    my ($head, @rows) = split /\n/, slurp("$dir/run.csv");
    is_deeply [map { tr/,// } @rows], [map { $head =~ tr/,// } @rows], 'nor does one split a number of the CSV';
};

subtest 'X03: the reader goes away' => sub {
    my $d = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    local $ENV{TMA_URL} = $d->url;
    my $sim = sim_path();
    my $out = `cd $dir && bash -c 'set -o pipefail; $sim run 4 4 60 300 --report-every 1 --json left.json 2>err | head -1'`;
    is $? >> 8, 141, 'status 141, as standard tools';
    like $out, qr/\Atarget: /, 'the first line came';
    cmp_ok json_file("$dir/left.json")->{seconds}, '<', 300, 'minutes of work were spared';
    is json_file("$dir/left.json")->{exit}, 141, 'by its own will: the JSON tells it too';
    unlike slurp("$dir/err"), qr/pipe|signal|abort|sanitizer/i, 'no crash text';
    is $d->state->{locks}, 0, 'locks are let go';
};

subtest 'X04: one Ctrl-C drains, two end' => sub {
    my $d = FakeDrive->new(sub_users => 20, folders => 6, files => 10);
    my $h = start_run($d, qw(400 2 6 60 --arrive 400 --grace 5min --timeout 5min));
    ok in_window($h), '400 sessions';
    ok wait_until(sub { $d->count(qr{^GET /api/files\?}) >= 800 && $d->count($ACTION) > 0 }), 'at work';
    kill INT => $h->{pid};
    done_run($h);
    is $h->{status}, 130, 'one Ctrl-C: 130';
    like $h->{out}, qr/^summary of run: interrupted after \d/m, 'a full summary says after how long';
    is ops($h, 'full_pass')->{ok}, 400, 'with all figures';
    is $h->{json}{failed}, 0, 'what ran was finished';
    is $d->state->{$_}, 0, "no $_" for qw(locks streams_open);

    $h = start_run($d, qw(6 4 120 60 --grace 10min --timeout 10min));
    ok in_window($h), 'once more';
    $d->rule(path => qr{/(download|replace)}, hang => 1);
    my $hung = $d->count(qr{/(?:download|replace)});
    ok wait_until(sub { $d->count(qr{/(?:download|replace)}) > $hung }), 'some are at it';
    kill INT => $h->{pid};
    ok sim_await($h, sub { $_[0]{err} =~ /interrupt again/ }), 'it is told';
    ok !sim_read($h, 1, sub { $_[0]{out} =~ /summary/ }), 'a hung server holds the drain';
    my $second = time;
    kill INT => $h->{pid};
    done_run($h);
    is $h->{status}, 130, 'two: 130';
    cmp_ok time - $second, '<', 200, 'not when a time limit is over';
    like $h->{out}, qr/^summary of run: interrupted after \d/m, 'and still tells what there is';
    is $d->state->{locks}, 0, 'locks are let go even then';

    $d->rules_clear;
    $h = start_run($d, qw(6 4 120 60 --grace 5));
    ok in_window($h), 'and again';
    kill TERM => $h->{pid};
    is done_run($h)->{status}, 130, 'SIGTERM is as Ctrl-C';
};

subtest 'X05: into a pipe: reports at once, no escape codes' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 2);
    my $h = start_run($d, qw(2 2 60 60 --report-every 4 --no-ledger));
    ok in_window($h), 'the first report is there';
    cmp_ok scalar(() = $h->{out} =~ /^interval /mg), '<=', 2, 'at once, not gathered with those behind it';
    ok sim_await($h, sub { $_[0]{out} =~ /  4 s of 60 s/ }), 'and each further one, while it runs';
    kill INT => $h->{pid};
    done_run($h);
    unlike $h->{out} . $h->{err}, qr/[\e\r]/, 'neither CR nor ESC';
};

subtest 'X10: an environment without anything' => sub {
    is $run{bare}{status}, 0, 'the target alone is enough' or diag $run{bare}{out}, $run{bare}{err};
    is done_run($run{empty})->{status}, 0, 'empty is as unset' or diag $run{empty}{out}, $run{empty}{err};
    for my $unset ([], ['TMA_URL=']) {
        for my $command ([qw(run 1 1 1 1)], [qw(seed 1 1)], ['check']) {
            my $r = sim($command, wrap => [ 'env', '-i', @$unset ], dir => $dir);
            is $r->{status}, 2, "$command->[0]: usage";
            like $r->{err}, qr/TMA_URL is not set/, "$command->[0]: the variable is named";
        }
    }
    my %serve = (DATABASE_URL => 'postgresql://a@127.0.0.1:1/b', REDIS_URL => 'redis://127.0.0.1:1/0', JWT_SECRET => 'x' x 32, FILE_ENCRYPTION_KEY => 'x');
    for my $name (sort keys %serve) {
        for my $value (undef, '') {
            my %env = (%serve, $name => $value);
            my $r = sim(['serve'], wrap => [ 'env', '-i', map { defined $env{$_} ? "$_=$env{$_}" : () } sort keys %env ], dir => $dir);
            is $r->{status}, 2, "serve without $name: usage";
            like $r->{err}, qr/\b$name is not set/, "serve without $name: named";
        }
    }
};

subtest 'X11: hostile text of a server' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 10);
    my $h = start_run($d, qw(2 2 240 4 --no-ledger), mix("download 1\n"));
    ok in_window($h), 'running';
    $d->rule(path => qr{/download}, times => 1, status => 500, body => { message => "boom\e[2J\e]0;x\x07\r\nok request $_-9f3c " . 'y' x 10240 })
        for map { sprintf '%08x', 7919 * $_ } 1 .. 5;
    done_run($h);
    my @failures = grep { $_->{reason} =~ /boom/ } @{ $h->{json}{failures} };
    is scalar(@failures), 1, 'one reason, whatever its request id' or diag explain $h->{json}{failures};
    is $failures[0]{count}, 5, 'counted five times';
    cmp_ok length $failures[0]{reason}, '<', 400, 'cut';
    my ($line) = $h->{out} =~ /^( +5  download: 500 boom.*)$/m;
    like $line // '', qr/boom\\x1b/, 'shown escaped, in one line';
    unlike $h->{out} . $h->{err}, qr/[^\n\x20-\x7e\x80-\xff]/, 'no control byte anywhere in the text';
    unlike slurp($h->{json_name}), qr/[^\n\x20-\x7e\x80-\xff]/, 'nor in the JSON';
};

subtest 'X13: time zones and the end of daylight saving time' => sub {
    plan skip_all => 'faketime is not installed, or does not go with this build' if !$fake;
    my %stamps;
    for my $zone ('UTC', 'America/New_York') {
        my $h = done_run($run{$zone});
        is $h->{status}, 0, "$zone: runs" or diag $h->{out}, $h->{err};
        my @lines = $h->{out} =~ /^(20\S+  \S+)/mg;
        is scalar(grep { /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  / } @lines), scalar @lines, "$zone: each stamp is UTC and says so";
        cmp_ok scalar(@lines), '>=', 5, "$zone: a report each two seconds, and the window's two ends" or diag $h->{out};
        my @s = map { /T(\d\d):(\d\d):(\d\d)/ ? 3600 * $1 + 60 * $2 + $3 : () } @lines;
        ok !(grep { $s[$_] < $s[ $_ - 1 ] || $s[$_] > $s[ $_ - 1 ] + 600 } 1 .. $#s), "$zone: no hour is jumped over or repeated" or diag "@s";
        cmp_ok $s[0], '<', 6 * 3600, "$zone: it began before the change";
        cmp_ok $s[-1], '>=', 6 * 3600, "$zone: and ended after it";
        is $h->{json}{seconds}, 21, "$zone: so many seconds are so many seconds";
    }
};

done_testing;
