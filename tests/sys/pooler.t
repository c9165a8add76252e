# DATABASE_URL through a pooler (pgbouncer), whose next transaction may come on another session of the server: for the
# client and for the server itself. Where it cannot work, the sentence says what to do.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Pooler;
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $pooler = Pooler->new($stack, 'transaction') or plan skip_all => 'pgbouncer is not installed';
my %through = (DATABASE_URL => $pooler->url);

# Several connections, so that sessions are shared: a statement prepared by name on one would be met on another.
my $server = Serve->new($stack, {%through});
my %both = (env => { %through, TMA_URL => $server->url });
my $r = $stack->sim([qw(seed 1 0.01 --bytes-scale 0.01)], %both);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
unlike $r->{out}, qr/not proven/, 'the database is proven through it too';
# The reads first: the times of access that downloads leave follow within a second, and a listing by them is compared.
for my $args ([qw(reads --times 2 --background 1)], [qw(run 4 5 120 3 --json run.json)], ['check'], [qw(mix import --out a.mix)]) {
    $r = $stack->sim($args, %both);
    is $r->{status}, 0, "@$args" or diag $r->{out}, $r->{err};
}
my ($ledger) = grep { $_->{name} eq 'ledger' } @{ json_file("$stack->{dir}/run.json")->{checks} };
cmp_ok $ledger->{examined}, '>', 0, 'what the run wrote was looked at';
is $server->stop->{status}, 0, 'the server ends well';

# What a pooler does not let through is said with what to do.
my @serve = (qw(serve --port 0 --wait 0s));
my %keys = (JWT_SECRET => 'a secret that only tests know', FILE_ENCRYPTION_KEY => 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=');
$r = $stack->sim([@serve, qw(--fault lost-upload)], env => { %through, %keys });
is $r->{status}, 3, 'planted faults, which are told as a startup parameter';
like $r->{err}, qr/a pooler is in front of it: name the database itself/, 'what to do';
my $strict = Pooler->new($stack, 'statement');
$r = $stack->sim([@serve], env => { DATABASE_URL => $strict->url, %keys });
is $r->{status}, 3, 'a pooler without transactions' or diag $r->{err};
like $r->{err}, qr/a pooler is in front of it: name the database itself/, 'what to do';

done_testing;
