# Pairs of apps on real services: every message arrives and is read, at the rate that was asked; what does not arrive is
# counted as lost; nothing is left behind.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack);
sub pairs {
    my (@args) = @_;
    my $r = $stack->sim(['pairs', @args, '--json', 'p.json'], env => { TMA_URL => $server->url });
    $r->{json} = -s "$stack->{dir}/p.json" ? json_file("$stack->{dir}/p.json") : {};
    $r->{pairs} = $r->{json}{pairs};
    return $r;
}
my $r = $stack->sim([qw(seed 2 0.01)], env => { TMA_URL => $server->url });
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};

subtest 'one message each' => sub {
    my $r = pairs(qw(10 20));
    is $r->{status}, 0, 'status 0' or diag $r->{out}, $r->{err};
    is $r->{pairs}{$_->[0]}, $_->[1], "$_->[0]: $_->[1]" for [sent => 20], [succeeded => 20], [failed => 0], [messages => 20], [errors => 0];
    cmp_ok $r->{pairs}{per_second}, '<=', 11, 'not faster than asked';
    cmp_ok $r->{pairs}{min_ms}, '>', 0, 'delivery takes time';
    cmp_ok $r->{pairs}{$_->[0]}, '<=', $r->{pairs}{ $_->[1] }, "$_->[0] <= $_->[1]" for [min_ms => 'p50_ms'], [p50_ms => 'p95_ms'], [p95_ms => 'p99_ms'], [p99_ms => 'max_ms'], [mean_ms => 'max_ms'];
    is $r->{json}{operations}{$_}{ok}, 20, "$_: one each" for qw(stream upload delivery download message);
    like $r->{out}, qr/^delivery: sent to event( +~?[\d.]+){6}$/m, 'a table';
    is $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'pair-%' OR name LIKE 'Pairs %'"), 0, 'nothing is left';
};

subtest 'an exchange that goes on' => sub {
    my ($r, $seconds);
    for (1, 8, 60) { # how many messages there is time for is the machine's affair
        $seconds = $_;
        $r = pairs(qw(5 3 --interval 250ms --size 3KiB --csv p.csv --exchange), "${seconds}s");
        last if $r->{status} ne '0' || ($r->{pairs}{messages} // 0) >= 6;
    }
    is $r->{status}, 0, 'status 0' or diag $r->{out}, $r->{err};
    is $r->{pairs}{succeeded}, 3, 'all pairs';
    cmp_ok $r->{pairs}{messages}, '>=', 6, 'several messages each';
    cmp_ok $r->{pairs}{messages}, '<=', 3 * 4 * $seconds, 'no more than the interval allows';
    is $r->{json}{operations}{save}{ok}, $r->{pairs}{messages} - 3, 'the first is an upload, the others save over it';
    is $r->{json}{operations}{stream}{ok}, 3, 'on one stream';
    like slurp("$stack->{dir}/p.csv"), qr/^delivery,$r->{pairs}{messages},0,/m, 'CSV';
};

subtest 'own bytes, a ramp, an end' => sub {
    spew("$stack->{dir}/own", "\0\1\2 drive\n" x 50);
    my $r = pairs(qw(10 1000 --payload own --ramp 1s --test-duration 1.5s));
    is $r->{status}, 0, 'status 0' or diag $r->{out}, $r->{err};
    cmp_ok $r->{pairs}{sent}, '>', 0, 'pairs were sent';
    cmp_ok $r->{pairs}{sent}, '<=', 11, 'as few as a ramp of one second and half a second after it allow';
    is $r->{pairs}{failed}, 0, 'what ran was finished';
    is pairs(qw(1 1 --payload none))->{status}, 2, 'a file that is not there';
};

subtest 'too few workers' => sub {
    my $r = pairs(qw(2000 30 --workers 1 --queue 1));
    is $r->{status}, 0, 'are no failure';
    cmp_ok $r->{pairs}{saturated}, '>', 0, 'but counted';
    like $r->{err}, qr/worker pool saturated: .*more --workers/, 'and said';
    cmp_ok $r->{json}{operations}{delivery}{from_due}{max_ms}, '>', $r->{json}{operations}{delivery}{max_ms}, 'the wait shows in the time from due';
};

subtest 'what cannot be' => sub {
    my $r = pairs(qw(100 1000 --exchange 60s));
    is $r->{status}, 3, 'more streams at once than the logins may hold';
    like $r->{err}, qr/1000 pairs go on at once.*49 sub-users/, 'says how many sub-users would do';
    is pairs('0', 1)->{status}, 2, 'no pairs a second';
};

subtest 'a server that loses events' => sub {
    $server->stop;
    $server = Serve->new($stack, '--fault', 'event-dropped');
    my $r = pairs(qw(10 5 --timeout 4s));
    is $r->{status}, 1, 'is found out' or diag $r->{out};
    is $r->{pairs}{failed}, 5, 'every message';
    is $r->{json}{operations}{delivery}{outcomes}{timeout}, 5, 'as events that did not come';
    like $r->{out}, qr/5  delivery: no event at the receiver within/, 'in words';
    is $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'pair-%'"), 0, 'and nothing is left';
};

done_testing;
