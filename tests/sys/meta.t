# The database functions on a real Postgres of our own: exact totals whatever the order of operations, and no deadlock,
# no lost or doubled item when many sessions write to one account at once.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use lib 'tests/lib';
use Postgres;

my $pg = Postgres->new;
$pg->sql('CREATE DATABASE drive');
$pg->sql('', file => [sort glob 'src/server/sql/*.sql'], db => 'drive');
$pg->sql('', file => ['tests/lib/meta_property.sql'], db => 'drive');
sub q1 { my ($sql) = @_; return $pg->sql($sql, db => 'drive') }

my $user = 0;
sub account {
    my ($limit) = @_;
    my $id = 'acct' . ++$user;
    q1("INSERT INTO users (id, email, password, storage_limit) VALUES ('$id', '$id\@load.test', 'x', " . ($limit // 'NULL') . ')');
    return $id;
}
sub folder { my ($a, $parent, $name) = @_; return q1("SELECT id FROM drive_folder_create('$a', '$a', " . ($parent ? "'$parent'" : 'NULL') . ", '$name')") }
my $key = 0;
sub upload {
    my ($a, $parent, $name, $size) = @_;
    ++$key;
    return q1("SELECT coalesce(refused, id) FROM drive_upload_commit('$a', '$a', " . ($parent ? "'$parent'" : 'NULL') . ", '$name', $size, 't/p', '$a/k$key', NULL, NULL)");
}
sub wrong { my ($a) = @_; return q1("SELECT * FROM test.wrong('$a')") }

subtest 'random operations leave totals, storage and numbers exact' => sub {    # C06
    for my $seed (0.17, -0.4) {
        my $a = account($seed > 0 ? 'NULL' : 60000);
        my $out = q1("SELECT * FROM test.run('$a', $seed, 700, 10)");
        like $out, qr/^\{.*"done": \d+/, "seed $seed: nothing is wrong after 700 operations" or next;
        my $n = decode_json($out);
        cmp_ok $n->{done}, '>', 350, "seed $seed: most operations were done";
        cmp_ok $n->{NAME_TAKEN} // 0, '>', 0, "seed $seed: names were taken";
        cmp_ok $n->{INTO_ITSELF} // 0, '>', 0, "seed $seed: a folder was to go into itself";
        cmp_ok $n->{STORAGE_LIMIT_EXCEEDED} // 0, '>', 0, "seed $seed: the limit was met" if $seed < 0;
        is q1("SELECT reconcile_folder_aggregates('$a')"), 0, "seed $seed: nothing to reconcile";
    }
};

subtest 'reconcile repairs what was altered, and counts it' => sub {
    my $a = account();
    my $f = folder($a, undef, 'F');
    upload($a, $f, 'a', 10);
    q1("UPDATE files SET aggregate_size = aggregate_size + 1 WHERE id = '$f'");
    like wrong($a), qr/totals of F: 11 1 0, not 10 1 0/, 'the test sees it';
    is q1("SELECT reconcile_folder_aggregates('$a')"), 1, 'one folder was wrong';
    is wrong($a), '', 'and is not any more';
};

subtest 'opposite moves at once: at most one is done, and no deadlock' => sub {    # C05
    my $a = account();
    my ($x, $y) = (folder($a, undef, 'X'), folder($a, undef, 'Y'));
    my ($fx, $fy) = (upload($a, $x, 'fx', 1), upload($a, $y, 'fy', 2));
    # Each session moves back and forth 100 times; the sessions meet in every way.
    my $loop = sub {
        my ($id, $to, $back) = @_;
        return "DO \$\$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM drive_move('$a', '$a', ARRAY['$id'], $to); COMMIT; "
            . "PERFORM drive_move('$a', '$a', ARRAY['$id'], $back); COMMIT; END LOOP; END \$\$";
    };
    my @out = $pg->at_once('drive', $loop->($x, "'$y'", 'NULL'), $loop->($y, "'$x'", 'NULL'),
        $loop->($fx, "'$y'", "'$x'"), $loop->($fy, "'$x'", "'$y'"));
    is_deeply \@out, ['', '', '', ''], 'no session met an error';
    is wrong($a), '', 'everything holds';
    for my $round (1 .. 10) {
        q1("SELECT drive_move('$a', '$a', ARRAY['$x', '$y'], NULL)");
        my @r = $pg->at_once('drive', "SELECT refused FROM drive_move('$a', '$a', ARRAY['$x'], '$y')", "SELECT refused FROM drive_move('$a', '$a', ARRAY['$y'], '$x')");
        is_deeply [sort @r], ['', 'INTO_ITSELF'], "round $round: one is done, the other refused";
    }
    is q1("SELECT count(*) FROM drive_chain('$x')") + q1("SELECT count(*) FROM drive_chain('$y')"), 2, 'both are reachable';
};

subtest 'twenty creates of one name at once' => sub {
    my $a = account();
    my $f = folder($a, undef, 'in here');
    my @out = $pg->at_once('drive', map { "SELECT coalesce(refused, 'made') FROM drive_folder_create('$a', '$a', '$f', 'New folder')" } 1 .. 20);
    is_deeply [sort @out], [('NAME_TAKEN') x 19, 'made'], 'one is made';
    @out = $pg->at_once('drive', map { "SELECT name FROM drive_upload_commit('$a', '$a', '$f', 'n.txt', 1, 't/p', '$a/u$_', NULL, NULL)" } 1 .. 20);
    is_deeply [sort @out], [sort 'n.txt', map { "n ($_).txt" } 1 .. 19], 'twenty uploads of one name have twenty names';
    is wrong($a), '', 'everything holds';
};

subtest 'the same file deleted by two at once' => sub {
    my $a = account();
    for my $round (1 .. 10) {
        my $f = upload($a, undef, "f$round", 100);
        my @out = $pg->at_once('drive', ("SELECT coalesce(refused, 'done') FROM drive_trash('$a', '$a', ARRAY['$f'], NULL)") x 2);
        is_deeply [sort @out], ['NOT_FOUND', 'done'], "round $round: trashed once";
        @out = $pg->at_once('drive', ("SELECT coalesce(refused, 'done') FROM drive_purge('$a', '$a', ARRAY['$f'])") x 2);
        is_deeply [sort @out], ['NOT_FOUND', 'done'], "round $round: deleted once";
    }
    is q1("SELECT storage_used FROM users WHERE id = '$a'"), 0, 'the storage use fell once each';
};

subtest 'two saves of one version, a lock at once' => sub {
    my $a = account();
    my $f = upload($a, undef, 'doc', 10);
    my @out = $pg->at_once('drive', map { "SELECT coalesce(refused, version::text) FROM drive_replace_commit('$a', '$a', 's$_', '$f', ARRAY['1'], 20, 't/p', '$a/r$_', NULL, NULL)" } 1, 2);
    is_deeply [sort @out], [2, 'VERSION_CONFLICT'], 'one is saved';
    @out = $pg->at_once('drive', map { "SELECT coalesce(refused, 'mine') FROM drive_lock('$a', '$a', 's1', 'n', '$f', NULL, 30)" } 1 .. 10);
    is_deeply [sort @out], [('LOCKED') x 9, 'mine'], 'one gets the lock';
    is q1("UPDATE locks SET expires_at = now() - interval '1 s'; SELECT coalesce(refused, 'mine') FROM drive_lock('$a', '$a', 'other', 'n', '$f', NULL, 30)"), 'mine', 'a lapsed lock is free';
    is q1("SELECT coalesce(refused, 'saved') FROM drive_replace_commit('$a', '$a', 's1', '$f', NULL, 20, 't/p', '$a/q', NULL, NULL)"), 'LOCKED', 'others may not save meanwhile';
    is q1("SELECT drive_unlock('$a', 's1', '$f', (SELECT lock_id FROM locks WHERE file_id = '$f'))"), 'LOCK_LOST', 'nor let it go';
};

# A listing may be planned while the statistics are those of an empty table. An index that holds the whole account in the
# asked order must not look as cheap then: it must be no choice at all.
subtest 'a listing of one folder cannot walk the account' => sub {
    for my $order ('name', 'accessed_at') {
        my $plan = q1("BEGIN; DROP INDEX files_by_name, files_by_size, files_by_modified, files_by_accessed; SET LOCAL enable_seqscan = off; "
            . "EXPLAIN SELECT id FROM files WHERE user_id = 'a' AND coalesce(parent_id, '') = 'p' AND type = 'file' AND deleted_at IS NULL ORDER BY $order, id LIMIT 200; ROLLBACK");
        unlike $plan, qr/files_(names|recent) on files[^\n]*\n\s+Index Cond/, "by $order, without its own index";
    }
    like q1("SET enable_sort = off; EXPLAIN SELECT id FROM files WHERE user_id COLLATE \"C\" = 'a' AND deleted_at IS NULL ORDER BY name, id LIMIT 9"), qr/files_names/, 'searching can';
};

subtest 'names' => sub {
    my $a = account();
    my ($nfc, $nfd) = ("Am\xc3\xa9lie.txt", "Ame\xcc\x81lie.txt");
    upload($a, undef, $nfc, 1);
    is upload($a, undef, $nfd, 1), 'NAME_TAKEN', 'a decomposed twin is refused';
    is q1("SELECT refused FROM drive_folder_create('$a', '$a', NULL, '$nfd')"), 'NAME_TAKEN', 'as a folder too';
    for my $name ('a' x 255, "\xc3\xa9" x 127 . 'x', "\xf0\x9f\x8c\x8d" x 63 . 'abc') {
        upload($a, undef, $name, 1) for 1 .. 2;
        is q1("SELECT count(*) FROM files WHERE user_id = '$a' AND octet_length(name) BETWEEN 250 AND 255 AND left(name, 9) = left('$name', 9)"), 2, 'a name of 255 bytes is numbered within 255';
    }
    is q1("SELECT drive_numbered('a.tar.gz', 2, 'file') || '|' || drive_numbered('.hidden', 1, 'file') || '|' || drive_numbered('v1.2', 1, 'folder')"),
        'a.tar (2).gz|.hidden (1)|v1.2 (1)', 'numbers stand before the extension';
    q1("SELECT count(c.id) FROM generate_series(1, 300) i, drive_upload_commit('$a', '$a', NULL, 'same', 1, 't/p', '$a/s' || i, NULL, NULL) c");
    is q1("SELECT count(DISTINCT name) FROM files WHERE name LIKE 'same%'"), 300, '300 uploads of one name have 300 names';
};

subtest 'limits' => sub {
    my $a = account(1000);
    my $f = upload($a, undef, 'half', 500);
    is upload($a, undef, 'too much', 501), 'STORAGE_LIMIT_EXCEEDED', 'an upload past the limit';
    is q1("SELECT refused || detail FROM drive_replace_commit('$a', '$a', 's', '$f', NULL, 1001, 't/p', '$a/x', NULL, NULL)"),
        'STORAGE_LIMIT_EXCEEDED{"required": 501, "available": 500}', 'a save past the limit, told in figures';
    is q1("SELECT refused FROM drive_reserve('$a', 400, 't', 60)"), '', '400 are reserved';
    is upload($a, undef, 'second', 200), 'STORAGE_LIMIT_EXCEEDED', 'and count';
    q1("UPDATE storage_reservations SET expires_at = now() - interval '1 s'; SELECT drive_housekeeping(1000)");
    is wrong($a), '', 'until they lapse';
    q1("SELECT drive_trash('$a', '$a', ARRAY['$f'], NULL); UPDATE users SET storage_limit = 400 WHERE id = '$a'");
    is q1("SELECT refused FROM drive_restore('$a', '$a', ARRAY['$f'], NULL)"), 'STORAGE_LIMIT_EXCEEDED', 'a restore above the limit is refused';
    is q1("SELECT count(*) FROM files WHERE user_id = '$a' AND deleted_at IS NOT NULL"), 1, 'and changes nothing';

    my $b = account();
    my $p;
    $p = folder($b, $p, 'd') for 1 .. 100;
    is q1("SELECT refused FROM drive_folder_create('$b', '$b', '$p', 'd')"), 'TOO_DEEP', 'the 101st level';
    my $two = folder($b, undef, 'two');
    folder($b, $two, 'deep');
    my $at99 = q1("SELECT (drive_chain('$p'))[2]");
    is q1("SELECT refused FROM drive_move('$b', '$b', ARRAY['$two'], '$at99')"), 'TOO_DEEP', 'two levels below the 99th';
    my ($top) = q1("SELECT (drive_chain('$p'))[100]");
    is q1("SELECT refused FROM drive_trash('$b', '$b', ARRAY['$top'], NULL)"), '', 'the deepest tree goes to the trash';
    is q1("SELECT refused FROM drive_purge('$b', '$b', NULL)"), '', 'and away';
    is wrong($b), '', 'exactly';
};

subtest 'another account sees nothing and changes nothing' => sub {
    my ($a, $b) = (account(), account());
    my $f = folder($a, undef, 'mine');
    my $x = upload($a, $f, 'x', 1);
    for my $call ("drive_folder_create('$b', '$b', '$f', 'n')", "drive_rename('$b', '$b', '$x', 'n')", "drive_move('$b', '$b', ARRAY['$x'], NULL)",
        "drive_mark('$b', '$b', ARRAY['$x'], 'star', true)", "drive_trash('$b', '$b', ARRAY['$f'], NULL)", "drive_restore('$b', '$b', ARRAY['$x'], NULL)",
        "drive_purge('$b', '$b', ARRAY['$x'])", "drive_replace_commit('$b', '$b', 's', '$x', NULL, 1, 't', 'k', NULL, NULL)",
        "drive_lock('$b', '$b', 's', 'n', '$x', NULL, 30)", "drive_copy_begin('$b', '$b', 'j', ARRAY['$x'], NULL)",
        "drive_upload_commit('$b', '$b', '$f', 'n', 1, 't', 'k', NULL, NULL)") {
        like q1("SELECT refused FROM $call"), qr/^(NOT_FOUND|PARENT_NOT_FOUND)$/, $call;
    }
    is q1("SELECT change_seq FROM users WHERE id = '$b'"), 0, 'no change was noted';
};

# Two servers may be at one job: the one that was silent for a minute, and the one that claimed the job then.
subtest 'a copy that failed stays failed, and nothing of it is left' => sub {
    my ($a, $job) = (account(), 'j1');
    my $f = upload($a, undef, 'source', 10);
    q1("INSERT INTO jobs (id, account_id, user_id, kind, status, server_id, args) VALUES ('$job', '$a', '$a', 'copy', 'active', 'second', '{}')");
    is q1("SELECT items FROM drive_copy_begin('$a', '$a', '$job', ARRAY['$f'], NULL)"), 1, 'a copy is begun';
    is q1("SELECT drive_job_put_back('$job', 'first', 0); SELECT server_id FROM jobs WHERE id = '$job'"), "\nsecond", 'it is not the other server\'s to put back';
    like q1("SELECT drive_job_fail('$job', 'PARENT_NOT_FOUND')"), qr{^$a/\w+$}, 'failing it names the object that may have been written';
    is q1("SELECT count(*) FROM drive_copy_commit('$a', '$a', '$job')"), 0, 'a commit that comes late does nothing';
    is q1("SELECT status, error FROM jobs WHERE id = '$job'"), 'failed|PARENT_NOT_FOUND', 'nor does it call the job completed';
    is q1("SELECT drive_job_fail('$job', 'GIVEN_UP'); SELECT error FROM jobs WHERE id = '$job'"), 'PARENT_NOT_FOUND', 'it fails once';
    is wrong($a), '', 'no reservation and no item is left';
};

# Who takes many rows beside the order of locks must not wait for any: what another one holds is skipped.
subtest 'notes and ends of sessions wait for nobody' => sub {
    my $a = account();
    my ($f, $g) = (upload($a, undef, 'f', 1), upload($a, undef, 'g', 1));
    my @s = split /\n/, q1("SELECT drive_session_open('$a', 'ip', 'agent', 60) FROM generate_series(1, 2)");
    q1("SELECT drive_lock('$a', '$a', '$s[0]', 'n', id, NULL, 30) FROM unnest(ARRAY['$f', '$g']) AS id");
    my $other = $pg->session('drive');
    print { $other->{in} } "BEGIN; SELECT id FROM sessions WHERE id = '$s[1]' FOR UPDATE; SELECT file_id FROM locks WHERE file_id = '$f' FOR UPDATE;\n";
    readline $other->{out} for 1 .. 2;
    my $no_wait = "SET lock_timeout = '10s'";
    q1("$no_wait; UPDATE sessions SET last_seen_at = 'epoch' WHERE id = '$s[0]'; SELECT drive_sessions_seen(ARRAY['$s[1]', '$s[0]'])");
    is q1("SELECT last_seen_at > 'epoch' FROM sessions WHERE id = '$s[0]'"), 't', 'a session is seen while another one is held';
    is q1("$no_wait; SELECT drive_session_close('$a', '$s[0]')"), 't', 'a session ends while one of its locks is held';
    is q1("SELECT string_agg(file_id, ' ') FROM locks WHERE session_id = '$s[0]'"), $f, 'and lets go of the others';
    q1("$no_wait; UPDATE locks SET expires_at = 'epoch' WHERE file_id = '$g'; SELECT drive_housekeeping(1000)");
    print { $other->{in} } "ROLLBACK;\n\\q\n";
    waitpid $other->{pid}, 0;
    is q1("UPDATE locks SET expires_at = 'epoch'; SELECT drive_housekeeping(1000); SELECT count(*) FROM locks WHERE session_id = '$s[0]'"), "0\n0", 'what was skipped goes later';
};

subtest 'reading is no change' => sub {
    my $a = account();
    my $f = upload($a, undef, 'read me', 1);
    my $seq = q1("SELECT change_seq FROM users WHERE id = '$a'");
    q1("SELECT drive_touch(ARRAY['$f', 'none'], ARRAY[4102444800000000, 1]), drive_audit_downloads(ARRAY['$a'], ARRAY['$a'], ARRAY['$f'], ARRAY[1])");
    is q1("SELECT extract(year FROM accessed_at) FROM files WHERE id = '$f'"), 2100, 'the time of access is noted';
    is q1("SELECT change_seq FROM users WHERE id = '$a'"), $seq, 'no number is taken';
    is q1("SELECT count(*) FROM audit_log WHERE action = 'file.download' AND resource_id = '$f'"), 1, 'the audit log tells it';
};

unlike $pg->log_text, qr/deadlock|ERROR/, "Postgres' log has no deadlock and no error: refusals are none";
done_testing;
