# The work of many items at once: copied, trashed, deleted for good, and exact afterwards; a step whose time is over is
# looked for and not repeated; what dies in the middle is named, and after a restart all is exact.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Drive;
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 2 0.05)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};

my $owner = Drive->enter($stack->env->{TMA_URL}, 'login', { email => 'owner@load.test', password => 'load-test-password' });
my $state_sql = "SELECT u.storage_used || ' ' || u.storage_reserved || ' ' || (SELECT count(*) FROM files) || ' '"
    . " || (SELECT count(*) FROM storage_reservations) FROM users u WHERE u.email = 'owner\@load.test'";
# What is in the trash counts in a folder's totals and is left out of its copy.
my $largest = $stack->sql('SELECT id FROM files WHERE parent_id IS NULL AND type = \'folder\' ORDER BY aggregate_file_count + aggregate_folder_count DESC LIMIT 1');
my $below = "WITH RECURSIVE t AS (SELECT id, type, trash_root FROM files WHERE parent_id = '$largest' UNION ALL SELECT f.id, f.type, f.trash_root FROM files f JOIN t ON f.parent_id = t.id)";
my ($trashed) = split /\n/, $stack->sql("$below SELECT id FROM t WHERE type = 'file' ORDER BY id LIMIT 1");
is $owner->post('/api/files/delete', { ids => [$trashed] })->{status}, 200, 'a file of the largest folder is in the trash';
my $before = $stack->sql($state_sql);
sub report { return json_file("$stack->{dir}/bulk.json") }
sub check_of { my ($j, $name) = @_; return (grep { $_->{name} eq $name } @{ $j->{checks} })[0] }
sub copies_asked { return $stack->sql(q{SELECT count(*) FROM jobs WHERE kind = 'copy'}) }
sub copying { return wait_until(sub { $stack->sql(q{SELECT count(*) FROM jobs WHERE kind = 'copy' AND status = 'active'}) }) }
sub part { my (@do) = @_; my $p = $stack->stack(@do); is $p->{status}, 0, "@do" or diag $p->{err}; return }

# bulk is under way as $h, the store stands still: a part is killed and started again.
my $h;
sub killed_and_back {
    my ($victim, $row) = @_;
    part('kill', $victim);
    ok sim_wakes($h, 20), "$victim: it has been missed";
    part('start', $victim);
    part(qw(resume store)) if $victim ne 'store';
    sim_finish($h);
    # 3: the store was not back when the checks looked for the objects.
    my $unseen = $victim eq 'store' && $h->{status} eq '3' && $h->{err} =~ /the check 'objects' could not run: .*refused/;
    ok $h->{status} =~ /^[01]$/ || $unseen, "$victim: it comes to its end" or diag $h->{status}, $h->{out}, $h->{err};
    like $h->{out}, $row, "$victim: and to a report";
    if ($victim ne 'store') {
        is $h->{status}, 1, "$victim: not healthy";
        like $h->{out}, $victim eq 'server' ? qr/server unreachable/ : qr/database/i, "$victim: says what was wrong" or diag $h->{err};
    }
    $stack->sim([qw(check --json check.json)]);
    my $c = json_file("$stack->{dir}/check.json");
    is check_of($c, $_)->{status}, 'ok', "$victim: $_ exact afterwards" or diag explain check_of($c, $_) for qw(aggregates storage structure);
    is_deeply [grep { !/belongs to no file/ } @{ check_of($c, 'objects')->{detail} }], [], "$victim: objects exact, or the sweeper's";
    is $stack->sql($state_sql), $before, "$victim: everything is as before";
    return;
}

# ---- as it should be
$r = $stack->sim([qw(bulk --json bulk.json --fail-on), 'bulk_copy.items_per_s>1', '--fail-on', 'bulk_purge.seconds<5min', '--fail-on', 'outages.count==0']);
is $r->{status}, judged($r, 0), 'exit status 0' or diag $r->{out}, $r->{err};
my $j = report();
my ($files, $folders) = @{ $j->{bulk} }{qw(files folders)};
is "$files $folders", $stack->sql("$below SELECT count(*) FILTER (WHERE type = 'file') || ' ' || count(*) FILTER (WHERE type = 'folder') FROM t WHERE trash_root IS NULL"),
    'the largest folder of the top level was taken, but for what is in the trash';
like $r->{out}, qr/^bulk: ".*", the largest folder of \S+: $files files in $folders folders?, /m, 'and is told about';
like $r->{out}, qr/^bulk: copied $files of $files \(100 %\)/m, 'with the same number at the end of its progress';
is $j->{operations}{$_}{ok}, 1, "$_ was done" for qw(copy trash purge);
for my $step (qw(bulk_copy bulk_trash bulk_purge)) {
    my $s = $j->{$step};
    is $s->{items}, $files + $folders + 1, "$step: all items";
    cmp_ok $s->{items_per_s}, '>', 0, "$step: items a second";
    cmp_ok $s->{request_seconds} + $s->{queue_seconds} + $s->{work_seconds}, '<=', $s->{seconds} + 0.1, "$step: its parts are not more than the whole";
}
is $j->{bulk_purge}{store_deletes_in_batches}, 1, 'the store deletes in batches';
is $j->{bulk_purge}{store_deleted_objects}, $files, 'one object a file';
is $j->{bulk_purge}{store_delete_requests}, 1 + int(($files - 1) / 1000), 'up to 1,000 a request';
like $r->{out}, qr/in batches of up to 1,000 keys/, 'and says so';
is check_of($j, $_)->{status}, 'ok', "$_: exact" for qw(aggregates storage structure objects database server);
is $stack->sql($state_sql), $before, 'everything is as before';

# ---- C09: a timeout below the copy's time, a folder of the source deleted meanwhile (the store stands still until then)
my $asked = copies_asked();
part(qw(pause store));
$h = $stack->start_without_bucket([qw(bulk --timeout 2s --json), "$stack->{dir}/bulk.json"]);
copying();
my $sub = $stack->sql('SELECT id FROM files WHERE type = \'folder\' AND parent_id = (SELECT id FROM files WHERE parent_id IS NULL AND type = \'folder\''
    . ' ORDER BY aggregate_file_count + aggregate_folder_count DESC LIMIT 1) ORDER BY aggregate_file_count LIMIT 1');
is $owner->post('/api/files/delete', { ids => [$sub] })->{status}, 200, 'a subfolder of the source goes to the trash';
ok sim_await($h, sub { $_[0]{out} =~ /timed out, outcome unknown.*nothing is sent again/ }), 'timed out, outcome unknown';
part(qw(resume store));
sim_finish($h);
is $h->{status}, 1, 'exit status 1' or diag $h->{out}, $h->{err};
like $h->{out}, qr/copy: looked for .*: it was done/, 'it was looked for';
is copies_asked(), $asked + 1, 'and asked for once';
is report()->{operations}{copy}{outcomes}{unknown}, 1, 'counted as unknown';
is check_of(report(), $_)->{status}, 'ok', "$_: exact" for qw(aggregates storage structure);
$stack->sim([qw(check --only objects --json check.json)]);
is check_of(json_file("$stack->{dir}/check.json"), 'objects')->{status}, 'ok', 'objects: exact';
is $owner->post('/api/files/trash/restore', { ids => [$sub] })->{status}, 200, 'the subfolder comes back';
is $stack->sql($state_sql), $before, 'everything is as before';

# ---- each part killed in the middle of the copy, and started again
for my $victim (qw(server store postgres)) {
    part(qw(pause store));
    $h = $stack->start_without_bucket([qw(bulk --json), "$stack->{dir}/bulk.json"]);
    ok copying(), "$victim: the copy is under way";
    killed_and_back($victim, qr/^copy /m);
}

# ---- each part killed while the copy is deleted for good
$stack->sql('CREATE TABLE shut ()');
$stack->sql(q{CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN WHILE EXISTS (SELECT FROM shut) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END'});
$stack->sql(q{CREATE TRIGGER linger BEFORE INSERT ON jobs FOR EACH ROW WHEN (NEW.kind = 'purge') EXECUTE FUNCTION linger()});
for my $victim (qw(server store postgres)) {
    $stack->sql('INSERT INTO shut DEFAULT VALUES');
    $h = $stack->start([qw(bulk --json bulk.json)]);
    ok wait_until(sub { $stack->sql(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'}) }), "$victim: the copy is in the trash";
    part(qw(pause store));
    $stack->sql('DELETE FROM shut');
    ok wait_until(sub { $stack->sql(q{SELECT count(*) FROM jobs WHERE kind = 'purge' AND status = 'active' AND keys IS NOT NULL}) }), "$victim: its rows are gone, its objects not yet";
    killed_and_back($victim, qr/^delete for good /m);
    $stack->sql('DROP TRIGGER IF EXISTS linger ON jobs') if $victim eq 'postgres';
}

# ---- nothing to copy, nobody there
is $stack->sim([qw(bulk --timeout 0)])->{status}, 2, 'a timeout of nothing is a usage error';
part(qw(stop server));
$r = $stack->sim(['bulk']);
is $r->{status}, 3, 'no server: exit status 3';

done_testing;
