# Files as people and hostile clients name, date, nest and race them: shared cases U06 to U13, C04, C07, C08, C14 and
# S07 to S10 against the reference server on real parts. Each ends with the books being exact.
use strict;
use warnings;
use utf8;
use Encode qw(encode_utf8 decode_utf8);
use IO::Socket::INET;
use Test::More;
use lib 'tests/lib';
use Sim;
use Drive;

my $stack = Sim::Stack->new;
my $url = $stack->env->{TMA_URL};
my $d = Drive->administrator($stack);
my ($account) = $stack->sql('SELECT first_user_id FROM app_settings');

sub exact {
    my ($what) = @_;
    my $c = $stack->sim([qw(check --only), 'aggregates,storage,structure,objects']);
    return is $c->{status}, 0, "$what: totals, storage, tree and objects are exact" || diag $c->{out};
}
sub used { return $d->get('/api/user/storage')->{json}{used} }
sub limit { my ($bytes) = @_; return $d->call(PUT => '/api/user/storage-limit', { targetUserId => $account, storageLimit => $bytes })->{status} }

# The bytes of a request as they stand, for what no client library sends; returns status and body.
sub raw {
    my ($head, @pieces) = @_;
    my ($host, $port) = $url =~ m{//([^:/]+):(\d+)};
    my $s = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) or die $!;
    print {$s} join "\r\n", "$head->[0] HTTP/1.1", "Host: $host", "Authorization: Bearer $d->{token}", 'X-Requested-With: XMLHttpRequest',
        'Connection: close', @$head[1 .. $#$head], '', '';
    print {$s} $_ for @pieces;
    local $/;
    my $answer = <$s>;
    return $answer =~ m{^HTTP/1\.1 (\d+).*?\r\n\r\n(.*)}s;
}
my $B = 'the-boundary';
# name: bytes, put between the quotes as they are.
sub form {
    my ($folder, $name, $content, %fields) = @_;
    my %all = (parentId => $folder, %fields);
    return join '', (map { qq{--$B\r\nContent-Disposition: form-data; name="$_"\r\n\r\n$all{$_}\r\n} } sort keys %all),
        qq{--$B\r\nContent-Disposition: form-data; name="file"; filename="$name"\r\n\r\n$content\r\n--$B--\r\n};
}
sub upload_raw {
    my ($folder, $name, $content, %fields) = @_;
    my $body = form($folder, $name, $content, %fields);
    return raw(["POST /api/files/upload", "Content-Type: multipart/form-data; boundary=$B", 'Content-Length: ' . length $body], $body);
}
sub names { my ($folder) = @_; return map { $_->{name} } $d->list($folder) }

subtest 'names with quotes and percent signs' => sub {    # U06: browsers encode ", CR and LF alone; %22 is therefore a quote
    my $f = $d->folder('percent');
    for my $name ('100%25.pdf', 'test(1).txt', '🌍.txt', 'קובץ.txt', "it's.txt", 'a;b=c.txt', 'a+b.txt', '100%.txt') {
        my ($status) = upload_raw($f, encode_utf8($name), 'x');
        is $status, 200, encode_utf8("$name is stored");
        ok scalar(grep { $_ eq $name } names($f)), encode_utf8("$name is listed as it was sent");
    }
    my $before = () = names($f);
    for my $name ('%22foo.jpg', '100%0Applejuice.pdf', 'a\\b.txt', 'a\\\\.txt') {    # a quote, a line end, a backslash: no name holds them
        my ($status, $body) = upload_raw($f, $name, 'x');
        is $status, 400, "$name is refused";
        like $body, qr/"message":"Invalid file name/, "$name: with the rule";
    }
    is scalar(() = names($f)), $before, 'what is refused is not listed';
};

subtest 'chunked bodies' => sub {    # U07
    my $f = $d->folder('chunked');
    for my $size (0, 1, 4 << 20) {
        my $body = form($f, "of $size.bin", 'c' x $size);
        my @chunks = map { sprintf("%x\r\n", length) . "$_\r\n" } unpack '(a65536)*', $body;
        my ($status) = raw(["POST /api/files/upload", "Content-Type: multipart/form-data; boundary=$B", 'Transfer-Encoding: chunked'], @chunks, "0\r\n\r\n");
        is $status, 200, "$size bytes: taken";
        my ($file) = grep { $_->{name} eq "of $size.bin" } $d->list($f);
        is $file->{size}, $size, "$size bytes: all there";
        is length $d->get("/api/files/$file->{id}/download")->{text}, $size, "$size bytes: come back";
        my $again = join '', qq{--$B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n}, 'd' x 70_000, "\r\n--$B--\r\n";
        @chunks = map { sprintf("%x\r\n", length) . "$_\r\n" } unpack '(a1000)*', $again;
        ($status) = raw(["POST /api/files/$file->{id}/replace", "Content-Type: multipart/form-data; boundary=$B", 'Transfer-Encoding: chunked'], @chunks, "0\r\n\r\n");
        is $status, 200, "over a file of $size bytes: taken";
        is $d->get("/api/files/$file->{id}/info")->{json}{size}, 70_000, "over a file of $size bytes: all there";
    }
};

subtest 'names close to 255 bytes' => sub {    # U11
    my $f = $d->folder('long');
    for (['a' x 255, 200], ['é' x 127 . 'x', 200], ['é' x 128, 400], ['🌍' x 63 . 'abc', 200], ['🌍' x 64, 400], ['a' x 256, 400]) {
        my ($name, $want) = @$_;
        my $bytes = encode_utf8($name);
        my ($status, $body) = upload_raw($f, $bytes, 'x');
        is $status, $want, length($bytes) . " bytes: $want";
        like $body, qr/255 bytes/, length($bytes) . ' bytes: the limit is named' if $want == 400;
    }
    my ($long) = grep { length $_->{name} == 255 } $d->list($f);
    is $d->post('/api/files/delete', { ids => [$long->{id}] })->{status}, 200, 'a name of 255 bytes goes to the trash';
    is $d->post('/api/files/trash/restore', { ids => [$long->{id}] })->{status}, 200, 'and comes back';
    is +(upload_raw($f, 'a' x 255, 'x'))[0], 200, 'taken, it is numbered';
    ok scalar(grep { length == 255 && / \(1\)$/ } names($f)), 'within 255 bytes';
};

subtest 'trailing dots and spaces, reserved words' => sub {    # U12: one policy for folders, files and renames; folder names are trimmed
    my $f = $d->folder('reserved');
    for my $name ('a.', 'CON', 'aux.txt', 'nul', 'COM1.log') {
        my ($status, $body) = upload_raw($f, $name, 'x');
        is $status, 400, "file $name: refused";
        like $body, qr/"message":"[^"]{10,}/, "file $name: with a reason";
        my $r = $d->post('/api/files/folder', { name => $name, parentId => $f });
        is $r->{status}, 422, "folder $name: refused";
        like $r->{json}{message}, qr/\w{4}/, "folder $name: with a reason";
    }
    is +(upload_raw($f, 'a ', 'x'))[0], 400, 'a file with a last space: refused';
    is +(upload_raw($f, ' a', 'x'))[0], 400, 'a file with a first space: refused';
    is $d->post('/api/files/folder', { name => ' b ', parentId => $f })->{json}{name}, 'b', 'a folder is trimmed, as the API says';
    is_deeply [names($f)], ['b'], 'nothing else is there';
};

subtest 'composed and decomposed names' => sub {    # U13: names are compared in NFC, and a twin is a conflict
    my $f = $d->folder('twins');
    my ($composed, $decomposed) = ("Am\x{e9}lie.txt", "Ame\x{301}lie.txt");
    is +(upload_raw($f, encode_utf8($composed), 'one'))[0], 200, 'composed: stored';
    is +(upload_raw($f, encode_utf8($decomposed), 'two'))[0], 409, 'decomposed: a conflict';
    is_deeply [names($f)], [$composed], 'one file is listed, byte for byte';
    my ($file) = $d->list($f);
    is $d->get("/api/files/$file->{id}/download")->{text}, 'one', 'and opens as it was stored';
};

subtest 'folders into themselves' => sub {    # C04
    my $p = $d->folder('P');
    my $c = $d->folder('C', $p);
    my $p2 = $d->folder('P2');
    $d->upload($c, 'inner.txt', 'x' x 10);
    for my $how (qw(move copy)) {
        for my $to ($p, $c) {
            my $r = $d->post("/api/files/$how", { ids => [$p], parentId => $to });
            is $r->{status}, 400, "$how into itself or below: 400" or diag $r->{text};
            is $r->{json}{error}, 'INTO_ITSELF', "$how: says so";
        }
    }
    is_deeply [names($p)], ['C'], 'nothing moved';
    is $d->post('/api/files/move', { ids => [$p], parentId => $p2 })->{status}, 200, 'into a folder whose name begins like it: moved';
    is_deeply [names($p2)], ['P'], 'and is there';
    is $d->post('/api/files/move', { ids => [$p2], parentId => $c })->{status}, 400, 'the folder above into the one below: 400';
    exact('folders into themselves');
};

subtest 'copy and restore within the quota' => sub {    # C07: trashed files still count, so a restore adds nothing
    my $f = $d->folder('quota');
    my $mib = 1 << 20;
    my $file = $d->upload($f, 'half.bin', 'q' x ($mib / 2))->{json}{id};
    is limit(used() + $mib), 200, 'room for two more';
    my @copies;
    for my $n (1 .. 3) {
        my $r = $d->post('/api/files/copy', { ids => [$file], parentId => $f });
        is $r->{status}, $n < 3 ? 202 : 413, "copy $n: " . ($n < 3 ? 'queued' : 'over the quota');
        next if $n == 3;
        my $job = $d->job($r->{json}{jobId});
        is $job->{status}, 200, "copy $n: done";
        push @copies, $job->{json}{result}{ids}[0];
        is $d->post('/api/files/delete', { ids => [$copies[-1]] })->{status}, 200, "copy $n: in the trash, and still counted";
    }
    is $d->post('/api/files/trash/restore', { ids => \@copies })->{status}, 200, 'both come back: what they use was never let go';
    my $in_use = used();
    limit($in_use - 1);
    $d->post('/api/files/delete', { ids => [$copies[0]] });
    is $d->post('/api/files/trash/restore', { ids => [$copies[0]] })->{status}, 413, 'above a quota that was lowered nothing comes back';
    is $d->post('/api/files/copy', { ids => [$file], parentId => $f })->{status}, 413, 'and nothing is copied: one status for one reason';
    is +($d->upload($f, 'more.bin', 'x'))->{status}, 413, 'nor uploaded';
    is used(), $in_use, 'a refusal moves nothing';
    is length $d->get("/api/files/$file/download")->{text}, $mib / 2, 'the source is intact';
    limit(undef);
    exact('copy and restore within the quota');
};

# Runs the calls at once, each by a process with a connection of its own; returns the statuses.
sub at_once {
    my (@calls) = @_;
    my @readers;
    pipe(my $gate, my $open) or die $!;
    for my $call (@calls) {
        pipe(my $r, my $w) or die $!;
        my $pid = fork // die $!;
        if (!$pid) {
            close $open;
            my $one = bless { %$d, http => HTTP::Tiny->new(timeout => 300) }, 'Drive';
            sysread $gate, my $go, 1;    # returns when all have been started
            syswrite $w, $call->($one);
            POSIX::_exit(0);
        }
        close $w;
        push @readers, [$pid, $r];
    }
    close $gate;
    close $open;
    return map { my ($pid, $r) = @$_; local $/; my $s = <$r>; waitpid $pid, 0; $s } @readers;
}

subtest 'the same file deleted by two at once' => sub {    # C08
    my $f = $d->folder('races');
    my $wrong = 0;
    my $before = used();
    for my $n (1 .. 30) {
        my $id = $d->upload($f, "victim $n.txt", 'v' x 1000)->{json}{id};
        my @trash = sort(at_once((sub { $_[0]->post('/api/files/delete', { ids => [$id] })->{status} }) x 2));
        my @purge = at_once((sub { my $r = $_[0]->post('/api/files/trash/delete', { ids => [$id] }); $r->{status} == 202 ? $_[0]->job($r->{json}{jobId})->{status} : $r->{status} }) x 2);
        $wrong++ unless "@trash" eq '200 404';
        $wrong++ unless grep { $_ == 200 } @purge;
    }
    is $wrong, 0, 'one success and one 404 each';
    is used(), $before, 'usage fell once for each file';
    cmp_ok $stack->sql("SELECT min(storage_used) FROM users"), '>=', 0, 'never below zero';
    exact('two delete at once');
};

subtest 'twenty create one name' => sub {    # S10
    my $f = $d->folder('one name');
    my @folders = at_once((sub { $_[0]->post('/api/files/folder', { name => 'New folder', parentId => $f })->{status} }) x 20);
    is_deeply [sort @folders], [201, (409) x 19], 'folders: one 201 and nineteen 409';
    my @files = at_once((sub { $_[0]->upload($f, 'New file.txt', 'x')->{status} }) x 20);
    is_deeply [sort @files], [(200) x 20], 'files: all stored';
    my %seen;
    $seen{$_}++ for names($f);
    is scalar(grep { $_ > 1 } values %seen), 0, 'under twenty different names';
    is scalar(keys %seen), 21, 'and all of them are listed';
    is $d->get("/api/files/$f/info")->{json}{folderInfo}{fileCount}, 20, 'the folder counts as many';
    exact('twenty create one name');
};

subtest 'odd names in one listing' => sub {    # C14: what XML could not carry is refused, the rest is listed as it is
    my $f = $d->folder('odd');
    my @good = ('This & that', 't #;!3.txt', '100%.txt', 'a+b', 'example[a].txt', q{it's "quoted"} =~ s/"/'/gr, "line\x{2028}separator.txt");
    is +(upload_raw($f, encode_utf8($_), 'x'))[0], 200, encode_utf8("$_ is stored") for @good;
    is +(upload_raw($f, encode_utf8($_), 'x'))[0], 400, 'a name that XML cannot carry is refused' for "a\x{fffe}b", "a\x{1}b", "t #:?3.txt";
    is +(upload_raw($f, encode_utf8("next\x{85}line.txt"), 'x'))[0], 400, 'nor a control of C1';
    is_deeply [sort(names($f))], [sort @good], 'all others are listed, each once and byte for byte';
    for my $file ($d->list($f)) {
        is $d->get("/api/files/$file->{id}/download")->{text}, 'x', encode_utf8("$file->{name} opens");
    }
};

subtest 'modification times' => sub {    # S07: milliseconds since 1970 or ISO 8601, of the years 1 to 9999
    my $f = $d->folder('times');
    my %want = (0 => '1970-01-01T00:00:00.000Z', 1 => '1970-01-01T00:00:00.001Z', -1 => '1969-12-31T23:59:59.999Z', -11644473600000 => '1601-01-01T00:00:00.000Z',
        2147483648000 => '2038-01-19T03:14:08.000Z', 4294967295000 => '2106-02-07T06:28:15.000Z', '2026-11-30T09:01:32.123Z' => '2026-11-30T09:01:32.123Z');
    for my $given (sort keys %want) {
        my ($status, $body) = upload_raw($f, "at $given.txt" =~ s/:/-/gr, 'x', lastModifiedTimes => $given);
        is $status, 200, "$given: stored";
        is $stack->sql("SELECT to_char(modified AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM files WHERE name = '" . ("at $given.txt" =~ s/:/-/gr) . "'"), $want{$given}, "$given: unchanged";
    }
    my $before = () = names($f);
    for my $given ('1.5', 'abc', '1453295674000000', '99999999999999999999', '2026-13-01T00:00:00Z', '-99999999999999') {
        my ($status, $body) = upload_raw($f, 'never.txt', 'x', lastModifiedTimes => $given);
        is $status, 400, "$given: refused";
    }
    is scalar(() = names($f)), $before, 'no file was made of a bad time';
    exact('modification times');
};

subtest 'a hot folder' => sub {    # S08
    my $f = $d->folder('hot');
    $stack->sql("INSERT INTO files (id, name, type, size, mime_type, user_id, parent_id, path) SELECT 'hot' || lpad(n::text, 13, '0'), 'entry ' || lpad(n::text, 6, '0'), 'file', 0, 'text/plain',"
        . " '$account', '$f', 'hot/' || n FROM generate_series(1, 50000) n");
    my @all = $d->list($f, 'limit=500');
    is scalar @all, 50_000, 'every entry of 50,000 is listed';
    my %ids = map { $_->{id} => 1 } @all;
    is scalar keys %ids, 50_000, 'each once';
    my $r = $d->get("/api/files?parentId=$f&limit=500");
    is scalar @{ $r->{json} }, 500, 'a page is a page';
    is $d->get("/api/files?parentId=$f&limit=500&cursor=" . ($r->{headers}{'x-next-cursor'} =~ s/.$//r))->{status}, 400, 'a cut cursor is refused, not taken for the start';
    my ($rss) = $d->{http}->get("$url/metrics")->{content} =~ /^process_resident_memory_bytes ([\d.e+]+)/m;
    cmp_ok $rss, '<', 200 << 20, 'the server stays small' if $rss;
    $stack->sql("DELETE FROM files WHERE parent_id = '$f'");
};

subtest 'a very deep tree' => sub {    # S09: 100 levels are allowed, the 101st is refused and says so
    my ($top, $at, $depth, $r) = (undef, undef, 0);
    while ($depth < 120) {
        $r = $d->post('/api/files/folder', { name => 'level-x', parentId => $at });
        last if $r->{status} != 201;
        $at = $r->{json}{id};
        $top //= $at;
        $depth++;
    }
    is $depth, 100, '100 levels';
    is $r->{status}, 400, 'then 400';
    like $r->{json}{message}, qr/100 deep/, 'with the depth';
    is $d->upload($at, 'deepest.txt', 'x' x 100)->{status}, 200, 'a file at the bottom';
    is $d->get("/api/files/$top/info")->{json}{folderInfo}{totalSize}, 100, 'counts at the top';
    my $deeper = $d->folder('deeper');
    is $d->post('/api/files/move', { ids => [$top], parentId => $deeper })->{status}, 400, 'it cannot be moved one deeper';
    is $d->post('/api/files/copy', { ids => [$top], parentId => $deeper })->{status}, 400, 'nor copied';
    $r = $d->post('/api/files/copy', { ids => [$top], parentId => undef });
    is $d->job($r->{json}{jobId})->{status}, 200, 'beside itself it is copied';
    exact('a very deep tree');
    is $d->post('/api/files/delete', { ids => [$top] })->{status}, 200, 'it goes to the trash';
    is $d->job($d->post('/api/files/trash/delete', { ids => [$top] })->{json}{jobId})->{status}, 200, 'and away';
    exact('without the deep tree');
};

# U08, of what was decided: these five sizes stand in rows, as the database, the server and the checks add and show them
# whatever is in the store, so that a file of 4 GiB need not be sent; sizes and ranges of sealed objects at the same lines
# are in unit/test_seal.c, content by position in unit/test_self_content.c, lengths that a client announces in
# unit/test_httpc_upload.c, and one byte more than 2 GiB goes up and down for real in bigfiles.t.
subtest 'sizes around 2 and 4 GiB' => sub {
    my @sizes = (2147483647, 2147483648, 4294967295, 4294967296, 4294967297);
    my $sum = 0;
    $sum += $_ for @sizes;
    my $f = $d->folder('sizes');
    my $before = used();
    my %id = map { $_ => $d->upload($f, "of $_.bin", 'x')->{json}{id} } @sizes;
    $stack->sql("UPDATE files SET size = $_ WHERE id = '$id{$_}'") for @sizes;
    $stack->sql("UPDATE files SET aggregate_size = $sum WHERE id = '$f'; UPDATE users SET storage_used = storage_used - 5 + $sum WHERE id = '$account'");
    my %listed = map { $_->{name} => $_->{size} } $d->list($f);
    is $listed{"of $_.bin"}, $_, "$_: listed" for @sizes;
    is $d->get("/api/files/$id{$_}/info")->{json}{size}, $_, "$_: info" for @sizes;
    is_deeply [map { $_->{size} } $d->list($f, 'sortBy=size&order=desc')], [reverse @sizes], 'in order of size';
    is_deeply [map { $_->{size} } $d->list($f, 'sortBy=size&order=asc&limit=1')], \@sizes, 'page by page';
    is $d->get("/api/files/$f/info")->{json}{folderInfo}{totalSize}, $sum, 'totals of the folder';
    is used(), $before + $sum, 'storage use';
    for my $size (@sizes) {
        my $head = $d->call(HEAD => "/api/files/$id{$size}/download");
        is $head->{headers}{'content-length'}, $size, "$size: announced";
        my $beyond = $d->get("/api/files/$id{$size}/download", Range => "bytes=$size-");
        is "$beyond->{status} $beyond->{headers}{'content-range'}", "416 bytes */$size", "$size: nothing beyond its end";
    }
    is limit($before + $sum + 4294967296), 200, 'room for 4 GiB';
    is $d->post('/api/files/upload/check', { fileSize => 4294967296 })->{status}, 200, 'as much is let in';
    my $r = $d->post('/api/files/upload/check', { fileSize => 4294967297 });
    is $r->{status}, 413, 'a byte more is not';
    like $r->{text}, qr/"required": ?4294967297, ?"available": ?4294967296\b/, 'and both sizes are told';
    for my $size (@sizes) {    # the part's head tells the exact size, so that the answer is there before the content
        my $empty = form($f, 'announced.bin', '');
        my $length = $size + length $empty;
        limit($before + $sum + $size - 1);
        my ($status, $body) = raw(["POST /api/files/upload", "Content-Type: multipart/form-data; boundary=$B", "Content-Length: $length"], substr $empty, 0, -length "\r\n--$B--\r\n");
        is $status, 413, "$size: an upload is refused by its size";
        like $body, qr/"required": ?$size, ?"available": ?@{[$size - 1]}\b/, "$size: which is exact";
    }
    my $copy = $d->post('/api/files/copy', { ids => [$id{4294967297}], parentId => $f });
    is $copy->{status}, 413, 'nor copied';
    limit(undef);
    my $to = $d->folder('sizes, moved');
    my $now = sub { join ' ', map { $d->get("/api/files/$_/info")->{json}{folderInfo}{totalSize} } $f, $to };
    is $d->post('/api/files/move', { ids => [$id{4294967297}], parentId => $to })->{status}, 200, 'moved';
    is $now->(), $sum - 4294967297 . ' 4294967297', 'totals follow';
    is $d->post('/api/files/delete', { ids => [$to] })->{status}, 200, 'trashed';
    is $d->post('/api/files/trash/restore', { ids => [$to] })->{status}, 200, 'restored';
    is $now->(), $sum - 4294967297 . ' 4294967297', 'totals stay';
    my $c = $stack->sim([qw(check --json check.json --only), 'aggregates,storage,structure,objects']);
    my %check = map { $_->{name} => $_ } @{ json_file("$stack->{dir}/check.json")->{checks} };
    is $check{$_}{status}, 'ok', "$_: exact" or diag $c->{out} for qw(aggregates storage structure);
    is scalar(grep { /bytes, \d+ expected for a file of (\d+)/ && $id{$1} } @{ $check{objects}{detail} }), 5, 'the objects check misses the content that was never sent' or diag $c->{out};
    for ($f, $to) {
        $d->post('/api/files/delete', { ids => [$_] });
        is $d->job($d->post('/api/files/trash/delete', { ids => [$_] })->{json}{jobId})->{status}, 200, 'deleted for good';
    }
    is used(), $before, 'nothing of it is left in the storage use';
    exact('sizes around 2 and 4 GiB');
};

subtest 'hostile lengths' => sub {    # U08: refused from the head, before a byte is stored; the connection is closed
    my $f = $d->folder('lengths');
    my $objects = sub { my ($o) = $stack->sim([qw(check --only objects)])->{out} =~ /(\d+) objects/; return $o };
    my $before = $objects->();
    my $body = form($f, 'never.bin', 'x' x 100);
    for my $length ('-1', '+5', '5,5', '5 5', '0x10', '', '1e3', '18446744073709551616', '18446744073709551615', '9223372036854775808', '99999999999999999999999999') {
        my ($status) = raw(['POST /api/files/upload', "Content-Type: multipart/form-data; boundary=$B", "Content-Length: $length"], $body);
        is $status, 400, "Content-Length: $length: refused, and closed";
    }
    my ($status, $text) = raw(['POST /api/files/upload', "Content-Type: multipart/form-data; boundary=$B", 'Content-Length: 9223372036854775807'], $body);
    is $status, 413, 'the largest number there is: too large a file';
    is_deeply [names($f)], [], 'nothing is listed';
    is $objects->(), $before, 'nothing is stored';
};

subtest 'two uploads that only one has room for' => sub {    # uploads reserve nothing: the commit decides, once
    my $f = $d->folder('race');
    for my $round (1 .. 5) {
        is limit(used() + 1_500_000), 200, 'room for one and a half';
        my $before = used();
        my @status = at_once(map { my $n = $_; sub { $_[0]->upload($f, "$round-$n.bin", 'r' x 1_000_000)->{status} } } 1, 2);
        is_deeply [sort @status], [200, 413], 'one is stored, the other refused';
        is used(), $before + 1_000_000, 'and one is counted';
        limit(undef);
    }
    exact('two uploads that only one has room for');
};

done_testing;
