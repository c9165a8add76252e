# File bodies on real parts: what goes in comes out byte for byte, in whole and in part; what is refused or broken off
# leaves neither row nor object; jobs end whole whatever dies in between.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use Test::More;
use lib 'tests/lib';
use DriveClient;
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 1 0.01 --accounts 2)]);
is $r->{status}, 0, 'seed' or BAIL_OUT $r->{out} . $r->{err};
my $drive = DriveClient->new(url => $stack->env->{TMA_URL}, email => 'owner@load.test');
my $other = DriveClient->new(url => $stack->env->{TMA_URL}, email => 'owner-2@load.test');
my $account = $stack->sql(q{SELECT id FROM users WHERE email = 'owner@load.test'});

# Bytes that no compression and no shift leaves alike.
my $block = join '', map { pack 'N*', map { ($_ * 2654435761) & 0xffffffff } $_ * 4096 .. $_ * 4096 + 4095 } 0 .. 15;
sub bytes { my ($n, $salt) = @_; my $b = pack('N', $salt // 0) . $block; return substr $b x (1 + $n / length $b), 0, $n }

sub objects { return $stack->sql("SELECT count(*) FROM files WHERE path IS NOT NULL AND user_id = '$account'") }
sub object_files { return grep { /_object$/ && -s } split /\n/, `find '$stack->{dir}/.sim/store' -type f -path '*$account*'` }
sub stored { return scalar(my @f = object_files()) }
# Rows and objects of the account are one to one and storage use is their sum; called after whatever fails.
sub whole {
    my ($what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($rows, $used, $reserved) = split /\|/, $stack->sql(
        "SELECT (SELECT coalesce(sum(size), 0) FROM files WHERE user_id = u.id), storage_used, storage_reserved FROM users u WHERE id = '$account'");
    ok wait_until(sub { stored() == objects() }), "$what: an object a row, and no more" or diag stored() . ' objects, ' . objects() . ' rows';
    return is "$used|$reserved", "$rows|0", "$what: storage use is exact, nothing reserved";
}
sub row { my ($name) = @_; return $stack->sql("SELECT count(*) FROM files WHERE user_id = '$account' AND name = '$name'") }

subtest 'every size by every way in comes back' => sub {
    my %ways = (
        'size known'    => {},
        'chunked'       => { chunked => 1 },
        'file first'    => { behind => ['parentId', ''] },
        'no last CRLF'  => { last => '' },
        'with Expect'   => { expect => 1 },
    );
    for my $size (0, 1, 65535, 65536, 65537, 262143, 262144, 262145, 1048579) {
        for my $way (sort keys %ways) {
            my $content = bytes($size, $size);
            my $up = $drive->upload(name => "$size $way", content => $content, %{ $ways{$way} });
            is $up->{status}, 200, "$size bytes, $way" or do { diag $up->{body}; next };
            is $up->{json}{size}, $size, '  its size';
            my $down = $drive->get("/api/files/$up->{json}{id}/download");
            ok $down->{status} == 200 && $down->{body} eq $content, '  and its bytes';
            is $down->{headers}{'content-length'}, $size, '  Content-Length';
        }
    }
    whole('after the uploads');
};

subtest 'a large file, and the memory it takes' => sub {
    my $size = 100 * 1048576;
    my $content = bytes($size, 7);
    my $up = $drive->upload(name => 'large.bin', content => $content);
    is $up->{status}, 200, '100 MiB' or diag $up->{body};
    my $down = $drive->get("/api/files/$up->{json}{id}/download");
    is sha256_hex($down->{body}), sha256_hex($content), 'comes back';
    $up = $drive->upload(name => 'large chunked.bin', content => $content, chunked => 1);
    is $up->{status}, 200, '100 MiB in chunks' or diag $up->{body};
    is $up->{json}{size}, $size, 'all of it';
    my ($pid) = $stack->stack('status')->{out} =~ /^server\s+up\s+\d+\s+(\d+)/m;
    my ($peak) = slurp("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
    cmp_ok $peak, '<', 64 * 1024, "the server never took more than 64 MiB ($peak kB)" if !sanitized();
};

my $size = 3 * 65536 + 100;
my $content = bytes($size, 3);
my $file = $drive->upload(name => 'ranges.bin', content => $content, type => 'application/x-test')->{json};

subtest 'ranges' => sub {
    my $path = "/api/files/$file->{id}/download";
    my $whole = $drive->get($path);
    is $whole->{headers}{'accept-ranges'}, 'bytes', 'Accept-Ranges';
    is $whole->{headers}{etag}, '"1"', 'the ETag is the version';
    is $whole->{headers}{'content-type'}, 'application/x-test', 'the type is the sent one';
    like $whole->{headers}{'content-disposition'}, qr/^attachment; filename="ranges\.bin"; filename\*=UTF-8''ranges\.bin$/, 'its name';
    for my $at ([0, 0], [0, 65535], [65535, 65536], [65536, 65536], [65536, 131071], [131072, $size - 1], [$size - 1, $size - 1], [1, $size - 2]) {
        my ($a, $b) = @$at;
        my $part = $drive->get($path, "Range: bytes=$a-$b");
        ok $part->{status} == 206 && $part->{body} eq substr($content, $a, $b - $a + 1), "bytes $a-$b";
        is $part->{headers}{'content-range'}, "bytes $a-$b/$size", '  Content-Range';
    }
    is $drive->get($path, 'Range: bytes=-10')->{body}, substr($content, -10), 'the last ten';
    is $drive->get($path, 'Range: bytes=196700-')->{body}, substr($content, 196700), 'from one on';
    my $beyond = $drive->get($path, "Range: bytes=$size-");
    is $beyond->{status}, 416, 'beyond the end: 416';
    is $beyond->{headers}{'content-range'}, "bytes */$size", '  with the size';
    is $drive->get($path, 'Range: bytes=0-1,5-6')->{status}, 200, 'several ranges: the whole file';
    is $drive->get($path, 'Range: bytes=0-9', 'If-Range: "1"')->{status}, 206, 'If-Range of this version';
    is $drive->get($path, 'Range: bytes=0-9', 'If-Range: "0"')->{status}, 200, 'of another one: the whole file';
    is $drive->get($path, 'Range: bytes=0-9', 'If-Range: W/"1"')->{status}, 200, 'a weak one: the whole file';
    is $drive->get($path, 'If-None-Match: W/"1"')->{status}, 304, 'If-None-Match: 304';
    is $drive->get($path, 'If-None-Match: "0"')->{status}, 200, 'of another version: 200';
    my $head = $drive->request('HEAD', $path);
    is "$head->{status} $head->{headers}{'content-length'}", "200 $size", 'HEAD';
    is $other->get($path)->{status}, 404, 'of another account: 404';
};

subtest 'names' => sub {
    my %sent = (
        'test(1).txt' => 'test(1).txt', '100%0Applejuice.pdf' => undef, '🌍.txt' => '🌍.txt', 'שלום.txt' => 'שלום.txt', "a'b;c=d.txt" => "a'b;c=d.txt",
        '100%.txt' => '100%.txt', 'a+b & c.txt' => 'a+b & c.txt', '../../x.txt' => 'x.txt', '%22.txt' => undef, 'a\\b.txt' => undef, 'CON' => undef,
        'x' x 255 => 'x' x 255, 'x' x 256 => undef, 'é' x 127 . 'x' => 'é' x 127 . 'x', 'é' x 128 => undef, '' => undef, 'a.' => undef,
    );
    for my $name (sort keys %sent) {
        my $up = $drive->upload(name => $name, content => 'x');
        if (defined $sent{$name}) {
            my $got = $up->{json}{name} // '';
            utf8::encode($got);
            is $got, $sent{$name}, "'$name' is kept" or diag $up->{body};
        } else { is $up->{status}, 400, "'$name' is refused" or diag $up->{body} }
    }
    is $drive->upload(name => 'test(1).txt', content => 'y')->{json}{name}, 'test(1) (1).txt', 'a taken name is numbered';
    whole('after the names');
};

subtest 'modification times' => sub {
    my %times = (
        1 => '1970-01-01T00:00:00.001Z', 0 => '1970-01-01T00:00:00.000Z', -1 => '1969-12-31T23:59:59.999Z', 2147483648 => '1970-01-25T20:31:23.648Z',
        1453295674000 => '2016-01-20T13:14:34.000Z', -11644473600000 => '1601-01-01T00:00:00.000Z', '2016-01-20T13:14:34.5+01:00' => '2016-01-20T12:14:34.500Z',
        '1.5' => undef, abc => undef, '9999999999999999999' => undef,
    );
    for my $t (sort keys %times) {
        (my $name = "time $t.txt") =~ tr/:/_/;
        my $up = $drive->upload(name => $name, content => 'x', fields => [lastModifiedTimes => $t]);
        if ($times{$t}) { is $up->{json}{modified}, $times{$t}, "$t is kept" or diag $up->{body} }
        else { is $up->{status}, 400, "$t is refused" or diag $up->{body}; is row($name), 0, '  and nothing made' }
    }
};

sub left { return $drive->get('/metrics')->{body} =~ /^drive_answers_total\{status="499"\} (\d+)/m ? $1 : 0 }

subtest 'a client that leaves midway leaves nothing' => sub {
    my $content = bytes(2 << 20, 9);
    for my $way ('known', 'chunked') {
        my ($type, $head) = DriveClient::framing(name => "left $way");
        my $sock = $drive->connect;
        my $length = $way eq 'known' ? 'Content-Length: 4000000' : 'Transfer-Encoding: chunked';
        my $part = $head . $content;
        DriveClient::put($sock, $drive->head('POST', '/api/files/upload', $type, $length) . ($way eq 'known' ? $part : sprintf("%x\r\n", length $part) . $part));
        my $before = left();
        close $sock;
        ok wait_until(sub { left() == $before + 1 }), "$way: the server notices";
        is row("left $way"), 0, '  no row';
    }
    my $bulk = $drive->connect;
    my ($type, $head, $behind) = DriveClient::framing(name => 'left in bulk', part => 'files');
    DriveClient::put($bulk, $drive->head('POST', '/api/files/upload/bulk', $type, 'Content-Length: 4000000') . $head . $content . "\r\n$head" . 'abc');
    my $before = left();
    close $bulk;
    ok wait_until(sub { left() == $before + 1 }), 'bulk: the server notices';
    is row('left in bulk'), 0, '  no row';
    my $cut = $drive->request('POST', '/api/files/upload', [(DriveClient::framing(name => 'cut'))[0]], (DriveClient::framing(name => 'cut'))[1] . 'abc');
    is $cut->{status}, 400, 'a body that ends before its boundary: 400';
    is row('cut'), 0, '  no row';
    whole('after the departures');
};

subtest 'too much: 413 with the figures, whoever is told how' => sub {
    my $used = $stack->sql("SELECT storage_used FROM users WHERE id = '$account'");
    my $limit = $used + 100_000;
    $stack->sql("UPDATE users SET storage_limit = $limit WHERE id = '$account'");
    my $content = bytes(8 << 20, 1);
    my $check = sub {
        my ($r, $what, $required) = @_;
        is $r->{status}, 413, "$what: 413" or diag explain $r;
        is $r->{json}{error}, 'STORAGE_LIMIT_EXCEEDED', '  why';
        is $r->{json}{available}, 100_000, '  what there is';
        cmp_ok $r->{json}{required}, '>', 100_000, '  what it takes';
        is $r->{json}{required}, $required, '  to the byte' if $required;
        return ok !$r->{cut}, '  and the answer is whole';
    };
    my $r = $drive->upload(name => 'over', content => $content, expect => 1);
    $check->($r, 'with Expect');
    ok !$r->{continued}, '  without a 100 before';
    $check->($drive->upload(name => 'over', content => $content), "a client that only sends ($_)", 8 << 20) for 1 .. 10;
    my $silent = $drive->connect;
    DriveClient::put($silent, $drive->head('POST', '/api/files/upload', (DriveClient::framing(name => 'over'))[0], 'Content-Length: 8388608'));
    $check->(DriveClient::answer($silent), 'a client that sends its head and waits');
    $check->($drive->upload(name => 'over', content => $content, chunked => 1), 'in chunks');
    $check->($drive->upload(name => 'over', content => bytes(100_001)), 'by one byte', 100_001);
    $check->($drive->json('POST', '/api/files/upload/check', { fileSize => 100_001 }), 'upload/check', 100_001);
    $check->($drive->bulk(files => [{ name => 'over', content => bytes(100_001) }]), 'in bulk');
    $check->($drive->upload(name => 'x', content => bytes($size + 100_001), path => "/api/files/$file->{id}/replace"), 'replacing');
    $check->($drive->json('POST', '/api/files/copy', { ids => [$file->{id}], parentId => undef }), 'copying', $size);
    is $drive->json('POST', '/api/files/upload/check', { fileSize => 100_000 })->{json}{allowed}, 1, 'what fits is allowed';
    my $bulk = $drive->bulk(files => [map { { name => "some $_", content => bytes(40_000, $_), id => "c$_" } } 1 .. 4]);
    is $bulk->{status}, 200, 'a bulk of which some fits';
    is "$bulk->{json}{successful}+$bulk->{json}{failedCount}", '2+2', '  two and two';
    is_deeply [map { $_->{clientId} } @{ $bulk->{json}{failed} }], ['c3', 'c4'], '  and which';
    $stack->sql("UPDATE users SET storage_limit = NULL WHERE id = '$account'");
    is $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'over%'"), 0, 'nothing of it is stored';
    whole('after the refusals');
};

subtest 'replacing' => sub {
    my $f = $drive->upload(name => 'save.txt', content => 'one')->{json};
    my $path = "/api/files/$f->{id}/replace";
    my $stale = $drive->upload(name => 'x', content => 'two', path => $path, headers => ['If-Match: "7"']);
    is "$stale->{status} $stale->{json}{currentVersion}", '412 1', 'a stale version: 412, and which one it is';
    is $drive->upload(name => 'x', content => 'two', path => $path, headers => ['If-Match: W/"1"'])->{status}, 412, 'a weak tag: 412';
    my $done = $drive->upload(name => 'other.txt', content => 'two', path => $path, headers => ['If-Match: "1"']);
    is "$done->{status} $done->{json}{version} $done->{json}{name}", '200 2 save.txt', 'the right one: saved under its old name';
    is $drive->get("/api/files/$f->{id}/download")->{body}, 'two', '  the new content';
    is $drive->upload(name => 'x', content => 'x', path => '/api/files/nosuchfile/replace')->{status}, 404, 'no such file: 404';
    my $held = $drive->json('POST', "/api/files/$f->{id}/lock");
    my $second = DriveClient->new(url => $stack->env->{TMA_URL}, email => 'owner@load.test');
    my $locked = $second->upload(name => 'x', content => 'three', path => $path, expect => 1);
    is "$locked->{status} $locked->{json}{error}", '423 LOCKED', 'locked by another session: 423';
    ok !$locked->{continued}, '  without a 100 before';
    is $drive->upload(name => 'x', content => 'three', path => $path, headers => ["X-Lock-Id: $held->{json}{lockId}"])->{status}, 200, 'the holder saves';
    whole('after the saves');
};

subtest 'two saves from one version, and the slower one started first' => sub {
    my $f = $drive->upload(name => 'race.txt', content => 'base')->{json};
    my $path = "/api/files/$f->{id}/replace";
    my $content = bytes(1 << 20, 5);
    my ($type, $before, $behind) = DriveClient::framing(name => 'x');
    my $sock = $drive->connect;
    my $length = length($before . $content . $behind);
    DriveClient::put($sock, $drive->head('POST', $path, $type, "Content-Length: $length", 'If-Match: "1"') . $before . substr $content, 0, 700_000);
    is $drive->upload(name => 'x', content => 'fast', path => $path, headers => ['If-Match: "1"'])->{status}, 200, 'the fast one';
    DriveClient::put($sock, substr($content, 700_000) . $behind);
    is DriveClient::answer($sock)->{status}, 412, 'the slow one is told';
    is $drive->get("/api/files/$f->{id}/download")->{body}, 'fast', 'and what was saved stays';
    whole('after the race');
};

subtest 'the folder changes while a file comes' => sub {
    my $folder = $drive->json('POST', '/api/files/folder', { name => 'moving' })->{json}{id};
    my $content = bytes(1 << 20, 6);
    for my $case (['renamed', sub { $drive->json('POST', '/api/files/rename', { id => $folder, name => 'moved' }) }, 200],
        ['trashed', sub { $drive->json('POST', '/api/files/delete', { ids => [$folder] }) }, 404]) {
        my ($what, $change, $want) = @$case;
        my ($type, $before, $behind) = DriveClient::framing(name => "while $what.bin", fields => [parentId => $folder]);
        my $sock = $drive->connect;
        DriveClient::put($sock, $drive->head('POST', '/api/files/upload', $type, 'Content-Length: ' . length $before . $content . $behind)
            . $before . substr $content, 0, 600_000);
        is $change->()->{status}, 200, "the folder is $what";
        DriveClient::put($sock, substr($content, 600_000) . $behind);
        is DriveClient::answer($sock)->{status}, $want, "  then the upload ends with $want";
    }
    is $stack->sql(q{SELECT p.name || '/' || f.name || ' ' || f.size FROM files f JOIN files p ON p.id = f.parent_id WHERE f.name LIKE 'while %'}),
        'moved/while renamed.bin 1048576', 'under the new name, whole';
    whole('after the changes');
};

subtest 'the database refuses what the store took' => sub {    # C11
    my $f = $drive->upload(name => 'kept.txt', content => 'old')->{json};
    $stack->sql(q{CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'boom'; END $$});
    $stack->sql(q{CREATE TRIGGER boom BEFORE INSERT OR UPDATE ON files FOR EACH ROW WHEN (NEW.mime_type = 'x/boom') EXECUTE FUNCTION boom()});
    for my $n (10, 1 << 20) {
        is $drive->upload(name => 'boom.txt', content => bytes($n), type => 'x/boom')->{status}, 500, "a new file of $n bytes: 500";
        is $drive->upload(name => 'x', content => bytes($n), type => 'x/boom', path => "/api/files/$f->{id}/replace")->{status}, 500, '  a save: 500';
    }
    $stack->sql('DROP FUNCTION boom CASCADE');
    is row('boom.txt'), 0, 'no row';
    is $drive->get("/api/files/$f->{id}/download")->{body}, 'old', 'the old content is there';
    whole('after the failures');
};

subtest 'bulk uploads' => sub {
    my $folder = $drive->json('POST', '/api/files/folder', { name => 'bulk' })->{json}{id};
    my @files = ((map { { name => "n$_.txt", content => bytes(1000 + $_, $_), id => "c$_", time => 1453295674000 + $_ } } 0 .. 59),
        { name => 'big.bin', content => bytes(700_000, 1), id => 'big', path => 'a/b/big.bin' },
        { name => 'empty', content => '', id => 'empty', path => 'a/b/empty' },
        { name => 'bad?.txt', content => 'x', id => 'bad' }, { name => 'late.txt', content => 'x', id => 'time', time => 'soon' },
        { name => 'up.txt', content => 'x', id => 'up', path => '../up.txt' });
    my $up = $drive->bulk(parent => $folder, files => \@files);
    is $up->{status}, 200, 'answered 200 though some failed' or diag $up->{body};
    is "$up->{json}{total} $up->{json}{successful} $up->{json}{failedCount}", '65 62 3', 'how many';
    is_deeply [sort map { $_->{clientId} } @{ $up->{json}{failed} }], ['bad', 'time', 'up'], 'which failed';
    my %id = map { $_->{clientId} => $_ } @{ $up->{json}{files} };
    my $same = grep { $drive->get("/api/files/$id{ $_->{id} }{id}/download")->{body} eq $_->{content} } grep { $id{ $_->{id} } } @files;
    is $same, 62, 'all contents are right';
    is $id{c7}{modified}, '2016-01-20T13:14:34.007Z', 'times are joined by their place';
    is $stack->sql("SELECT string_agg(name, '/' ORDER BY aggregate_size DESC) FROM files WHERE type = 'folder' AND name IN ('a', 'b')"
        . " AND user_id = '$account'"), 'a/b', 'folders were made';
    is $drive->bulk(parent => $folder, files => [{ name => 'bad?', content => 'x' }])->{status}, 400, 'all fail: 400';
    is $drive->bulk(parent => 'nosuchfolder', files => [{ name => 'x', content => 'x' }])->{status}, 404, 'no such folder: 404';
    whole('after the bulks');
};

subtest 'archives' => sub {
    my $folder = $stack->sql("SELECT id FROM files WHERE name = 'bulk' AND user_id = '$account'");
    my $zip = $drive->get("/api/files/$folder/download");
    is "$zip->{status} $zip->{headers}{'content-type'}", '200 application/zip', 'a folder is a ZIP';
    spew("$stack->{dir}/a.zip", $zip->{body});
    my $list = `unzip -t '$stack->{dir}/a.zip' 2>&1`;
    like $list, qr/No errors detected/, 'that unzip takes' or diag $list;
    like $list, qr{bulk/a/b/big\.bin}, 'with its folders';
    is `unzip -p '$stack->{dir}/a.zip' bulk/a/b/big.bin`, bytes(700_000, 1), 'and the right bytes';
    is $drive->request('HEAD', "/api/files/$folder/download")->{headers}{'content-type'}, 'application/zip', 'HEAD of a folder';
    my $both = $drive->json('POST', '/api/files/download/bulk', { ids => [$file->{id}, $folder, $file->{id}] });
    spew("$stack->{dir}/b.zip", $both->{body});
    like `unzip -l '$stack->{dir}/b.zip'`, qr/ ranges \(1\)\.bin\n.* ranges\.bin\n/s, 'equal names are told apart';
    is $drive->json('POST', '/api/files/download/bulk', { ids => ['nosuchfile'] })->{status}, 404, 'nothing there: 404';
    is $drive->json('POST', '/api/files/download/bulk', { ids => [] })->{status}, 422, 'nothing asked for: 422';
};

subtest 'copying, trash, deleting for good' => sub {
    my $folder = $stack->sql("SELECT id FROM files WHERE name = 'bulk' AND user_id = '$account'");
    my $queued = $drive->json('POST', '/api/files/copy', { ids => [$folder, $file->{id}], parentId => undef });
    is $queued->{status}, 202, 'a copy is queued' or diag $queued->{body};
    is $other->get("/api/files/jobs/$queued->{json}{jobId}")->{status}, 404, 'nobody else sees the job';
    my $job = $drive->job($queued);
    is "$job->{status} $job->{json}{status}", '200 completed', 'and done' or diag $job->{body};
    is $job->{json}{result}{count}, 66, 'all items';
    my ($copy, $single) = @{ $job->{json}{result}{ids} };
    is $drive->get("/api/files/$single/download")->{body}, $content, 'a copy has the same bytes';
    my ($a, $b) = map { $drive->get("/api/files/$_/info")->{json}{folderInfo} } $folder, $copy;
    is_deeply $b, $a, 'and the folder the same totals';
    is $drive->json('POST', '/api/files/copy', { ids => [$folder], parentId => $folder })->{status}, 400, 'into itself: 400';
    is $drive->json('POST', '/api/files/copy', { ids => [$folder, 'nosuch'], parentId => undef })->{status}, 404, 'one is missing: 404';
    is $drive->json('POST', '/api/files/trash/delete', { ids => [$copy] })->{status}, 404, 'what is not in the trash is not deleted';
    is $drive->json('POST', '/api/files/delete', { ids => [$copy, $single] })->{status}, 200, 'to the trash';
    is $drive->get("/api/files/$single/download")->{status}, 404, 'where it cannot be read';
    my $before = stored();
    $job = $drive->job($drive->json('POST', '/api/files/trash/delete', { ids => [$copy] }));
    is "$job->{status} $job->{json}{result}{count}", '200 65', 'deleted for good' or diag $job->{body};
    is stored(), $before - 62, 'the objects are gone when the job says so';
    $job = $drive->job($drive->json('POST', '/api/files/trash/empty'));
    is "$job->{status} $job->{json}{status}", '200 completed', 'the trash is emptied';
    is $stack->sql("SELECT count(*) FROM files WHERE deleted_at IS NOT NULL AND user_id = '$account'"), 0, 'all of it';
    $job = $drive->job($drive->json('POST', '/api/files/trash/empty'));
    is "$job->{status} $job->{json}{result}{count}", '200 0', 'also when it is empty';
    is $drive->get('/api/files/jobs/nosuchjob')->{status}, 404, 'no such job: 404';
    whole('after the jobs');
};

subtest 'what the store lost or altered is never sent as content' => sub {
    my $f = $drive->upload(name => 'victim.bin', content => bytes(500_000, 2))->{json};
    my $object = $stack->object_file($stack->sql("SELECT path FROM files WHERE id = '$f->{id}'"));
    my $good = slurp($object);
    my $try = sub { my ($bytes) = @_; spew($object, $bytes); return $drive->get("/api/files/$f->{id}/download") };
    my $bad = $good;
    substr($bad, 100, 1) ^= "\x01";
    is $try->($bad)->{json}{error}, 'CONTENT_DAMAGED', 'the first segment altered: an error';
    $bad = $good;
    substr($bad, 300_000, 1) ^= "\x01";
    $r = $try->($bad);
    ok $r->{cut} && length $r->{body} <= 262144, 'a later one: cut before it';
    ok $r->{body} eq substr(bytes(500_000, 2), 0, length $r->{body}), '  and what came is right';
    is $try->(substr $good, 0, 32)->{status}, 500, 'cut to the header: an error';
    unlink $object or die $!;
    is $drive->get("/api/files/$f->{id}/download")->{status}, 500, 'missing: an error';
    spew($object, $good);
    is $drive->get("/api/files/$f->{id}/download")->{status}, 200, 'put back: fine';
    like slurp("$stack->{dir}/.sim/logs/server.log"), qr/file \Q$f->{id}\E: segment 0 of the object was altered or cut/, 'the log says which';
};

subtest 'the bucket' => sub {
    my $conf = $drive->get('/api/user/storage-config');
    is $conf->{json}{bucket}, $stack->env->{TMA_LOAD_S3_BUCKET}, 'its name is told';
    unlike $conf->{body}, qr/\Q$stack->{env}{TMA_LOAD_S3_SECRET_KEY}\E|\Q$stack->{env}{TMA_LOAD_S3_ACCESS_KEY}\E/, 'its keys are not';
    unlike $stack->sql('SELECT storage_config FROM app_settings'), qr/\Q$stack->{env}{TMA_LOAD_S3_SECRET_KEY}\E/, 'nor do they stand in the database';
    my %want = (provider => 's3', endpoint => $stack->env->{TMA_LOAD_S3_ENDPOINT}, bucket => $stack->env->{TMA_LOAD_S3_BUCKET}, forcePathStyle => JSON::PP::true,
        accessKeyId => $stack->env->{TMA_LOAD_S3_ACCESS_KEY}, secretAccessKey => $stack->env->{TMA_LOAD_S3_SECRET_KEY}, version => $conf->{json}{version});
    my $put = sub { return $drive->json('PUT', '/api/user/storage-config', { %want, @_ }) };
    is $put->(version => 0)->{status}, 409, 'a stale version: 409';
    is $put->(secretAccessKey => 'wrong')->{status}, 422, 'a wrong key: 422';
    like $put->(bucket => 'nosuchbucket')->{json}{message}, qr/nosuchbucket/, 'no such bucket: said by name';
    is $put->(endpoint => 'http://127.0.0.1:1')->{status}, 422, 'nothing listening: 422';
    is $put->(endpoint => '')->{status}, 422, 'no endpoint: 422';
    is $other->json('PUT', '/api/user/storage-config', \%want)->{status}, 403, 'not the administrator: 403';
    is $drive->json('POST', '/api/user/storage-config/test', \%want)->{json}{ok}, 1, 'a test without saving';
    is $put->()->{json}{version}, $want{version} + 1, 'saved again';
    is $drive->get("/api/files/$file->{id}/download")->{body}, $content, 'and in use';
};

subtest 'the store goes away' => sub {
    is $stack->stack('kill', 'store')->{status}, 0, 'killed';
    my $up = $drive->upload(name => 'nowhere.txt', content => 'x');
    is "$up->{status} $up->{json}{error}", '503 STORAGE_UNAVAILABLE', 'a small upload: 503';
    $up = $drive->upload(name => 'nowhere.bin', content => bytes(2 << 20));
    is $up->{status}, 503, 'a large one: 503';
    is $drive->get("/api/files/$file->{id}/download")->{status}, 503, 'a download: 503';
    my $target = $drive->json('POST', '/api/files/folder', { name => 'target' })->{json}{id};
    my $copy = $drive->json('POST', '/api/files/copy', { ids => [$file->{id}], parentId => undef });
    my $lost = $drive->json('POST', '/api/files/copy', { ids => [$file->{id}], parentId => $target });
    is "$copy->{status} $lost->{status}", '202 202', 'copies are queued';
    is $stack->sql("SELECT storage_reserved FROM users WHERE id = '$account'"), 2 * $size, '  and their storage reserved';
    is $drive->json('POST', '/api/files/delete', { ids => [$target] })->{status}, 200, '  one of them loses its target';
    is $stack->stack('start', 'store')->{status}, 0, 'back';
    ok wait_until(sub { $drive->get("/api/files/$file->{id}/download")->{status} == 200 }), 'and it goes on';
    is $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'nowhere%'"), 0, 'nothing was named';
    my $errors = sub { return $drive->get('/metrics')->{body} =~ /^drive_server_errors_total (\d+)/m ? $1 : -1 };
    my $before = $errors->();
    is $drive->job($copy)->{json}{status}, 'completed', 'the copy that waited is done';
    my $failed = $drive->job($lost);
    is "$failed->{status} $failed->{json}{error}", '500 PARENT_NOT_FOUND', 'the other one failed, and says why';
    is $errors->(), $before, '  which is no error of the server';
    whole('after the outage');
};

my $gone_object; # swept when the store is back, within a quarter of a minute: looked for behind the next outage
subtest 'what cannot be deleted does not hold up the rest' => sub {
    my $gone = $drive->upload(name => 'gone.txt', content => 'x')->{json}{id};
    $gone_object = $stack->object_file($stack->sql("SELECT path FROM files WHERE id = '$gone'"));
    $drive->json('POST', '/api/files/delete', { ids => [$gone] });
    is $stack->stack('kill', 'store')->{status}, 0, 'killed';
    my $purge = $drive->json('POST', '/api/files/trash/delete', { ids => [$gone] });
    ok wait_until(sub { $stack->sql("SELECT count(*) FROM files WHERE id = '$gone'") == 0 }), 'the row is gone';
    is $drive->job($purge)->{status}, 200, '  and the job has ended';
    ok -e $gone_object, 'the object is not';
    is $stack->stack('start', 'store')->{status}, 0, 'back';
};

subtest 'the database dies while rows are written' => sub {
    # The commit waits for a lock of ours until its connection is gone: whether it was done is not to be known.
    $stack->sql(q{CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(30); RETURN NEW; END $$});
    $stack->sql(q{CREATE TRIGGER slow BEFORE INSERT ON files FOR EACH ROW WHEN (NEW.mime_type = 'x/slow') EXECUTE FUNCTION slow()});
    my ($type, $before, $behind) = DriveClient::framing(name => 'unsure.txt', type => 'x/slow');
    my %known = map { $_ => 1 } object_files();
    my $sock = $drive->connect;
    DriveClient::put($sock, $drive->head('POST', '/api/files/upload', $type, 'Content-Length: ' . length "${before}x$behind") . "${before}x$behind");
    ok wait_until(sub { $stack->sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") > 0 }), 'a commit is on its way';
    my ($object) = grep { !$known{$_} } object_files();
    ok $object, '  and the object is there';
    is $stack->stack('kill', 'postgres')->{status}, 0, 'killed';
    is DriveClient::answer($sock)->{status}, 503, 'the client is told';
    ok -e $object, 'the object stays as long as a row may name it';
    is $stack->stack('start', 'postgres')->{status}, 0, 'back';
    ok wait_until(sub { eval { $stack->sql('DROP FUNCTION slow CASCADE'); 1 } }), 'and answers';
    is row('unsure.txt'), 0, 'the row was not written';
    ok wait_until(sub { !-e $object }), 'so the object is swept';
    ok wait_until(sub { !-e $gone_object }), 'and the one that the store would not delete, not after ten minutes only';
    whole('after the outage');
};

subtest 'the database dies under a job: the same server goes on with it' => sub {
    my $folder = $drive->json('POST', '/api/files/folder', { name => 'held' })->{json}{id};
    $drive->bulk(parent => $folder, files => [map { { name => "$_.txt", content => bytes(100, $_) } } 1 .. 20]);
    is $stack->stack('pause', 'store')->{status}, 0, 'the store stands still';
    my $copy = $drive->json('POST', '/api/files/copy', { ids => [$folder], parentId => undef });
    my $job = $copy->{json}{jobId} // $copy->{json}{id};
    ok wait_until(10, sub { $stack->sql(q{SELECT count(*) FROM jobs WHERE status = 'active'}) eq '1' }), 'a job is at it';
    ok wait_until(10, sub { $stack->sql(q{SELECT count(*) FROM copy_items WHERE NOT copied AND type = 'file'}) > 0 }), '  and has its list';
    is $stack->stack('kill', 'postgres')->{status}, 0, 'the database is killed';
    is $stack->stack('resume', 'store')->{status}, 0, 'the store goes on';
    ok wait_until(60, sub { slurp("$stack->{dir}/.sim/logs/server.log") =~ /warn +jobs: \w{16}: cannot connect/ }), 'the job cannot be let go of';
    is $stack->stack('start', 'postgres')->{status}, 0, 'the database is back';
    my $end = $drive->job($copy);
    is "$end->{status} $end->{json}{result}{count}", '200 21', 'and the copy is done' or diag $end->{body};
    whole('after the outage');
};

subtest 'the server dies: jobs are taken up again, orphans are swept, what is not ours stays' => sub {
    my $folder = $drive->json('POST', '/api/files/folder', { name => 'many' })->{json}{id};
    $drive->bulk(parent => $folder, files => [map { { name => "$_.txt", content => bytes(100, $_) } } 1 .. 400]);
    is $stack->stack('pause', 'store')->{status}, 0, 'the store stands still';
    my $queued = $drive->json('POST', '/api/files/copy', { ids => [$folder], parentId => undef });
    is $queued->{status}, 202, 'a copy begins';
    is $stack->stack('kill', 'server')->{status}, 0, 'the server is killed';
    is $stack->stack('resume', 'store')->{status}, 0, 'the store goes on';
    is $stack->sql("SELECT count(*) FROM files WHERE name = 'many (1)'"), 0, 'the copy was not done yet';
    # What a crash between object and row leaves, and two that look like it: another account's, another tool's.
    my $victim = $stack->sql("SELECT path FROM files WHERE parent_id = '$folder' ORDER BY name LIMIT 1");
    my $object = $stack->object_file($victim);
    my %copies = (orphan => "$account/" . 'z' x 16, young => "$account/" . 'y' x 16, foreign => 'nosuchaccount123/' . 'z' x 16, tool => "$account/notes.txt");
    (my $base = $object) =~ s/_object$//; # the store keeps an object in several files of one beginning
    my $path_of = sub { return $base =~ s/\Q$victim\E/$_[0]/r };
    for my $what (keys %copies) {
        my $to = $path_of->($copies{$what});
        my $written = $what eq 'young' ? time : time - 3600;
        system 'mkdir', '-p', $to =~ s{/[^/]+$}{}r;
        for my $f (glob "'$base'*") {
            (my $copy = $f) =~ s/^\Q$base\E/$to/;
            system 'cp', $f, $copy;
            utime $written, $written, $copy;
        }
    }
    is $stack->stack('start', 'server')->{status}, 0, 'and started again';
    my $again = DriveClient->new(url => $stack->env->{TMA_URL}, email => 'owner@load.test');
    my $job = $again->job($queued);
    is "$job->{status} $job->{json}{result}{count}", '200 401', 'the copy is done' or diag $job->{body};
    is $stack->sql("SELECT aggregate_file_count FROM files WHERE name = 'many (1)'"), 400, 'whole';
    my $there = sub { my @f = glob q{'} . $path_of->($copies{ $_[0] }) . q{'*}; return scalar @f };
    ok wait_until(sub { !$there->('orphan') }), 'the orphan is swept';
    ok wait_until(sub { !$there->('young') }), 'one of the last moment is swept once it is 10 seconds old';
    for my $what (qw(foreign tool)) {
        ok $there->($what), "the $what object stays";
        unlink glob q{'} . $path_of->($copies{$what}) . q{'*};
    }
    whole('after the crash');
    is $stack->sim(['check'])->{status}, 0, 'every check holds';
};

done_testing;
