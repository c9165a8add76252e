# Event streams of a run on real parts: all broken at once, some read slowly, sessions that expire meanwhile (L19); nothing
# is lost, nobody waits for another.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack);
my $r = $stack->sim([qw(seed 3 0.02)], env => { TMA_URL => $server->url });
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
spew("$stack->{dir}/mix", "new_folder 60\nupload 20\nsave 20\n");

# Whether a session is renewed before it expires, and how much happens in a run, is also the machine's affair: one that is
# too slow for the first run gets a longer one.
my ($j, $met_expired, $dropped);
for my $life (16, 48, 144) {
    $server->stop;
    $server = Serve->new($stack, '--token-lifetime', "${life}s", qw(--stream-backlog 4KiB));
    $r = $stack->sim([qw(run 8 40 220), $life + 2, qw(--slow-readers 25% --reconnect-storm 4 --mix mix --json run.json --fail-on events.lost==0 --fail-on), 'event.p50<10s'],
        env => { TMA_URL => $server->url });
    $j = json_file("$stack->{dir}/run.json");
    $met_expired = grep { $_->{reason} =~ /401/ } @{ $j->{failures} };
    $dropped = $server->metric('drive_slow_streams_dropped_total');
    last if !$met_expired && $dropped && $j->{events}{expected} > 300;
}
is $r->{status}, judged($r, 0), 'a run with a storm and slow readers' or diag $r->{out}, $r->{err};

subtest 'all streams broken at once' => sub {
    my $s = $j->{storm};
    cmp_ok $s->{streams_broken}, '>=', 6, 'they were up';
    is $s->{back}, $s->{streams_broken}, 'all are back';
    cmp_ok $s->{seconds_until_all_back}, '>=', 0.5, 'after the least wait';
    cmp_ok $s->{events_replayed} + $s->{resyncs}, '>', 0, 'what was missed was repeated';
    is $s->{refused_429}, 0, 'the dead ones are not counted against the living';
};

subtest 'slow readers' => sub {
    is $j->{slow_readers}{apps}, 2, 'a quarter of eight';
    cmp_ok $dropped, '>=', 1, 'the server does not keep what they do not read';
    cmp_ok resident_kib($server->pid), '<', 200_000, 'nor grows' if !sanitized();
};

subtest 'events' => sub {
    my ($c) = grep { $_->{name} eq 'events' } @{ $j->{checks} };
    is $c->{status}, 'ok', 'judged across the gap' or diag explain $c;
    my $e = $j->{events};
    cmp_ok $e->{expected}, '>', 300, 'many were due';
    is $e->{$_}, 0, "none $_" for qw(lost duplicate out_of_order);
    is $e->{seen} + $e->{covered_by_resync}, $e->{expected}, 'the sum holds';
    cmp_ok $j->{operations}{event}{ok}, '>', 100, 'figures of the others';
    cmp_ok $j->{operations}{event_visible}{ok}, '>', 20, 'until they can be seen';
};

subtest 'L19: sessions are renewed before they expire' => sub {
    cmp_ok $j->{operations}{sign_in}{ok}, '>=', 2 * 4 - 1, 'each login, more than once: the owner first when its server was looked at';
    is $j->{operations}{sign_in}{failed}, 0, 'the limiter is not tripped';
    is $j->{throttled}, 0, 'nor waited for';
    is $met_expired, 0, 'nobody met an expired one';
};

is $server->stop->{status}, 0, 'the server ends well';
done_testing;
