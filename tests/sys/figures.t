# What a command says of itself is one account: every request that the server counted stands in the summary, under its
# cause, and whatever stands side by side adds up.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack);
my %env = (TMA_URL => $server->url);

# Every number that has to fit another one, wherever it stands in the document.
sub adds_up {
    my ($j, $name) = @_;
    my $n = 0;
    $n += $_ for values %{ $j->{causes} };
    is $j->{requests}, $n, "$name: requests are the sum of their causes";
    my @wrong;
    for my $op (sort keys %{ $j->{operations} }) {
        my $o = $j->{operations}{$op};
        my %by = %{ $o->{outcomes} };
        my $failed = 0;
        $failed += $by{$_} for grep { !/^(?:ok|conflict|throttled|during_outage)$/ } keys %by;
        push @wrong, $op unless $by{ok} == $o->{ok} && $failed == $o->{failed};
    }
    is_deeply \@wrong, [], "$name: outcomes are those of the operations";
    return;
}

sub counted {
    my (@args) = @_;
    my $before = $server->metric('drive_requests_total');
    my $r = $stack->sim([@args, '--json', 'f.json'], env => \%env);
    my $after = $server->metric('drive_requests_total');
    my $j = json_file("$stack->{dir}/f.json");
    my $name = join ' ', @args;
    is $j->{requests}, $after - $before - 1, "$name: the server counted as many requests" or diag $r->{out}, $r->{err}; # less the question itself
    adds_up($j, $name);
    return $j;
}

counted(qw(seed 2 0.01));
counted(qw(seed 2 0.01));
counted('check', '--only', 'storage,drain');
counted(qw(doctor));
my $j = counted(qw(run 3 4 60 3 --bigfiles 2x1@1 --reconnect-storm 1));
cmp_ok $j->{causes}{$_}, '>', 0, "run: cause $_" for qw(first_pass action heartbeat reconnect setup check);
counted(qw(pairs 5 6));
for (qw(upload:64KiB sign-in)) {
    my $one = counted('ramp', '2,3', qw(--hold 1s --settle 200ms --arrive 0 --no-stop --session), $_);
    cmp_ok $one->{steps}[1]{requests_per_s}, '>', 0, "$_: of the measured part" if /upload/;
}
my $apps = counted('ramp', '2,3', qw(--hold 3s --settle 1s --arrive 0 --no-stop --folders 4 --per-minute 60 --session apps));
cmp_ok $apps->{causes}{first_pass}, '>=', 5 * 4, 'apps that join a ramp list their folders, and that is counted';
cmp_ok $apps->{operations}{first_list}{ok}, '==', $apps->{causes}{first_pass}, 'each of them';
counted(qw(bigfiles 2 1));
counted(qw(bulk));
counted(qw(reads --times 2 --background 2));
counted('refusals', '--only', 'no_token,over_quota', qw(--background 2));
counted(qw(baseline --only drive --time 500ms));
counted(qw(clean --dry-run));
counted(qw(clean --yes));
done_testing;
