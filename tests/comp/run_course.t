# The course of a run: rate, arrivals, intervals, cold starts, a server that stops answering (L04 L05 L07 L08 L10 L20 E12).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

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

done_testing;
