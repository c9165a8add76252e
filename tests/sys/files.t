# The file calls of the reference server, answer by answer: listings and their pages, names, places, trash, locks.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use IPC::Open3 ();
use POSIX ();
use Test::More;
use lib 'tests/lib';
use Sim;
use Drive;

my $stack = Sim::Stack->new;
my $url = $stack->env->{TMA_URL};
my $d = Drive->administrator($stack);
my ($account) = $stack->sql('SELECT first_user_id FROM app_settings');
$d->post('/api/user/signup-toggle', { enabled => JSON::PP::true });
my $other = Drive->sign_up($url, 'owner-2@load.test');
my $again = Drive->sign_in($url, 'owner@load.test');

sub refused {
    my ($r, $status, $code, $what) = @_;
    is $r->{status}, $status, "$what: $status" or diag $r->{text};
    is $r->{json}{error}, $code, "$what: $code" if $code;
    ok length($r->{json}{message} // ''), "$what: with a sentence";
    return;
}

subtest 'a listing page by page' => sub {
    my $f = $d->folder('listing');
    my @folders = map { $d->folder("folder $_", $f) } 1 .. 4;
    is $d->upload($f, sprintf('file %02d.txt', $_), 'x' x (20 - 2 * $_))->{status}, 200, "file $_" for 1 .. 9;
    my $first = $d->get("/api/files?parentId=$f");
    is scalar @{ $first->{json} }, 13, 'one page holds all';
    is $first->{headers}{'x-next-cursor'}, undef, 'and no other follows';
    is_deeply [sort keys %{ $first->{json}[-1] }], [sort qw(id name type size mimeType parentId starred shared modified accessedAt version)], 'a file object has these fields';
    is_deeply [map { $_->{type} } @{ $first->{json} }], [('folder') x 4, ('file') x 9], 'folders first';
    my ($item) = grep { $_->{name} eq 'file 01.txt' } @{ $first->{json} };
    is $item->{size}, 18, 'the size is a number of bytes';
    like $item->{modified}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'times are ISO 8601 in UTC';

    for my $by (qw(name size modified accessedAt)) {
        for my $order (qw(asc desc)) {
            my @whole = map { $_->{id} } @{ $d->get("/api/files?parentId=$f&sortBy=$by&order=$order")->{json} };
            for my $limit (1, 3, 4, 13) {
                my @paged = map { $_->{id} } $d->list($f, "sortBy=$by&order=$order&limit=$limit");
                is_deeply \@paged, \@whole, "$by $order in pages of $limit is the same";
            }
        }
    }
    my @names = map { $_->{name} } @{ $d->get("/api/files?parentId=$f&sortBy=size")->{json} };
    is_deeply [@names[4 .. 12]], [map { sprintf 'file %02d.txt', $_ } reverse 1 .. 9], 'sorted by size as numbers, 8 before 10';

    # What comes or goes elsewhere moves nothing between pages.
    my $page = $d->get("/api/files?parentId=$f&limit=6");
    $d->post('/api/files/rename', { id => $folders[0], name => 'aaa' });
    $d->post('/api/files/delete', { ids => [$folders[1]] });
    my $next = $d->get("/api/files?parentId=$f&limit=6&cursor=$page->{headers}{'x-next-cursor'}");
    is $next->{json}[0]{name}, 'file 03.txt', 'the next page begins where the last one ended';

    refused $d->get("/api/files?parentId=$f&cursor=$page->{headers}{'x-next-cursor'}&order=desc"), 400, 'INVALID_CURSOR', "another order's cursor";
    refused $d->get("/api/files?parentId=$f&cursor=nonsense"), 400, 'INVALID_CURSOR', 'no cursor at all';
    refused $d->get('/api/files?limit=' . $_), 400, undef, "limit=$_" for 0, 501, -1, 'x', '1e2';
    refused $d->get("/api/files?$_"), 400, undef, "a query that is no UTF-8: $_" for 'cursor=%ff', 'parentId=%zz', 'parentId=a%00b';
    refused $d->get('/api/files?sortBy=colour'), 400, undef, 'an unknown order';
    refused $d->get("/api/files?parentId=$_"), 404, undef, "parentId=$_" for 'none', $folders[1], $item->{id};
    refused $other->get("/api/files?parentId=$f"), 404, undef, "another account's folder";
};

subtest 'a folder of 1,203 entries is whole' => sub {
    my $f = $d->folder('hot');
    $stack->sql("SELECT count(u) FROM drive_upload_commit_many('$account', '$account', array_fill('$f'::text, ARRAY[1203]), (SELECT array_agg('entry ' || i) FROM generate_series(1, 1203) i), array_fill(1::bigint, ARRAY[1203]), array_fill('t/p'::text, ARRAY[1203]), (SELECT array_agg('$account/h' || i) FROM generate_series(1, 1203) i), array_fill(NULL::bigint, ARRAY[1203]), NULL) u");
    $d->{pages} = 0;
    my @all = $d->list($f);
    is scalar @all, 1203, 'all entries';
    is $d->{pages}, 7, 'in pages of 200';
    my %seen = map { $_->{id} => 1 } @all;
    is scalar keys %seen, 1203, 'each once';
    my $r = $d->post('/api/files/delete', { ids => [$f] });
    is $r->{status}, 202, 'more than 1,000 items go to the trash as a job' or diag $r->{text};
    is $d->job($r->{json}{jobId})->{json}{status}, 'completed', 'which ends';
    refused $d->get("/api/files?parentId=$f"), 404, undef, 'then the folder';
    $r = $d->post('/api/files/trash/restore', { ids => [$f] });
    is $r->{status}, 202, 'and come back as one';
    $d->job($r->{json}{jobId});
    is scalar($d->list($f)), 1203, 'whole';
};

subtest 'names' => sub {
    my $f = $d->folder('names');
    is $d->post('/api/files/folder', { name => "  trimmed \t", parentId => $f })->{json}{name}, 'trimmed', 'trimmed at both ends';
    my %bad = ('a/b' => 'a slash', 'a\\b' => 'a backslash', 'a:b' => 'a colon', 'a*' => 'a star', 'a?' => 'a question mark', 'a"b' => 'a quote', 'a<b' => 'less', 'a|b' => 'a bar',
        "a\x01b" => 'a control character', '' => 'nothing', '   ' => 'white space alone', '..' => 'two dots', 'a.' => 'a dot at the end', 'CON' => 'a device', 'aux.txt' => 'a device with an extension', 'x' x 101 => '101 characters');
    refused $d->post('/api/files/folder', { name => $_, parentId => $f }), 422, undef, $bad{$_} for sort keys %bad;
    is $d->post('/api/files/folder', { name => "\x{e9}" x 100, parentId => $f })->{status}, 201, '100 characters of two bytes';
    for my $good ("\x{1f30d} \x{6587}\x{4ef6}", '100%.txt', 'a+b', '[x]', "it's & that", "\x{5e9}\x{5dc}") {
        my $r = $d->post('/api/files/folder', { name => $good, parentId => $f });
        is $r->{json}{name}, $good, 'a name comes back as it went';
    }
    my ($nfc, $nfd) = ("Am\x{e9}lie.txt", "Ame\x{301}lie.txt");
    my $id = $d->folder($nfc, $f);
    my $twin = $d->post('/api/files/folder', { name => $nfd, parentId => $f });
    refused $twin, 409, 'NAME_TAKEN', 'a decomposed twin';
    is $twin->{json}{id}, $id, 'which tells whose name it is';
    is $d->post('/api/files/rename', { id => $id, name => $nfd })->{json}{name}, $nfd, 'the item itself may be spelt anew';
    my $kept = $d->upload($f, 'note', 'kept')->{json}{id}; # K12
    my $changed = sub { return $stack->sql("SELECT count(*) FROM changes WHERE data->>'id' = '$kept'") };
    my $before = $changed->();
    is $d->post('/api/files/rename', { id => $kept, name => 'Note' })->{status}, 200, 'K12: a change of case only';
    is $changed->() - $before, 1, 'K12: is one change event';
    is_deeply [ map { $_->{name} } grep { lc $_->{name} eq 'note' } $d->list($f) ], ['Note'], 'K12: and one entry';
    is $d->get("/api/files/$kept/download")->{text}, 'kept', 'K12: with its content';
    my $x = $d->folder('test', $f);
    is $d->post('/api/files/rename', { id => $x, name => 'Test' })->{json}{name}, 'Test', 'a change of case only';
    refused $d->post('/api/files/rename', { id => $x, name => 'trimmed' }), 409, 'NAME_TAKEN', 'a rename to a taken name';
    is scalar(grep { lc $_->{name} eq 'test' } $d->list($f)), 1, 'one entry';
    my $long = $d->upload($f, 'n' x 255, 'x');
    is $long->{status}, 200, 'a file name of 255 bytes';
    refused $d->upload($f, 'n' x 256, 'x'), 400, undef, '256 bytes';
    refused $d->post('/api/files/rename', { id => $long->{json}{id}, name => 'n' x 101 }), 422, undef, 'a rename to 101 characters';
    refused $d->post('/api/files/rename', { id => 'none', name => 'n' }), 404, 'NOT_FOUND', 'a rename of nothing';
    refused $d->post('/api/files/folder', { name => 'x', parentId => 'none' }), 404, 'PARENT_NOT_FOUND', 'a folder in no folder';
    refused $d->post('/api/files/folder', { name => 'x', parentId => 5 }), 422, undef, 'a parent that is a number';
    refused $d->post('/api/files/folder', { name => 5 }), 422, undef, 'a name that is a number';
};

# Postgres takes no such text; that is the client's fault, not the server's.
subtest 'text that is no UTF-8 is refused wherever it stands' => sub {
    my $errors = sub { my ($n) = $d->{http}->get("$url/metrics")->{content} =~ /^drive_server_errors_total (\d+)/m; return $n // 0 };
    my ($before, $f, @json) = ($errors->(), $d->upload(undef, 'utf8.txt', 'x')->{json}{id}, ('Content-Type' => 'application/json'));
    refused $d->call(POST => "/api/files/$_->[0]", $_->[1], @json), 400, 'INVALID_TEXT', $_->[0]
        for ['move', qq({"ids":["\xff"]})], ['copy', qq({"ids":["$f"],"parentId":"\xff"})], ['delete', qq({"ids":["\xff"]})], ['rename', qq({"id":"\xff","name":"x"})];
    refused $d->get('/api/files/%ff/info'), 400, 'INVALID_TEXT', 'in a path';
    refused $d->upload("\xff", 'a.txt', 'x'), 400, 'INVALID_TEXT', 'in a form';
    is $d->{http}->post("$url/api/login", { headers => { @json, 'X-Requested-With' => 'x' }, content => qq({"email":"\xff\@load.test","password":"password"}) })->{status}, 400, 'in a login';
    is $errors->(), $before, 'none counts as an error of the server';
};

subtest 'moving' => sub {
    my ($p, $q) = ($d->folder('P'), $d->folder('P2'));
    my $c = $d->folder('C', $p);
    my $file = $d->upload($c, 'f.txt', 'abc')->{json}{id};
    my $before = $d->get("/api/files/$p/info")->{text};
    refused $d->post('/api/files/move', { ids => [$p], parentId => $c }), 400, 'INTO_ITSELF', 'below itself';
    refused $d->post('/api/files/move', { ids => [$p], parentId => $p }), 400, 'INTO_ITSELF', 'into itself';
    refused $d->post('/api/files/copy', { ids => [$p], parentId => $c }), 400, 'INTO_ITSELF', 'a copy below itself';
    refused $d->post('/api/files/move', { ids => [$file, 'none'], parentId => $q }), 404, 'NOT_FOUND', 'with an unknown one';
    refused $d->post('/api/files/move', { ids => [], parentId => $q }), 422, undef, 'nothing';
    refused $d->post('/api/files/move', { ids => [map { "i$_" } 1 .. 501], parentId => $q }), 422, undef, '501 items';
    refused $other->post('/api/files/move', { ids => [$file] }), 404, 'NOT_FOUND', "another account's file";
    is $d->get("/api/files/$p/info")->{text}, $before, 'and nothing was done';
    is $d->get("/api/files/$p/info")->{json}{folderInfo}{totalSize}, 3, 'totals count what is below';
    is_deeply $d->get("/api/files/$file/info")->{json}{locationPath}, ['P', 'C'], 'an item tells where it is';
    $d->upload($q, 'f.txt', 'taken');
    my $r = $d->post('/api/files/move', { ids => [$file], parentId => $q });
    is $r->{json}{files}[0]{name}, 'f (1).txt', 'a taken name is numbered';
    is $d->get("/api/files/$p/info")->{json}{folderInfo}{totalSize}, 0, 'totals follow';
    is $d->get("/api/files/$q/info")->{json}{folderInfo}{fileCount}, 2, 'on both sides';
    my $cursor = $d->get('/api/files/changes')->{json}{cursor};
    $d->post('/api/files/move', { ids => [$file], parentId => undef });
    my $feed = $d->get("/api/files/changes?cursor=$cursor")->{json};
    is_deeply [sort map { $_ // 'top' } @{ $feed->{folders} }], [sort $q, 'top'], 'the feed names both parents';
};

subtest 'trash' => sub {
    my $f = $d->folder('going');
    my $in = $d->folder('inner', $f);
    my $file = $d->upload($in, 'a.txt', 'abc')->{json}{id};
    my $alone = $d->upload($in, 'alone.txt', 'x')->{json}{id};
    is $d->post('/api/files/delete', { ids => [$alone] })->{status}, 200, 'one file goes first';
    is $d->post('/api/files/delete', { ids => [$f] })->{status}, 200, 'then the folder';
    refused $d->post('/api/files/delete', { ids => [$f] }), 404, 'NOT_FOUND', 'once more';
    refused $d->get("/api/files/$file/info"), 404, 'NOT_FOUND', 'what went along';
    my %trash = map { $_->{id} => $_ } @{ $d->get('/api/files/trash')->{json} };
    ok $trash{$f} && $trash{$alone} && !$trash{$in}, 'the trash shows what was put there';
    ok $trash{$f}{deletedAt}, 'and since when';
    is $d->post('/api/files/trash/restore', { ids => [$f] })->{status}, 200, 'the folder comes back';
    is_deeply [map { $_->{name} } $d->list($in)], ['a.txt'], 'with what went along, and nothing else';
    $d->upload($in, 'alone.txt', 'new');
    is $d->post('/api/files/trash/restore', { ids => [$alone] })->{json}{files}[0]{name}, 'alone (1).txt', 'a taken name is numbered';
    $d->post('/api/files/delete', { ids => [$file] });
    $d->post('/api/files/delete', { ids => [$f] });
    my $r = $d->post('/api/files/trash/restore', { ids => [$file] })->{json}{files}[0];
    is $r->{parentId}, undef, 'without its folder it comes back to the top';
    refused $d->post('/api/files/trash/delete', { ids => [$r->{id}] }), 404, 'NOT_FOUND', 'deleting for good what is not in the trash';
    my $used = $d->get('/api/user/storage')->{json}{used};
    my $job = $d->post('/api/files/trash/delete', { ids => [$f] });
    is $job->{status}, 202, 'deleting for good is a job';
    is $d->job($job->{json}{jobId})->{status}, 200, 'which ends';
    is $d->get('/api/user/storage')->{json}{used}, $used - 4, 'and frees what was in it';
};

subtest 'searching, stars, recent, stats' => sub {
    my $f = $d->folder('search');
    my %id = map { $_ => $d->upload($f, $_, 'x')->{json}{id} } '100%.txt', '1000.txt', 'a_b.txt', 'axb.txt', "\x{c3}\x{84}RGER.txt";
    my $find = sub { my ($q) = @_; return [sort map { $_->{name} } grep { $_->{parentId} eq $f } @{ $d->get("/api/files/search?q=$q")->{json} }] };
    is_deeply $find->('00%25'), ['100%.txt'], '% is a percent sign';
    is_deeply $find->('a_b'), ['a_b.txt'], '_ is an underscore';
    is_deeply $find->('%C3%A4rger'), ["\x{c4}RGER.txt"], 'case does not matter, in any script';
    refused $d->get('/api/files/search?q='), 400, undef, 'a search for nothing';
    is_deeply $other->get('/api/files/search?q=txt')->{json}, [], 'other accounts find nothing';
    my $stats = $d->get('/api/files/stats')->{json};
    is $d->post('/api/files/star', { ids => [values %id], starred => JSON::PP::true })->{status}, 200, 'five stars';
    is $d->get('/api/files/stats')->{json}{starredCount}, $stats->{starredCount} + 5, 'are counted';
    is scalar @{ $d->get('/api/files/starred')->{json} }, 5, 'and listed';
    refused $d->post('/api/files/star', { ids => [values %id], starred => 'yes' }), 422, undef, 'starred must be true or false';
    is $d->get("/api/files/$id{'axb.txt'}/download")->{text}, 'x', 'one is read';
    ok wait_until(sub { $d->get('/api/files/recent?limit=1')->{json}[0]{id} eq $id{'axb.txt'} }), 'and is then the most recent';
    is $stack->sql("SELECT count(*) FROM audit_log WHERE action = 'file.download' AND resource_id = '$id{'axb.txt'}'"), 1, 'the audit log tells it';
};

subtest 'locks and versions' => sub {
    my $f = $d->upload(undef, 'doc.txt', 'one')->{json};
    my $lock = $d->post("/api/files/$f->{id}/lock");
    is $lock->{status}, 200, 'a lock' or diag $lock->{text};
    is_deeply [sort keys %{ $lock->{json} }], [qw(expiresAt fileId lockId version)], 'with these fields';
    is $lock->{json}{version}, $f->{version}, 'of the listed version';
    my $held = $again->post("/api/files/$f->{id}/lock");
    refused $held, 423, 'LOCKED', 'another session of the same login';
    ok $held->{json}{lockedBy}{name} && $held->{json}{expiresAt}, 'is told by whom and until when';
    refused $d->post("/api/files/$f->{id}/lock"), 423, 'LOCKED', 'another app of the same session, which has not the id';
    refused $again->replace($f->{id}, 'theirs'), 423, 'LOCKED', 'and may not save';
    my $saved = $d->replace($f->{id}, 'two', 'If-Match' => qq("$f->{version}"), 'X-Lock-Id' => $lock->{json}{lockId});
    is $saved->{status}, 200, 'the holder may';
    isnt $saved->{json}{version}, $f->{version}, 'the version changes';
    refused $d->replace($f->{id}, 'three', 'X-Lock-Id' => 'other'), 423, 'LOCKED', 'another app of the same session, which names a lock that lapsed';
    my $late = $d->replace($f->{id}, 'three', 'If-Match' => qq("$f->{version}"));
    refused $late, 412, 'VERSION_CONFLICT', 'a save of the old version';
    is $late->{json}{currentVersion}, $saved->{json}{version}, 'is told the current one';
    refused $d->replace($f->{id}, 'three', 'If-Match' => qq(W/"$saved->{json}{version}")), 412, 'VERSION_CONFLICT', 'a weak tag';
    is $d->get("/api/files/$f->{id}/download")->{text}, 'two', 'nothing else was stored';
    my $renewed = $d->post("/api/files/$f->{id}/lock", { ttlSeconds => 600 }, 'X-Lock-Id' => $lock->{json}{lockId});
    is $renewed->{json}{lockId}, $lock->{json}{lockId}, 'a renewed lock is the same';
    cmp_ok $renewed->{json}{expiresAt}, 'gt', $lock->{json}{expiresAt}, 'and lasts longer';
    refused $d->post("/api/files/$f->{id}/lock", { ttlSeconds => $_ }), 422, undef, "ttlSeconds $_" for 29, 601, '60', 30.5;
    refused $again->call(DELETE => "/api/files/$f->{id}/lock", undef, 'X-Lock-Id' => $lock->{json}{lockId}), 409, 'LOCK_LOST', "letting go another's lock";
    is $d->call(DELETE => "/api/files/$f->{id}/lock", undef, 'X-Lock-Id' => $lock->{json}{lockId})->{status}, 204, 'the holder lets it go';
    refused $d->call(DELETE => "/api/files/$f->{id}/lock", undef, 'X-Lock-Id' => $lock->{json}{lockId}), 409, 'LOCK_LOST', 'once more';
    $lock = $d->post("/api/files/$f->{id}/lock");
    $stack->sql("UPDATE locks SET expires_at = now() - interval '1 second'");
    is $again->post("/api/files/$f->{id}/lock")->{status}, 200, 'a lapsed lock is free';
    refused $other->post("/api/files/$f->{id}/lock"), 404, 'NOT_FOUND', "another account's file";
    refused $d->post('/api/files/' . $d->folder('no file') . '/lock'), 400, 'NOT_A_FILE', 'a folder';
};

# X14: nothing here rests on file modes, which do not bind a server that runs as root.
subtest 'permissions are of accounts' => sub {
    my $sub = $d->post('/api/user/sub-users', { email => 'user-1@load.test', password => 'password1', name => 'Reader', permissions => ['files.download'] });
    is $sub->{status}, 201, 'a sub-user who may only read';
    my $u = Drive->sign_in($url, 'user-1@load.test');
    my ($file) = grep { $_->{name} eq 'doc.txt' } $u->list(undef);
    ok $file, "sees its owner's files";
    for (['folder', { name => 'n' }], ['rename', { id => $file->{id}, name => 'n' }], ['move', { ids => [$file->{id}] }], ['star', { ids => [$file->{id}], starred => JSON::PP::true }],
        ['delete', { ids => [$file->{id}] }], ['trash/restore', { ids => [$file->{id}] }], ["$file->{id}/lock", {}]) {
        refused $u->post("/api/files/$_->[0]", $_->[1]), 403, undef, $_->[0];
    }
};

subtest 'a write whose end the server could not see' => sub {
    my ($host, $port) = $url =~ m{//([^:/]+):(\d+)};
    my $events = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or die $@;
    print {$events} "GET /api/files/events HTTP/1.1\r\nHost: $host\r\nAuthorization: Bearer $d->{token}\r\n\r\n";
    my $text = '';
    my $until = sub {
        my ($pattern) = @_;
        my $sel = IO::Select->new($events);
        while ($text !~ $pattern) {
            return 0 if !$sel->can_read(300) || !sysread $events, $text, 4096, length $text;
        }
        return 1;
    };
    ok $until->(qr/"connected"/), 'a stream is open';

    # The write waits for the account's row; its connection is then cut from Postgres' side.
    my $pid = IPC::Open3::open3(my $in, my $out, undef, 'psql', '-XAtq', $stack->env->{DATABASE_URL});
    $in->autoflush(1);
    print {$in} "BEGIN; SELECT id FROM users WHERE id = '$account' FOR NO KEY UPDATE;\n";
    is scalar readline $out, "$account\n", 'the account is busy';
    my $writer = fork // die $!;
    if (!$writer) {
        my $r = Drive->sign_in($url, 'owner@load.test')->post('/api/files/folder', { name => 'perhaps' });
        POSIX::_exit($r->{status} == 503 ? 0 : 1);
    }
    my $waiting = "FROM pg_stat_activity WHERE query LIKE '%drive_folder_create(%' AND wait_event_type = 'Lock'";
    ok wait_until(sub { $stack->sql("SELECT count(*) $waiting") }), 'a write waits for it';
    $stack->sql("SELECT pg_terminate_backend(pid) $waiting");
    waitpid $writer, 0;
    is $? >> 8, 0, 'the client is told 503';
    ok $until->(qr/"type":"resync"/), 'and the streams to list again';
    print {$in} "ROLLBACK;\n\\q\n";
    waitpid $pid, 0;
    is $d->post('/api/files/folder', { name => 'perhaps' })->{status}, 201, 'the account goes on';
};

my $check = $stack->sim(['check', '--only', 'aggregates,storage,structure,database,server']);
is $check->{status}, 0, 'totals, storage and structure are exact afterwards' or diag $check->{out};
done_testing;
