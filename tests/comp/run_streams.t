# Servers that go away and come back, events, resync (E09 E11).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

# ---- the server goes away and comes back: told, and no stampede of sign-ins
{
    my $d = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $h = start_run($d, qw(9 4 60 16 --report-every 3));
    in_window($h);
    $d->outage(2);
    done_run($h);
    like $h->{out}, qr/^server unreachable from \d\d:\d\d:\d\dZ for [1-9]\.\d s$/m, 'the outage is shown' or diag $h->{out};
    is $h->{json}{outages}{count}, 1, 'counted';
    is $h->{json}{apps}{streams_up}, 9, 'every stream is back';
    is $h->{json}{reconnects}, 9, 'as a reconnect';
    is ops($h, 'sign_in')->{ok}, 3, 'nobody signed in again';
    my @back = map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $d->log };
    my @again = sort { $a <=> $b } @back[ 9 .. $#back ];
    cmp_ok $again[-1] - $again[0], '>', 0.1, 'streams come back spread out';
    cmp_ok ops($h, 'download')->{ok}, '>', 0, 'work goes on';
}

subtest 'E11: resync, old cursors, and error events that change nothing' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 5, files => 3);
    my $h = start_run($d, qw(2 5 0 6));
    in_window($h);
    my $lists = $d->count(qr{^GET /api/files\?});
    $d->event({ raw => "event: error\ndata: {\"type\":\"error\"}\n\n" });
    $d->event({ type => 'resync' });
    wait_until(sub { $d->count(qr{^GET /api/files\?}) >= $lists + 10 });
    is $d->count(qr{^GET /api/files\?}), $lists + 10, 'resync: every app lists all its open folders again';
    $d->set(feed_floor => 1);
    $d->touch({ n => 1 });
    done_run($h);
    is $d->count(qr{^GET /api/files\?}), $lists + 20, 'a cursor too old: likewise';
    is $h->{status}, 0, 'no failure';
    is $h->{json}{operations}{changes}{ok} >= 4, 1, 'the feed was asked';
};

# ---- a burst of events is one question and one listing
{
    my $d = FakeDrive->new(sub_users => 1, folders => 5, files => 3);
    my $h = start_run($d, qw(2 5 0 5));
    in_window($h);
    my ($lists, $asked) = ($d->count(qr{^GET /api/files\?}), $d->count(qr{/changes}));
    $d->touch({ n => 25 });
    done_run($h);
    is $d->count(qr{/changes}) - $asked, 2, 'one question an app';
    is $d->count(qr{^GET /api/files\?}) - $lists, 2, 'one listing an app';
    is $h->{json}{causes}{relist}, 4, 'both counted as re-lists';
}

subtest 'E09: a stream that is open but brings nothing is no healthy one' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 2, deaf => 1);
    my $h = run_sim($d, qw(3 2 0 7 --report-every 6));
    like $h->{out}, qr/^warning: 3 event streams open, but nothing has come on them yet$/m, 'deaf streams are told';
    is $h->{status}, 1, 'E09: a deaf run is not healthy';
    is ops($h, 'stream')->{failed}, 3, 'each is a failure';
    like $h->{out}, qr/^ +3  stream connect: it is open, but nothing ever came on it$/m, 'with its reason';
};

done_testing;
