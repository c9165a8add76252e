# sim clean on a server that is away for a moment: what is to be removed is asked for again.
use strict;
use warnings;
use File::Temp;
use Test::More;
use lib 'tests/lib';
use FakeDrive;
use Sim;

my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 4);
$d->rule(method => 'POST', path => qr{^/api/files/delete$}, times => 1, status => 503);
my $r = sim([qw(clean --yes)], dir => File::Temp::tempdir(CLEANUP => 1), env => { TMA_URL => $d->url });
my ($owner) = grep { $_->{name} eq 'Folder 1' } @{ $d->nodes };
ok $owner->{trashed}, 'removed at the second call' or diag $r->{out}, $r->{err};
unlike "$r->{out}$r->{err}", qr/scripted 503|away for too long/, 'and not given up';
is $d->count(qr{/api/files/delete$}), 2, 'two calls';
done_testing;
