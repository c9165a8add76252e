# The seeder on real parts: the same tree whatever happens on the way - killed and started again, with more requests at a
# time, in company of other accounts - and exact totals each time.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;
use File::Temp ();
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my @tree = qw(seed 2 0.1 --bytes-scale 0.2);
my ($FOLDERS, $FILES, $HOT, $HOT_FILES) = (219, 1679, 2, 336); # of scale 0.1

sub seed {
    my ($s, $what, @args) = @_;
    my $file = "$s->{dir}/seed.json";
    unlink $file;
    my $r = $s->sim([@args, '--json', $file]);
    is $r->{status}, 0, "$what: healthy" or diag $r->{out}, $r->{err};
    return ($r, json_file($file));
}
sub files { my ($s, $account) = @_; return $s->sql("SELECT count(*) FROM files f JOIN users u ON u.id = f.user_id WHERE type = 'file' AND u.email = '" . ($account // 'owner@load.test') . "'") }

# S02: killed at about half, twice, with requests under way: from a number of rows on they stand still until the seeder is
# gone. Then finished; then once more.
$stack->sql('CREATE SEQUENCE made; CREATE TABLE shut (above bigint)');
$stack->sql('CREATE FUNCTION at_half() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE n bigint := nextval(\'made\');'
    . ' BEGIN WHILE EXISTS (SELECT FROM shut WHERE above < n) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END $$');
$stack->sql(q{CREATE TRIGGER at_half BEFORE INSERT ON files FOR EACH ROW WHEN (NEW.type = 'file') EXECUTE FUNCTION at_half()});
for my $share (0.3, 0.6) {
    my $at = int $share * $FILES;
    $stack->sql("INSERT INTO shut VALUES ($at)");
    my $h = $stack->start([@tree]);
    ok wait_until(sub { $stack->sql(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) }), "under way to $share";
    kill KILL => $h->{pid};
    is sim_finish($h)->{signal}, 9, 'killed';
    $stack->sql('DELETE FROM shut');
    ok wait_until(sub { !$stack->sql(q{SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid()}) }), 'what the server was at is done';
}
$stack->sql('DROP TRIGGER at_half ON files; DROP FUNCTION at_half; DROP TABLE shut; DROP SEQUENCE made');
cmp_ok files($stack), '>', 0, 'something is made';
cmp_ok files($stack), '<', $FILES, 'and not all';
my ($r, $resumed) = seed($stack, 'resumed', @tree);
like $r->{out}, qr/already there: 219 folders, [\d,]+ files; continuing/, 'resumed: from where it ended';
my $tree = $resumed->{tree};
is_deeply [@{$tree}{qw(folders files hot_folders hot_files)}], [$FOLDERS, $FILES, $HOT, $HOT_FILES], 'resumed: exact counts';
is files($stack), $FILES, 'resumed: no file twice';
is $stack->sql("SELECT count(*) FROM files WHERE name ~ ' \\(\\d+\\)(\\.|\$)'"), 0, 'resumed: no copies with a number';
is $stack->sql("SELECT count(*) FROM files WHERE deleted_at IS NOT NULL"), 0, 'resumed: nothing in the trash';

my $writes = $stack->sql('SELECT count(*) FROM changes');
my (undef, $once_more) = seed($stack, 'the third time', @tree);
is $once_more->{tree}{manifest_sha256}, $tree->{manifest_sha256}, 'the third time: the same manifest';
is $stack->sql('SELECT count(*) FROM changes'), $writes, 'the third time: nothing is changed';

# A second copy, as an upload leaves it that outlived its seeder, is known as ours and goes.
{
    my $ua = HTTP::Tiny->new(default_headers => { 'X-Requested-With' => 'XMLHttpRequest' });
    my $url = $stack->env->{TMA_URL};
    my $json = { headers => { 'Content-Type' => 'application/json' } };
    my $in = $ua->post("$url/api/login", { %$json, content => encode_json({ email => 'owner@load.test', password => 'load-test-password' }) });
    is $in->{status}, 200, 'sign in by hand' or diag $in->{content};
    my ($token) = (ref $in->{headers}{'set-cookie'} ? $in->{headers}{'set-cookie'}[0] : $in->{headers}{'set-cookie'}) =~ /token=([^;]+)/;
    $json->{headers}{Authorization} = "Bearer $token";
    my ($id, $parent) = split /\|/, $stack->sql("SELECT id, parent_id FROM files WHERE type = 'file' AND size BETWEEN 1000 AND 100000 AND name NOT LIKE '%(%' ORDER BY id LIMIT 1");
    my $copy = $ua->post("$url/api/files/copy", { %$json, content => encode_json({ ids => [$id], parentId => $parent }) });
    like $copy->{status}, qr/^20[02]$/, 'copied by hand' or diag $copy->{content};
    ok wait_until(sub { files($stack) == $FILES + 1 }), 'the copy is there';
    $stack->sql("UPDATE files c SET modified = f.modified FROM files f WHERE f.id = '$id' AND c.parent_id = f.parent_id AND c.name <> f.name AND c.size = f.size AND c.name ~ ' \\(1\\)'");
    my ($again, $j) = seed($stack, 'with a second copy', @tree);
    like $again->{out}, qr/removed: 1 second copy of our files/, 'a second copy: removed, and said so' or diag $again->{out};
    is files($stack), $FILES, 'a second copy: gone for good';
    is $j->{tree}{manifest_sha256}, $tree->{manifest_sha256}, 'a second copy: the same manifest';
}

# Another tree on the same server is told.
my ($other) = seed($stack, 'another scale', qw(seed 2 0.01 --bytes-scale 0.2));
like $other->{out}, qr/not part of this plan: [\d,]+ files/, 'another scale: says what else is there';

# Elsewhere, unbroken, with another number of requests at a time: the same.
my $second = Sim::Stack->new;
my (undef, $plain) = seed($second, 'unbroken', @tree, '--jobs', 13);
is $plain->{tree}{manifest_sha256}, $tree->{manifest_sha256}, 'unbroken: the same manifest as the one that was killed';
my (undef, $three) = seed($second, 'three accounts', qw(seed 1 0.02 --bytes-scale 0.2 --accounts 3));
is $three->{tree}{folders}, 3 * 44, 'three accounts: three trees';
is $three->{tree}{files}, 3 * 336, 'three accounts: all their files';
is $second->sql("SELECT string_agg(email, ' ' ORDER BY email COLLATE \"C\") FROM users WHERE email LIKE 'owner-%'"),
    'owner-2-user-1@load.test owner-2@load.test owner-3-user-1@load.test owner-3@load.test', 'three accounts: their names';
is $second->sql("SELECT count(*) FROM users WHERE parent_user_id IS NOT NULL AND cardinality(permissions) = 6"),
    $second->sql("SELECT count(*) FROM users WHERE parent_user_id IS NOT NULL"), 'sub-users may do everything';
is $second->sql("SELECT count(*) FROM users WHERE parent_user_id = (SELECT id FROM users WHERE email = 'owner-2\@load.test')"), 1, 'each owner has its own';

# Two at once on a server that knows nobody yet: each finds what the other has made, and none of it is a failure.
my $third = Sim::Stack->new;
my @both = map { $third->start([qw(seed 2 0.03 --bytes-scale 0.2 --accounts 2 --json), "$third->{dir}/$_.json"]) } 1, 2;
my @ends = map { sim_finish($_) } @both;
is $_->{status}, 0, 'two at once: healthy' or diag $_->{out}, $_->{err} for @ends;
my @made = map { json_file("$third->{dir}/$_.json") } 1, 2;
is $made[0]{tree}{manifest_sha256}, $made[1]{tree}{manifest_sha256}, 'two at once: one manifest';
is files($third) + files($third, 'owner-2@load.test'), $made[0]{tree}{files}, 'two at once: every file once';

# What the third stack holds, kept, moves to the second one, which has other ports and secrets.
{
    my $dir = "$third->{dir}/fixtures";
    my $s = $third->sim([qw(fixture save both --dir fixtures)]);
    is $s->{status}, 0, 'fixture save' or diag $s->{out}, $s->{err};
    like $s->{out}, qr/^saved both: 132 folders, 1,008 files of /, 'says what it holds';
    is $third->sim([qw(fixture save both --dir fixtures)])->{status}, 2, 'a second one of that name is refused';
    is_deeply [map { s{.*/}{}r } glob "$dir/* $dir/.b*"], ['both'], 'nothing else is left there';
    like $third->sim([qw(fixture list --dir fixtures)])->{out}, qr/^both +1 +0\.03 +132 +1,008 /m, 'it is listed with its seed and scale';

    my $before = $second->sql('SELECT count(*) FROM files');
    my @load = (qw(fixture load both --dir), $dir);
    my $refused = sub {
        my ($what, $says) = @_;
        my $r = $second->sim([@load]);
        is $r->{status}, 3, "$what: refused" or diag $r->{out};
        like $r->{err}, $says, "$what: says why";
    };
    my $dump = slurp("$dir/both/database.dump");
    spew("$dir/both/database.dump", substr($dump, 0, -1) . chr(ord(substr $dump, -1) ^ 1));
    $refused->('a dump with one other bit', qr/both is damaged: database\.dump is not what was written/);
    spew("$dir/both/database.dump", "$dump\n");
    $refused->('a dump that is longer', qr/both is damaged: database\.dump has \d+ bytes, not \d+/);
    spew("$dir/both/database.dump", $dump);
    $second->sql("INSERT INTO users (id, email, password) VALUES ('ann', 'ann\@example.com', 'x')");
    $refused->('a server with a user of its own', qr/holds 1 user outside \@load\.test/);
    $second->sql("DELETE FROM users WHERE id = 'ann'");
    is $second->sql('SELECT count(*) FROM files'), $before, 'refused: the stack is as it was';

    my $l = $second->sim([@load]);
    is $l->{status}, 0, 'fixture load' or diag $l->{out}, $l->{err};
    is $second->sql('SELECT count(*) FROM files'), 132 + 1008, 'the rows are those that were saved';
    is $second->sql("SELECT count(*) FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%'"), 1, 'nobody is left of those who filled them';
    is join(' ', map { s{.*/}{}r } glob "$second->{dir}/.sim/*dump* $second->{dir}/.sim/store.*"), '', 'nothing is left beside';
    my $changes = $second->sql('SELECT count(*) FROM changes');
    delete $second->{env}; # the store's key is another one now
    my (undef, $again) = seed($second, 'seeded as it was saved', qw(seed 2 0.03 --bytes-scale 0.2 --accounts 2));
    is $again->{tree}{manifest_sha256}, $made[0]{tree}{manifest_sha256}, 'loaded: the same manifest';
    my ($objects) = grep { $_->{name} eq 'objects' } @{ $again->{checks} };
    is $objects->{status}, 'ok', 'loaded: every object' or diag explain $objects;
    $second->up;
    is $second->sql('SELECT count(*) FROM changes'), $changes, 'loaded: nothing was missing';
    my $run = $second->sim([qw(run 2 2 240 1 --run-dir before)]);
    is $run->{status}, 0, 'loaded: a run is healthy' or diag $run->{out}, $run->{err};
    $second->sql('UPDATE app_settings SET epoch = drive_new_id()'); # as another load would
    my $judged = $second->sim([qw(check --run before --only ledger)]);
    is $judged->{status}, 3, 'a run before a load is not judged by what is there after it' or diag $judged->{out};
    like $judged->{err}, qr/a fixture was loaded since/, 'and says so';

    spew("$second->{dir}/.sim/loading", "both\n"); # as a load leaves it that is killed between two renames
    my $cut = $second->stack('up');
    is $cut->{status}, 3, 'a load that was cut short: no server on two states at once';
    like $cut->{err}, qr/load of fixture both was cut short: `sim fixture load both`/, 'and what to do';
    unlink "$second->{dir}/.sim/loading";
    is $third->sim([qw(fixture remove both --dir fixtures)])->{status}, 0, 'fixture remove';
    is_deeply [glob "$dir/*"], [], 'it is gone';
}

# --explain asks nobody.
my $promised = File::Temp->new;
my $x = sim([qw(seed 9 1 --explain --json), "$promised"]);
is $x->{status}, 0, 'explain' or diag $x->{err};
like $x->{out}, qr/folders +2,194 +2,194/, 'explain: made against target';
like $x->{out}, qr/files +16,787 +16,787/, 'explain: files';
is_deeply [@{ json_file("$promised")->{tree} }{qw(folders files hot_folders hot_files)}], [2194, 16_787, 22, 3357], 'explain: in the JSON as well';

done_testing;
