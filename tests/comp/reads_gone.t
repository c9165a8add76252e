# sim reads on a server that goes away for good while it reads: what is left is not asked for, and the report says so.
use strict;
use warnings;
use File::Temp;
use Test::More;
use lib 'tests/lib';
use Runs;
use Sim;

my $dir = File::Temp::tempdir(CLEANUP => 1);
my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 4);
my $h = sim_start([qw(reads -n 100000 --background 0 --json r.json)], dir => $dir, env => { TMA_URL => $d->url });
ok sim_await($h, sub { $_[0]{out} =~ /^reading: /m }), 'reading';
$d->outage(600);
sim_finish($h);
isnt $h->{status}, 0, 'not healthy' or diag $h->{out}, $h->{err};
isnt $h->{status}, 'timeout', 'it ends';
like $h->{out}, qr/the server no longer answers/, 'says so' or diag $h->{err};
cmp_ok json_file("$dir/r.json")->{requests}, '<', 100000, 'and asks no more';
done_testing;
