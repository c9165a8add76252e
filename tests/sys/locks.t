# Edit locks whose holder dies or is slow, and the ways in which office programs save: shared cases K05, K07, K10, K11.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Drive;
use DriveClient;
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 2 0.003)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
my ($url, $owner) = ($stack->env->{TMA_URL}, 'owner@load.test');
sub session { return Drive->enter($url, 'login', { email => $owner, password => 'load-test-password' }) }
my ($d, $other) = (session(), session());
sub held { return $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()') }
sub lapse { return $stack->sql(q{UPDATE locks SET expires_at = now() - interval '1 second'}) }
sub exact { my ($what) = @_; my $c = $stack->sim([qw(check --only), 'aggregates,storage,structure,objects']); return is $c->{status}, 0, "$what: exact" || diag $c->{out} }

subtest 'a killed tool leaves a lock, which is named and lapses' => sub {    # K05
    spew("$stack->{dir}/mix", "save 1\n");
    my $h = $stack->start([qw(run 3 5 600 120 --mix mix --run-dir killed --report-every 1)]);
    ok sim_await($h, sub { $_[0]{out} =~ /measured window begins/ }), 'apps are at work';
    is $stack->stack(qw(pause store))->{status}, 0, 'the store stands still';
    ok wait_until(sub { held() >= 1 }), 'apps hold locks';
    my $lines = sub { return scalar(() = $_[0]{out} =~ /^interval /mg) };
    my $now = $lines->($h);
    ok sim_await($h, sub { $lines->($_[0]) >= $now + 3 }), 'and have recorded it: that is written each second, as the report is';
    kill KILL => $h->{pid};
    sim_finish($h);
    is $stack->stack(qw(resume store))->{status}, 0, 'the store goes on';
    cmp_ok held(), '>=', 1, 'killed, its locks stay';
    my $c = $stack->sim([qw(check --run killed --only locks)]);
    like $c->{out}, qr/locks .*still held: file \w+ by [^,]+, an app of the run, until \d\d:\d\d:\d\dZ/, 'the check names file, holder and end' or diag $c->{err};
    my ($file, $version) = split /\|/, $stack->sql('SELECT f.id, f.version FROM locks l JOIN files f ON f.id = l.file_id WHERE l.expires_at > now() LIMIT 1');
    my $no = $d->replace($file, 'mine');
    is $no->{status}, 423, 'a save is refused';
    ok $no->{json}{lockedBy}{name} && $no->{json}{expiresAt}, 'with holder and end';
    $r = $stack->sim([qw(run 3 5 120 3 --mix mix -q --json again.json)]);
    is $r->{status}, 0, 'the next run meets them as conflicts at most' or diag $r->{out};
    lapse();
    is $d->replace($file, 'mine', 'If-Match' => qq("$version"))->{status}, 200, 'lapsed, the save succeeds' if $stack->sql("SELECT version FROM files WHERE id = '$file'") eq $version;
    $r = $stack->sim([qw(run 3 5 240 3 --mix mix -q --json again.json)]);
    is $r->{status}, 0, 'and so do those of a run' or diag $r->{out};
    cmp_ok json_file("$stack->{dir}/again.json")->{operations}{save}{ok}, '>', 0, 'there were some';
    is held(), 0, 'it leaves no lock';
    exact('after the kill');
};

subtest 'rows that no server may have are named' => sub {
    $r = $stack->sim([qw(run 3 5 240 3 --mix mix -q --run-dir planted --json planted.json)]);
    is $r->{status}, 0, 'a run' or diag $r->{out};
    my ($file, $account) = split /\|/, $stack->sql(q{SELECT id, user_id FROM files WHERE type = 'file' ORDER BY id LIMIT 1});
    my $plant = sub {
        my ($user, $id, $until) = @_;
        $stack->sql("INSERT INTO locks VALUES ('$id', 'planted', '$account', '$user', 'nosession', 'Nobody', now(), now() + interval '$until')");
        my $c = $stack->sim([qw(check --only locks)]);
        $stack->sql(q{DELETE FROM locks WHERE lock_id = 'planted'});
        return "$c->{status} $c->{out}";
    };
    like $plant->('nouser', $file, '60 s'), qr/^1 .*VIOLATED +locks.*file $file: lock planted, of Nobody until \S+: its holder is no user/s, 'a lock held by nobody';
    like $plant->($account, 'nofile', '60 s'), qr/^1 .*file nofile: lock planted, of Nobody until \S+: there is no such file/s, 'a lock on nothing';
    like $plant->($account, $file, '2 days'), qr/^1 .*file $file: lock planted, .*: no lock may be asked for that lasts so long/s, 'a lease far in the future';
    like $plant->($account, $file, '60 s'), qr/^3 .*not run +locks .*still held: file $file by Nobody/s, 'and a lock that is as it should be is none of these';
    my ($saved, $version) = split /\|/, $stack->sql(q{SELECT id, version FROM files WHERE version > 1 ORDER BY modified DESC LIMIT 1});
    $stack->sql("UPDATE files SET version = version - 1 WHERE id = '$saved'");
    my $c = $stack->sim([qw(check --run planted --only versions)]);
    is $c->{status}, 1, 'a version that is set back';
    like $c->{out}, qr/file $saved: it is at version @{[ $version - 1 ]} again, which the save of app \d+ at \S+ had made $version; look:/, 'is named by the versions';
    $stack->sql("UPDATE files SET version = $version WHERE id = '$saved'");
    is $stack->sim([qw(check --run planted --only versions)])->{status}, 0, 'and is right again';
    my $twice = eval { $stack->sql('INSERT INTO changes SELECT * FROM changes ORDER BY at DESC LIMIT 1'); 1 };
    ok !$twice, 'a change number cannot be there twice';
};

# A replacement that has sent half of its body; returns what sends the rest and takes the answer.
sub slow_save {
    my ($id, $content, @headers) = @_;
    my $c = DriveClient->new(url => $url, email => $owner);
    $c->{token} = $d->{token};    # the holder's session
    my ($type, $before, $behind) = DriveClient::framing(name => 'x', content => $content);
    my $body = $before . $content . $behind;
    my $sock = $c->connect;
    DriveClient::put($sock, $c->head('POST', "/api/files/$id/replace", $type, 'Content-Length: ' . length $body, @headers));
    my $half = length($body) / 2;
    DriveClient::put($sock, substr $body, 0, $half);
    return sub { DriveClient::put($sock, substr $body, $half); return DriveClient::answer($sock) };
}

subtest 'a lock that lapses during an upload' => sub {    # K07: then the version alone decides
    my $f = $d->upload(undef, 'slow.bin', 'a' x 1000)->{json};
    my $lock = $d->post("/api/files/$f->{id}/lock", { ttlSeconds => 30 })->{json}{lockId};
    my @as = (qq(If-Match: "$f->{version}"), "X-Lock-Id: $lock");
    my $rest = slow_save($f->{id}, 'b' x 300_000, @as);
    lapse();
    is $rest->()->{status}, 200, 'its own stale lock does not refuse it';
    is $d->get("/api/files/$f->{id}/download")->{text}, 'b' x 300_000, 'all of it is there';
    is $d->get("/api/files/$f->{id}/info")->{json}{version}, $f->{version} + 1, 'saved once';
    my $now = $f->{version} + 1;
    $lock = $d->post("/api/files/$f->{id}/lock")->{json}{lockId};
    @as = (qq(If-Match: "$now"), "X-Lock-Id: $lock");
    $rest = slow_save($f->{id}, 'c' x 300_000, @as);
    lapse();
    is $other->replace($f->{id}, 'theirs', 'If-Match' => qq("$now"))->{status}, 200, 'another saves once the lock has lapsed';
    is $rest->()->{status}, 412, 'the slow one is told: no double save';
    is $d->get("/api/files/$f->{id}/download")->{text}, 'theirs', 'what was saved stays';
    exact('slow uploads');
};

# K10. The rule: the name is free as soon as its holder is in the trash or renamed; what takes it keeps its own id and
# begins its own versions, and the old file's history stays with the old file.
subtest 'saving by a temporary file' => sub {
    my $f = $d->folder('office');
    my $x = $d->upload($f, 'X.docx', 'old')->{json};
    my $trashed = sub { return scalar grep { $_->{name} =~ /^X/ } @{ $d->get('/api/files/trash')->{json} } };
    my $names = sub { return [sort map { $_->{name} } $d->list($f)] };

    my $tmp = $d->upload($f, '~wrd1.tmp', 'new')->{json};
    is $d->post('/api/files/rename', { id => $tmp->{id}, name => 'X.docx' })->{status}, 409, 'the name is taken';
    is $d->post('/api/files/delete', { ids => [$x->{id}] })->{status}, 200, 'the old one goes to the trash';
    is $d->post('/api/files/rename', { id => $tmp->{id}, name => 'X.docx' })->{json}{id}, $tmp->{id}, 'the new one takes the name';
    is_deeply $names->(), ['X.docx'], 'one file';
    is $trashed->(), 1, 'one in the trash';
    is $d->get("/api/files/$tmp->{id}/download")->{text}, 'new', 'the new content';

    my $next = $d->upload($f, '~wrd2.tmp', 'newer')->{json};
    is $d->post('/api/files/rename', { id => $tmp->{id}, name => 'X.bak' })->{status}, 200, 'or aside';
    is $d->post('/api/files/rename', { id => $next->{id}, name => 'X.docx' })->{status}, 200, 'then renamed';
    is $d->post('/api/files/delete', { ids => [$tmp->{id}] })->{status}, 200, 'the one aside goes';
    is_deeply $names->(), ['X.docx'], 'one file again';
    is $d->get("/api/files/$next->{id}/download")->{text}, 'newer', 'the newer content';
    is $d->get("/api/files/$f/info")->{json}{folderInfo}{fileCount}, 3, 'totals count what is in the trash';
    exact('office programs');
};

subtest 'two save what both have seen' => sub {    # K11
    my $f = $d->upload(undef, 'both.txt', 'seen by both')->{json};
    my @answers = map { $_->replace($f->{id}, 'mine', 'If-Match' => qq("$f->{version}")) } $d, $other;
    is_deeply [map { $_->{status} } @answers], [200, 412], 'one success and one conflict';
    is $answers[1]{json}{currentVersion}, $answers[0]{json}{version}, 'which tells the version that is there';
};

done_testing;
