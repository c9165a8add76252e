# A fixture is data: its rows come into the tables that the stack has, by a role that may do nothing else, and whatever
# somebody put into one is refused without being run.
use strict;
use warnings;
use Digest::SHA 'sha256_hex';
use File::Temp ();
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $fixture = "$stack->{dir}/.sim/fixtures/base";
my @load = qw(fixture load base);
is $stack->sim([qw(seed 1 0.01 --bytes-scale 0.1)])->{status}, 0, 'seeded';
my $users = $stack->sql('SELECT string_agg(id, $$ $$ ORDER BY id) FROM users');
is $stack->sim([qw(fixture save base)])->{status}, 0, 'saved';

# What somebody else may have put into a fixture, its digests made right: nothing of it is ever run.
{
    my %whole = map { $_ => slurp("$fixture/$_") } qw(database.dump objects.pack manifest.json);
    my $place = File::Temp->newdir(DIR => '/tmp');
    chmod 0777, "$place"; # for Postgres' account as well
    my $mark = "$place/mark";
    my $run = "COPY (SELECT 1) TO PROGRAM 'touch $mark'";
    my $try = sub {
        my ($what, $says, $dump, $change) = @_;
        my $m = decode_json($whole{'manifest.json'});
        $dump //= $whole{'database.dump'};
        spew("$fixture/database.dump", $dump);
        $m->{database} = { size => length $dump, sha256 => sha256_hex($dump) };
        $change->($m) if $change;
        spew("$fixture/manifest.json", encode_json($m));
        my $r = $stack->sim([@load]);
        is $r->{status}, 3, "$what: refused" or diag $r->{out};
        like $r->{err}, $says, "$what: says why";
        ok !-e $mark, "$what: nothing is run" or unlink $mark;
    };

    # Archives that act when they are restored, by each thing of a database that can.
    $stack->sql('CREATE DATABASE evil');
    my $url = $stack->env->{DATABASE_URL} =~ s{/[^/]*$}{/evil}r;
    psql($url, "CREATE FUNCTION run() RETURNS integer LANGUAGE plpgsql AS \$\$ BEGIN IF current_database() <> 'evil' THEN $run; END IF; RETURN 1; END \$\$");
    psql($url, $_) for 'CREATE FUNCTION still() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN public.run(); END $$',
        'CREATE MATERIALIZED VIEW view AS SELECT run()', 'CREATE TABLE files (id integer DEFAULT run() CHECK (run() = 1))',
        'INSERT INTO files DEFAULT VALUES', 'CREATE INDEX ON files ((still() + id))', 'CREATE DOMAIN word AS text CHECK (run() = 1)',
        'CREATE FUNCTION act() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM run(); END $$', 'CREATE EVENT TRIGGER act ON ddl_command_end EXECUTE FUNCTION act()';
    for my $format (qw(c t p)) {
        my $dump = `pg_dump -F$format '$url'`;
        is $?, 0, "an archive of format $format";
        $try->("an archive of format $format", qr/no fixture that can be loaded: its manifest\.json is not whole/, $dump);
        $try->("an archive of format $format as before", qr/format 1, whose dump could run commands: seed a stack anew/, $dump, sub { $_[0]{drivesim_fixture} = 1 });
    }
    my $script = `pg_dump '$url'`;
    $try->('an archive as rows', qr/is damaged: table \w+: /, $script, sub {
        my ($m) = @_;
        $_->{bytes} = 0 for @{ $m->{tables} };
        $m->{tables}[0]{bytes} = length $script;
    });
    $stack->sql('DROP DATABASE evil');

    # Names that are statements, tables of the server's own, rows that fit nowhere.
    my $rename = sub { my ($key, $name, $at) = @_; return sub { $_[0]{tables}[$at // 0]{$key} = $name } };
    my $other = qr/holds other tables than this stack's database/;
    $try->("a table's name", $other, undef, $rename->(name => "users; $run; --"));
    $try->("a schema's name", $other, undef, $rename->(schema => "public\".users; $run; --"));
    $try->("a table of the catalog", $other, undef, sub { @{ $_[0]{tables}[0] }{qw(schema name columns)} = ('pg_catalog', 'pg_authid', ['rolname name']) });
    $try->("a column's name", $other, undef, sub { $_[0]{tables}[0]{columns}[0] .= ") FROM PROGRAM 'touch $mark' --" });
    $try->('a column twice', $other, undef, sub { $_[0]{tables}[0]{columns}[0] = $_[0]{tables}[0]{columns}[1] });
    $try->('a column less', $other, undef, sub { pop @{ $_[0]{tables}[0]{columns} } });
    $try->('a table less', $other, undef, sub { my ($m) = @_; my $t = pop @{ $m->{tables} }; $m->{tables}[0]{bytes} += $t->{bytes} });
    $try->('a table twice', $other, undef, sub { my ($m) = @_; push @{ $m->{tables} }, { %{ $m->{tables}[0] }, bytes => 0 } });
    $try->("a sequence's name", $other, undef, sub { $_[0]{sequences}[0]{name} = "x'); $run; --" });
    $try->('a sequence out of range', qr/is damaged: a sequence is out of its range/, undef, sub { $_[0]{sequences}[0]{last} = '-9223372036854775808' });
    $try->('more rows than there are', qr/is damaged: table files: it has \d+ rows, not \d+/, undef, sub { $_->{name} eq 'files' and $_->{rows}++ for @{ $_[0]{tables} } });
    (my $broken = $whole{'database.dump'}) =~ s/\tfolder\t\\N\t/\tFolder\t\\N\t/ or die;
    $try->('a row that breaks a rule', qr/is damaged: table files: .*violates check constraint/, $broken);
    $try->('a user of the server', qr/is damaged: table users: /, $whole{'database.dump'} =~ s/owner\@load\.test/owner\@load.test\t\\N/r, sub { $_->{name} eq 'users' and $_->{bytes} += 3 for @{ $_[0]{tables} } });

    # A pack that is no file, or holds what no store has.
    my $pack = sub { my ($m, $data) = @_; spew("$fixture/objects.pack", $data); $m->{objects} = { size => length $data, sha256 => sha256_hex($data) } };
    my $entry = sub { my ($kind, $path, $data) = @_; return $kind . pack('vQ<Q<', length $path, length $data, 0) . $path . $data };
    my $of = sub { return join '', "DSPACK1\n", @_, $entry->('E', '', '') };
    $try->('a pack that leads elsewhere', qr/a path leads elsewhere/, undef, sub { $pack->($_[0], $of->($entry->('F', "../../../../../..$mark", 'x'))) });
    $try->('a pack of links', qr/neither file nor folder/, undef, sub { $pack->($_[0], $of->($entry->('L', 'objects', $mark))) });
    $try->('a pack of another thing', qr/holds run\.js, which is not a store's/, undef, sub { $pack->($_[0], $of->($entry->('F', 'run.js', 'x'))) });
    $try->('a pack without end', qr/holds more than it should/, undef, sub { $pack->($_[0], $of->(map { $entry->('D', "d$_", '') } 1 .. 4000)) });
    unlink "$fixture/objects.pack";
    symlink '/dev/zero', "$fixture/objects.pack";
    $try->('a pack that is a device', qr/objects\.pack is no plain file/);
    unlink "$fixture/objects.pack";
    spew("$fixture/$_", $whole{$_}) for keys %whole;
}

is $stack->sql('SELECT string_agg(id, $$ $$ ORDER BY id) FROM users'), $users, 'refused: the stack is as it was';
# Who fills the tables may do nothing else, whatever the rows might set off: a constraint of the stack's own asks.
$stack->sql(q{CREATE FUNCTION harmless() RETURNS boolean LANGUAGE sql AS $$ SELECT current_database() = 'tma_load' OR}
    . q{ (NOT rolsuper AND NOT rolcreaterole AND session_user = current_user AND NOT pg_has_role(oid, 'pg_execute_server_program', 'member')}
    . q{ AND NOT pg_has_role(oid, 'pg_write_server_files', 'member') AND NOT has_table_privilege('users', 'DELETE'))}
    . q{ FROM pg_roles WHERE rolname = session_user $$; ALTER TABLE users ADD CONSTRAINT by_whom CHECK (harmless())});my $r = $stack->sim([@load]);
is $r->{status}, 0, 'loaded' or diag $r->{out}, $r->{err};
is $stack->sql('SELECT string_agg(id, $$ $$ ORDER BY id) FROM users'), $users, 'the rows are those that were saved';
cmp_ok $stack->sql('SELECT last_value FROM audit_log_id_seq'), '>=', json_file("$fixture/manifest.json")->{sequences}[0]{last}, 'numbers go on from where they were';
cmp_ok $stack->sql('SELECT last_value FROM audit_log_id_seq'), '>=', $stack->sql('SELECT max(id) FROM audit_log'), 'and are used once';
is $stack->sql("SELECT conname FROM pg_constraint WHERE conname = 'by_whom'"), 'by_whom', "the tables are the stack's own";
is $stack->sql("SELECT string_agg(rolname, ' ') FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%'"), 'tma', 'nobody is left of those who filled them';
is_deeply [glob "$stack->{dir}/.sim/*dump* $stack->{dir}/.sim/store.*"], [], 'nothing is left beside';
$r = $stack->sim([qw(check)]);
is $r->{status}, 0, 'and all is well' or diag $r->{out};

# A server of one's own, whose tables the program does not know.
{
    my $own = Sim::Stack->new('--no-server');
    my $sim = sub { $own->sim([qw(fixture), @_, qw(base --dir fixtures)]) };
    my $tables = <<'END';
CREATE SCHEMA "Jo bs";
CREATE TYPE mood AS ENUM ('so', 'so la la');
CREATE TABLE "Jo bs"."it's" ("a ""b""" integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, up integer REFERENCES "Jo bs"."it's",
    twice integer GENERATED ALWAYS AS (up * 2) STORED, m mood, j jsonb, b bytea, t timestamptz, i interval, f double precision, x text[]);
CREATE TABLE part (k integer, v text) PARTITION BY LIST (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
CREATE TABLE drizzle_migrations (id serial, hash text);
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM part;
ALTER TABLE part ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no trigger acts on rows of a fixture'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON "Jo bs"."it's" EXECUTE FUNCTION refuse();
ALTER TABLE "Jo bs"."it's" DISABLE TRIGGER refuse;
END
    my $rows = <<'END';
INSERT INTO "Jo bs"."it's" (up, m, j, b, t, i, f, x) VALUES
    (2, 'so la la', '{"a": "\\\n"}', '\x00ff', '2026-10-25 02:30:00.000001+02', '1 mon -3 days', 0.1, '{"a,b",NULL,"\"\\"}'),
    (1, NULL, NULL, NULL, 'infinity', NULL, 'NaN', '{}');
INSERT INTO part VALUES (1, E'a\tb\n\\.\n');
INSERT INTO drizzle_migrations (hash) VALUES ('one');
REFRESH MATERIALIZED VIEW counted;
END
    my $all = sub { return $own->sql(q{SELECT * FROM "Jo bs"."it's" ORDER BY 1; SELECT * FROM part; SELECT * FROM counted; SELECT hash FROM drizzle_migrations}) };
    $own->sql("$tables$rows");
    my $before = $all->();
    my $r = $sim->('save');
    is $r->{status}, 0, 'another server: saved' or diag $r->{err};
    $own->sql(q{DELETE FROM part; UPDATE "Jo bs"."it's" SET f = 7; ALTER TABLE "Jo bs"."it's" ENABLE TRIGGER refuse; UPDATE drizzle_migrations SET hash = 'two'});
    $r = $sim->('load');
    is $r->{status}, 0, 'another server: loaded' or diag $r->{err};
    is $all->(), $before =~ s/one/two/r, 'another server: its rows, in the tables that it has now';
    is $own->sql(q{SELECT tgenabled FROM pg_trigger WHERE tgname = 'refuse'}), 'O', 'another server: its triggers act on what comes later';
    $own->sql(q{ALTER TABLE "Jo bs"."it's" DISABLE TRIGGER refuse; INSERT INTO "Jo bs"."it's" (up) VALUES (1)});
    is $own->sql(q{SELECT max("a ""b""") FROM "Jo bs"."it's"}), 3, 'another server: numbers go on';

    $own->sql('ALTER TABLE part ADD more text');
    $r = $sim->('load');
    is $r->{status}, 3, 'another server: tables that changed since';
    like $r->{err}, qr/base holds other tables than this stack's database \(it also has column more text of public\.part_1\)/, 'another server: which';
    $own->sql('ALTER TABLE part DROP more; SELECT lo_create(0)');
    like $sim->('save')->{err}, qr/is there already/, 'another server: saved once';
    $r = $own->sim([qw(fixture save large --dir fixtures)]);
    is $r->{status}, 3, 'another server: what rows cannot hold';
    like $r->{err}, qr/holds 1 large object, which a fixture cannot/, 'another server: is told';
    $own->sql('SET client_min_messages = warning; DROP SCHEMA public CASCADE; DROP SCHEMA "Jo bs" CASCADE; CREATE SCHEMA public');
    $r = $sim->('load');
    is $r->{status}, 3, 'a database without tables';
    like $r->{err}, qr/has no tables yet, .*: start your server once/, 'says what to do';
}
done_testing;
