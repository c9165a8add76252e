# The seeder on real parts: the same tree whatever happens on the way - killed and started again, with more requests at a
# time, in company of other accounts - and exact totals each time.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;
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

# --explain asks nobody.
my $x = sim([qw(seed 9 1 --explain)]);
is $x->{status}, 0, 'explain' or diag $x->{err};
like $x->{out}, qr/folders +2,194 +2,194/, 'explain: made against target';
like $x->{out}, qr/files +16,787 +16,787/, 'explain: files';

done_testing;
