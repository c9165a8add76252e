# What a server lacks is said and worked around (drive-api.md 9).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

# ---- what a server lacks is said and worked around
my @cases = (
    [ { locks => 0 }, qr/no edit locks: saves by version alone/ ],
    [ { versions => 0 }, qr/no versions: saves unconditionally/ ],
    [ { feed => 0 }, qr/no change feed: folders named in events/ ],
    [ { events => 0 }, qr/no event stream: minute checks alone/ ],
    [ { sub_users => 0 }, qr/no sub-users: owners alone sign in/ ],
    [ { locks => 0, versions => 0, feed => 0, events => 0, paging => 0, sub_users => 0 }, qr/no edit locks/ ],
);
my @runs = map { my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 10, caps => $_->[0]); [ $d, start_run($d, qw(3 4 120 8)) ] } @cases;
for my $i (0 .. $#cases) {
    my ($caps, $says) = @{ $cases[$i] };
    my ($d, $h) = @{ $runs[$i] };
    my $name = 'no ' . join ', ', sort keys %$caps;
    done_run($h);
    is $h->{status}, 0, "$name: works" or diag $h->{out}, $h->{err};
    is $h->{json}{failed}, 0, "$name: counts no failure";
    like $h->{json}{note} // '', $says, "$name: is said";
    cmp_ok ops($h, 'save')->{ok}, '>', 0, "$name: saves are made";
}
my ($no_locks, $no_feed) = map { $runs[$_] } 0, 2;
cmp_ok $no_locks->[0]->count(qr{^POST .*/lock$}), '<=', 3, 'a lock call that is absent is not made again';
cmp_ok $no_feed->[1]{json}{causes}{relist}, '>', 0, 'without the feed the folders named in events are listed';

done_testing;
