# sim doctor: finds what is there, names what is not and the one command that brings it.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;
use lib 'tests/lib';
use Sim;

my $empty = tempdir(CLEANUP => 1);

is sim(['stack', 'fetch'], dir => $empty)->{status}, 0, 'the store package is fetched';
my $r = sim(['doctor'], dir => $empty);
is $r->{status}, 0, 'a machine that has everything' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^  ok +$_ /m, "$_ is found" for qw(Postgres Redis Node\.js npm);
my $hard = qx(sh -c 'ulimit -Hn');
chomp $hard;
like $r->{out}, qr/^  (?:ok|note) +open files +(?:\Q$hard\E allowed|no limit)/m, 'the limit of open files';
like $r->{out}, qr/^  note +server +TMA_URL is not set/m, 'no target is no fault';
like $r->{out}, qr/^ready; next: sim stack up$/m, 'and what comes next is said';
ok !-e "$empty/.sim", 'looking leaves nothing behind';

# Redis and npm are not there; what remains of PATH is linked.
my $bin = tempdir(CLEANUP => 1);
for my $dir (split /:/, $ENV{PATH}) {
    for my $program (glob "$dir/*") {
        my ($name) = $program =~ m{([^/]+)$};
        symlink $program, "$bin/$name" unless $name =~ /^(?:redis-|npm$|docker)/ || -e "$bin/$name";
    }
}
$r = sim(['doctor'], dir => $empty, env => { PATH => $bin, XDG_CACHE_HOME => $empty });
SKIP: {
    skip 'they are also in /usr/sbin or /sbin', 4 if -e '/usr/sbin/redis-server' || -e '/sbin/redis-server';
    is $r->{status}, 3, 'things are missing';
    like $r->{out}, qr/^  missing +Redis +redis-server is not installed$/m, 'Redis is named';
    like $r->{out}, qr/^  missing +npm +npm is not installed$/m, 'npm is named';
    like $r->{err}, qr/^sim doctor: missing: (?:sudo )?apt-get install -y redis-server npm$/m, 'and the command that brings both';
}

# An old Node.js is as good as none.
my $old = tempdir(CLEANUP => 1);
spew("$old/node", "#!/bin/sh\necho v12.22.9\n");
chmod 0755, "$old/node";
$r = sim(['doctor'], dir => $empty, env => { PATH => "$old:$ENV{PATH}" });
is $r->{status}, 3, 'an old Node.js';
like $r->{out}, qr/^  missing +Node\.js +v12\.22\.9 is too old, 18 is the least$/m, 'is named with its version';

$r = sim(['doctor'], dir => $empty, env => { TMA_URL => 'http://127.0.0.1:1' });
is $r->{status}, 3, 'nothing listening';
like $r->{out}, qr/^  missing +server +nothing is listening at /m, 'is said';

my $stack = Sim::Stack->new;
$r = $stack->sim(['doctor']);
is $r->{status}, 0, 'a fresh stack' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^  note +capabilities +not known before `sim seed`/m, 'its capabilities are not known yet';
like $r->{out}, qr/^  ok +S3 bucket +tma-load at .*: head, list, write, read and delete work$/m, 'its bucket works';
like $r->{out}, qr/^ready; next: sim seed/m, 'a tree comes next';
is $stack->sim(['seed', 1, 0.005])->{status}, 0, 'seeded';
$r = $stack->sim(['doctor']);
like $r->{out}, qr/^  ok +it has +edit locks, versions, change feed, paged listings, sub-users, storage configuration, jobs, bulk upload, download ranges, event stream, trash, recent files(?:,|$)/m,
  'what it can do';
like $r->{out}, qr/^  ok +one server +what was given of database, Redis and bucket is this server's$/m, 'its parts belong together';
like $r->{out}, qr/^ready; next: sim run/m, 'then a run';
$stack->stack('kill', 'store');
$r = $stack->sim(['doctor']);
is $r->{status}, 3, 'a dead store';
like $r->{out}, qr/^  missing +S3 bucket +head: object store at /m, 'is named with the step that failed';

done_testing;
