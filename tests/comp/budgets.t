# A server with a budget of requests: whoever waits for it says so at once, for what and until when, goes on at the pace
# that it bears instead of in a burst, and ends the wait when it is interrupted.
use strict;
use warnings;
use File::Temp;

use List::Util qw(max min);
use Test::More;
use lib 'tests/lib';
use FakeTma;
use Runs;
use Sim;

my $dir = File::Temp::tempdir(CLEANUP => 1);
my $told = qr/budget: the server's budget is spent: waiting [\d.]+ \w+( \d+ s)?, until 20\d\d-\S+Z; an interruption ends it/;

# ---- it waits, and then keeps to the pace ----
my $d = FakeTma->new(budget => 100_000);
my %target = (dir => $dir, env => { TMA_URL => $d->url });
my $r = sim([qw(seed 0 0.002)], %target);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
my $window = 4;
$d->set(budget => 300, window => $window);
$r = sim([qw(reads -n 12 --background 0 --json r.json)], %target);
like $r->{err}, qr/$told \(Too many requests/, 'what it waits for, until when, and what the server said';
my $lines = () = $r->{err} =~ /budget is spent/g;
my @log = grep { $_->{path} =~ m{^/api/} } @{ $d->log };
my @refused = grep { $log[$_]{status} == 429 } 0 .. $#log;
ok @refused, 'the server refused' or diag scalar @log;
cmp_ok $lines, '<=', @refused, 'not a line for each request';
# Behind the first refusal the requests of a window are spread over it: half of them come in its second half.
my @after = map { $_->{t} } grep { $_->{status} != 429 } @log[$refused[0] .. $#log];
my $span = $after[-1] - $after[0];
my $half = grep { $_ - $after[0] > $span / 2 } @after;
cmp_ok $half / @after, '>', 0.3, 'no burst behind the wait' or diag join ' ', map { sprintf '%.2f', $_ - $after[0] } @after;
cmp_ok @refused, '<', 10, 'and hardly another refusal';
cmp_ok json_file("$dir/r.json")->{waited_seconds}, '>', 0, 'what was waited is told';

# ---- an interruption ends it: nobody waits for a quarter of an hour ----
my @rows = (    # how many requests are left when it begins: enough to sign in, too few for the work
    [14, qw(reads -n 20 --background 0)], [12, qw(check --run kept)], [8, qw(clean --yes)], [20, qw(seed 0 0.003)], [20, qw(run 2 2 240 60)], [14, qw(bulk)], [14, qw(bigfiles 3 0.1)],
    [14, qw(pairs 10 100)], [20, qw(ramp 2 --session upload:1KiB --arrive 0 --hold 60s --settle 0)],
    [4, qw(refusals --tries 1 --background 0)], [4, qw(reads -n 1 --background 0)]);    # too few to sign in
for (@rows) {
    my ($left, @command) = @$_;
    my $spent = FakeTma->new(budget => 100_000);
    my @at = (dir => $dir, env => { TMA_URL => $spent->url });
    is sim([qw(seed 0 0.002)], @at)->{status}, 0, "$command[0]: seeded";
    if ("@command" =~ /kept/) {
        is sim([qw(run 1 2 1200 2 --run-dir kept)], @at)->{status}, 0, "$command[0]: a run";
    }
    $spent->set(budget => $left);
    my $h = sim_start([@command, '--fresh-sign-in'], @at);
    ok sim_await($h, sub { "$_[0]{err}$_[0]{out}" =~ /(?:$told|sign-in limited.*(?:waiting|to wait))/ }), "$command[0]: tells that it waits" or diag $h->{out}, $h->{err};
    kill 'INT', $h->{pid};
    is sim_finish($h)->{status}, 130, "$command[0]: ends when it is interrupted" or diag $h->{out}, $h->{err};
    cmp_ok scalar(() = $h->{err} =~ /budget is (?:still )?spent/g), '<=', 2, '  and tells it sparingly';
}
done_testing;
