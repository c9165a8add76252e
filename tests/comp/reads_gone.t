# sim reads on a server that goes away for good, while it reads or before: what is left is not asked for, and it says so.
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

my $cut = FakeDrive->new(sub_users => 1, folders => 4, files => 4);
$cut->rule(method => 'POST', path => qr{/upload}, close => 1);
my $r = sim([qw(reads -n 1 --background 0)], dir => $dir, env => { TMA_URL => $cut->url });
is $r->{status}, 3, 'gone while its own files are made' or diag $r->{out}, $r->{err};
like $r->{err}, qr/the server no longer answers/, 'the same sentence';
cmp_ok $cut->count(qr{/upload}), '<', 20, 'after a few of the forty';

my $shut = FakeDrive->new(sub_users => 1, folders => 4, files => 4);
$shut->rule(method => 'GET', path => qr{^/api/files(\?|$)}, close => 1);
$r = sim([qw(reads -n 1 --background 0)], dir => $dir, env => { TMA_URL => $shut->url });
is $r->{status}, 3, 'gone while folders are looked for' or diag $r->{out}, $r->{err};
like $r->{err}, qr/the server no longer answers/, 'is not taken for an empty account';
done_testing;
