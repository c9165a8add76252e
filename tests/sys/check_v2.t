# The checks on the database of a TMA Cloud v2, which stores no totals: they use what is there. Folder totals and storage
# use are held against what the server tells, names may be there twice, and its own store cannot be looked at.
use strict;
use warnings;
use File::Temp 'tempdir';
use Test::More;
use lib 'tests/lib';
use FakeTma;
use Postgres;
use Sim;

my $dir = tempdir(CLEANUP => 1);
my $pg = Postgres->new;
my $d = FakeTma->new(database => $pg->url);
my %opt = (env => { TMA_URL => $d->url, DATABASE_URL => $pg->url }, dir => $dir);

$pg->sql('CREATE TABLE client_heartbeats (user_id text, app_version text)');
is sim([qw(seed 1 0.01 --bytes-scale 0.01)], env => { TMA_URL => $d->url }, dir => $dir)->{status}, 0, 'seeded';

# The columns of v2 that the checks look at, and the rows that its server would have.
$pg->sql(q{
    CREATE TABLE users (id text PRIMARY KEY, email text UNIQUE NOT NULL, name text, storage_limit bigint, created_at timestamptz DEFAULT now());
    CREATE TABLE files (id text PRIMARY KEY, name text NOT NULL, type text NOT NULL, size bigint, modified timestamptz NOT NULL DEFAULT now(), mime_type text,
        starred boolean DEFAULT false, shared boolean DEFAULT false, parent_id text, user_id text REFERENCES users, path text, deleted_at timestamptz)});
sub quoted { my ($v) = @_; return 'NULL' if !defined $v; $v =~ s/'/''/g; return "'$v'" }

sub rows {
    my @n = @{ $d->nodes };
    my ($owner) = map { $_->{account} } @n;
    my $values = join ',', map {
        my $n = $_;
        '(' . join(',', (map { quoted($_) } @$n{qw(id name type size parent account)}), $n->{type} eq 'file' ? quoted("$n->{id}.bin") : 'NULL', $n->{trashed} ? 'now()' : 'NULL') . ')'
    } @n;
    $pg->sql("TRUNCATE files; INSERT INTO users (id, email) VALUES ('$owner', 'owner\@load.test') ON CONFLICT DO NOTHING;"
        . "INSERT INTO files (id, name, type, size, parent_id, user_id, path, deleted_at) VALUES $values");
    return @n;
}
sub check { my (@args) = @_; my $r = sim([qw(check --json), "$dir/check.json", @args], %opt); return ($r, { map { $_->{name} => $_ } @{ json_file("$dir/check.json")->{checks} } }) }

my @n = rows();
my ($r, $c) = check();
is $r->{status}, 0, 'what is there is in order' or diag $r->{out}, $r->{err};
is $c->{aggregates}{summary}, '22 of 22 folders by what info says, 0 wrong; none are stored', 'folder totals by info';
like $c->{storage}{summary}, qr/^1 account as the server reports it, .*, 0 wrong; none is stored$/, 'storage use by what the owner is told';
is $c->{structure}{status}, 'ok', 'the tree';
is $c->{objects}{summary}, 'not offered: the server keeps its files in a store of its own', 'objects are not offered';
is scalar(grep { m{/login$} } map { $_->{path} } @{ $d->log }), 2, 'both go on with the session that seed left';

# A row that does not fit what the server tells.
my ($file) = grep { $_->{type} eq 'file' && defined $_->{parent} } @n;
$pg->sql("UPDATE files SET size = size + 5 WHERE id = '$file->{id}'");
($r, $c) = check();
is $r->{status}, 1, 'a wrong size';
like "@{ $c->{aggregates}{detail} }", qr/folder \Q$file->{parent}\E .*info says \d+ bytes, \d+ files, \d+ folders; its rows add up to/, 'its folder is named';
like $c->{storage}{detail}[0], qr/the server reports \d+ bytes in use, its 168 files add up to \d+ \(-5\)/, 'and the account';

# A name twice, and something in the trash: neither is wrong here.
rows();
$pg->sql("INSERT INTO files (id, name, type, parent_id, user_id) SELECT 'twin', name, 'folder', parent_id, user_id FROM files WHERE type = 'folder' AND parent_id IS NULL LIMIT 1");
($r, $c) = check('--only', 'structure');
is $r->{status}, 0, 'a folder\'s name twice' or diag $r->{out};
like $c->{structure}{summary}, qr/0 wrong; 1 name twice in a folder, which this server allows$/, 'is told, not held against it';

done_testing;
