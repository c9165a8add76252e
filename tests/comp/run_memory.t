# Memory does not grow with what was measured: many actions, a new reason with each failure, a new id with each answer.
# Nor do open files: an app holds its stream and one connection, whatever it did at once.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

# ---- L18: resident memory of a run after a third of it, and at its end
{
    my $d = FakeDrive->new(sub_users => 4, folders => 20, files => 10, file_bytes => 100);
    $d->rule(path => qr{/download}, status => 500, body => { message => 'request 7f3a-' . 'x' x 80 . ' failed' }, times => 300);
    my $h = start_run($d, qw(30 10 300 60 --report-every 1), mix("download 70\nrename 20\nmove 10\n"));
    in_window($h);
    my $resident = sub { slurp("/proc/$h->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 };
    my @seen; # how many actions by then, in how much memory: up to 2,400 of them, or what there is time for
    while (@seen == 0 || ($seen[-1][0] < 2400 && !sim_read($h, 0.2, sub { $_[0]{out} =~ /drained/ }))) {
        push @seen, [ $d->count(qr{/(?:download|rename|move)$}), $resident->() ];
    }
    end_run($h);
    my $end = $seen[-1][1];
    my ($third) = map { $_->[1] } grep { $_->[0] >= $seen[-1][0] / 3 } @seen;
    my $actions = $h->{json}{actions}{done} + $h->{json}{actions}{failed};
    cmp_ok $actions, '>', 300, "$actions actions";
    note "$third KiB after a third, $end KiB at the end";
    cmp_ok $end, '<', $third * 1.1 + 1024, 'L18: memory is flat after a third of the run' if !sanitized();
    cmp_ok scalar(@{ $h->{json}{failures} }), '<=', 65, 'reasons are kept up to a limit';
}

# ---- downloads that take long while the apps look at what others changed: then each app is back at two open files
{
    my $apps = 30;
    my $d = FakeDrive->new(sub_users => 2, folders => 6, files => 6, file_bytes => 100);
    $d->rule(path => qr{/download}, delay => 1, times => 3 * $apps);
    my $h = start_run($d, $apps, qw(6 30 60), mix("download 1\n"));
    in_window($h);
    my $files = sub { my @f = glob "/proc/$h->{pid}/fd/*"; return scalar @f };
    my $most = 0;
    wait_until(sub { $d->touch({ n => 1 }); my $n = $files->(); $most = $n if $n > $most; return $d->count(qr{/download}) >= 4 * $apps }, 60);
    my $rest;
    wait_until(sub { ($rest = $files->()) <= 2.5 * $apps + 20 }, 20);
    cmp_ok $rest, '<=', 2.5 * $apps + 20, "open files of $apps apps that rest; $most while they were busy";
    cmp_ok $most, '>', $rest, 'a request beside a long one has not waited for it';
    end_run($h);
}

done_testing;
