# The judge is judged: on a clean seeded stack every check holds; then one thing is broken and the check that owns it
# must name exactly that and nothing else may complain.
use strict;
use warnings;
use File::Temp ();
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 2 0.02)]);
is $r->{status}, 0, 'seed ends well' or diag $r->{out}, $r->{err};
# A server that began without a bucket sweeps 15 s later: in the midst of what is broken here. This one sweeps now, and
# not again for 10 min.
is $stack->stack(qw(restart server))->{status}, 0, 'the server sweeps before anything is broken';

# Runs `sim check` and gives back {status, checks => {name => row}}.
sub judge {
    my $res = $stack->sim([qw(check --json report.json)]);
    my $json = json_file("$stack->{dir}/report.json");
    return { %$res, checks => { map { $_->{name} => $_ } @{ $json->{checks} } }, json => $json };
}

# Exactly the named checks are violated, and their details mention every pattern.
sub violated_only {
    my ($what, $names, @patterns) = @_;
    my $j = judge();
    is $j->{status}, 1, "$what: exit status 1";
    is_deeply [sort grep { $j->{checks}{$_}{status} eq 'violated' } keys %{ $j->{checks} }], [sort @$names], "$what: found by @$names alone"
        or diag $j->{out};
    my @details = map { @{ $j->{checks}{$_}{detail} } } @$names;
    is_deeply [grep { !/; look: / } @details], [], "$what: each says how to look it up";
    my $detail = join "\n", @details;
    like $detail, $_, "$what: named" for @patterns;
    return $j;
}

my $clean = judge();
is $clean->{status}, 0, 'untouched: exit status 0' or diag $clean->{out}, $clean->{err};
for my $name (qw(aggregates storage structure objects database server)) {
    is $clean->{checks}{$name}{status}, 'ok', "untouched: $name holds" or diag explain $clean->{checks}{$name};
    cmp_ok $clean->{checks}{$name}{examined}, '>', 0, "untouched: $name looked at something";
}
is $clean->{checks}{ledger}{status}, 'not_run', 'a check that could not run says so';
is $clean->{json}{exit}, 0, 'the JSON tells the exit status';

my ($folder) = split /\n/, $stack->sql("SELECT id FROM files WHERE type = 'folder' AND aggregate_file_count > 0 ORDER BY id LIMIT 1");
$stack->sql("UPDATE files SET aggregate_size = aggregate_size + 1 WHERE id = '$folder'");
my $j = violated_only('a total altered by one byte', ['aggregates'], qr/\b\Q$folder\E\b/);
is $j->{checks}{aggregates}{wrong}, 1, 'a total altered by one byte: one report';
is $stack->sql("SELECT count(*) FROM files WHERE id = '$folder'"), 1, 'looking changed nothing';
$stack->sql("UPDATE files SET aggregate_size = aggregate_size - 1 WHERE id = '$folder'");

$stack->sql("UPDATE users SET storage_used = storage_used - 1 WHERE email = 'owner\@load.test'");
violated_only('storage use altered by one byte', ['storage'], qr/owner\@load\.test/);
$stack->sql("UPDATE users SET storage_used = storage_used + 1 WHERE email = 'owner\@load.test'");

my ($file, $key) = split /\|/, $stack->sql("SELECT id, path FROM files WHERE type = 'file' AND size > 1000 ORDER BY id LIMIT 1");
my $object = $stack->object_file($key);
my $bytes = slurp($object);
truncate $object, length($bytes) - 1 or die $!;
violated_only('an object truncated', ['objects'], qr/\b\Q$file\E\b/, qr/\Q$key\E/);
unlink $object or die $!;
violated_only('an object deleted', ['objects'], qr/\b\Q$file\E\b/, qr/missing/);
spew($object, $bytes);
is judge()->{status}, 0, 'the object put back: exit status 0';

# A copy that is still running holds a reservation; only one that stays is wrong.
my $reserve = "WITH r AS (INSERT INTO storage_reservations (id, user_id, bytes, purpose, expires_at) SELECT 'r1', id, 5, 'copy', now() + interval '1 hour' FROM users WHERE email = 'owner\@load.test' RETURNING user_id) UPDATE users SET storage_reserved = 5 FROM r WHERE id = r.user_id";
my $release = "DELETE FROM storage_reservations; UPDATE users SET storage_reserved = 0";
$stack->sql($reserve);
violated_only('a reservation that stays', ['storage'], qr/5 bytes are still reserved/);
my $h = $stack->start([qw(check --only storage)]);
ok wait_until(sub { $stack->sql(q{SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT count(*), 0 FROM storage_reservations'}) }), 'it is seen';
$stack->sql($release);
is Sim::sim_finish($h)->{status}, 0, 'a reservation that ends meanwhile is none of a server at rest';

# The checks wait for a job that is at work (nobody takes it up before tomorrow).
$stack->sql("INSERT INTO jobs (id, account_id, user_id, kind, status, not_before, started_at) SELECT 'j1', id, id, 'copy', 'active', now() + interval '1 day', now()"
    . " FROM users WHERE email = 'owner\@load.test'");
$h = $stack->start([qw(check --only), 'drain,storage']);
ok !sim_read($h, 2, sub { $_[0]{out} =~ /storage/ }), 'as long as a job is at work nothing is judged';
$stack->sql("DELETE FROM jobs WHERE id = 'j1'");
is sim_finish($h)->{status}, 0, 'the job has ended: at rest';
like $h->{out}, qr/ok +drain +0 jobs queued, 0 reservations, after \d/, 'and the wait is told';

# A row lost by hand leaves its object, its ancestors' totals and the storage use behind.
my ($row, $path) = split /\|/, $stack->sql("SELECT id, path FROM files WHERE type = 'file' AND parent_id IS NOT NULL AND id <> '$file' ORDER BY id LIMIT 1");
$stack->sql("CREATE TABLE kept AS SELECT * FROM files WHERE id = '$row'");
$stack->sql("DELETE FROM files WHERE id = '$row'");
violated_only('a row deleted', [qw(aggregates objects storage)], qr/\Q$path\E/, qr/\b\Q$row\E\b/);
$stack->sql('INSERT INTO files SELECT * FROM kept');
$stack->sql('DROP TABLE kept');

my ($a, $b) = split /\|/, $stack->sql(
    "SELECT p.id, c.id FROM files p JOIN files c ON c.parent_id = p.id WHERE p.type = 'folder' AND c.type = 'folder' AND p.parent_id IS NOT NULL ORDER BY p.id LIMIT 1");
SKIP: {
    skip 'no nested folders at this scale', 2 unless $a && $b;
    my $was = $stack->sql("SELECT parent_id FROM files WHERE id = '$a'");
    $stack->sql("UPDATE files SET parent_id = '$b' WHERE id = '$a'");
    my $c = judge();
    is $c->{status}, 1, 'a cycle: exit status 1';
    is $c->{checks}{structure}{status}, 'violated', 'a cycle: found by structure';
    $stack->sql("UPDATE files SET parent_id = '$was' WHERE id = '$a'");
}

my $end = judge();
is $end->{status}, 0, 'everything put back: exit status 0' or diag $end->{out};

my $some = $stack->sim(['check', '--only', 'aggregates,storage']);
is $some->{status}, 0, '--only runs these alone';
unlike $some->{out}, qr/objects/, '--only leaves the others out';
my $bad = $stack->sim([qw(check --only agregates)]);
is $bad->{status}, 2, 'a misspelt check is a usage error';
like $bad->{err}, qr/agregates/, 'and is named';
my $elsewhere = File::Temp::tempdir(CLEANUP => 1); # not beside .sim, where the database's address would be found
my $blind = $stack->sim([qw(check --only objects)], dir => $elsewhere, env => { DATABASE_URL => '' });
is $blind->{status}, 3, 'a check asked for that cannot run: exit status 3, never a silent pass';
like $blind->{out} . $blind->{err}, qr/DATABASE_URL/, 'and says what is missing';
$blind = $stack->sim(['check'], dir => $elsewhere, env => { DATABASE_URL => '' });
is $blind->{status}, 3, 'the server\'s own count of errors is no proof: exit status 3';
like $blind->{err}, qr/nothing could be checked: set DATABASE_URL/, 'and says how to check more';
$blind = $stack->sim(['check', '--run', "$elsewhere/no-such-run"]);
is $blind->{status}, 3, 'a run that is not there cannot be judged: exit status 3';
like $blind->{err}, qr{cannot open the ledger \S*no-such-run}, 'and is named';

done_testing;
