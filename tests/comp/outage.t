#!/usr/bin/env perl
# The server's services go away and come back: requests get a sentence meanwhile, and nothing has to be started again.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Serve;
use Sim;
use Test::More;

my $stack = Sim::Stack->new('--no-server');

subtest 'what is not there at the start' => sub {
    for my $case (
        [2, qr/DATABASE_URL is not set: it takes postgresql:/, DATABASE_URL => ''],
        [2, qr/REDIS_URL is not set/, REDIS_URL => ''],
        [2, qr/JWT_SECRET is not set: it takes a long random string/, JWT_SECRET => ''],
        [2, qr/FILE_ENCRYPTION_KEY is not set/, FILE_ENCRYPTION_KEY => ''],
        [2, qr/PORT=http: it takes a port number/, PORT => 'http'],
        [2, qr/LOG_LEVEL=loud: it takes error, warn, info or debug/, LOG_LEVEL => 'loud'],
        [3, qr/Postgres \(DATABASE_URL\) cannot be used: .*refused/s, DATABASE_URL => 'postgresql://tma@127.0.0.1:9/tma'],
        [3, qr/Redis \(REDIS_URL\) cannot be used: .*refused/s, REDIS_URL => 'redis://127.0.0.1:9/0'],
        ) {
        my ($status, $sentence, %env) = @$case;
        my %keys = (JWT_SECRET => 'a secret that only tests know', FILE_ENCRYPTION_KEY => 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=');
        my $r = $stack->sim([qw(serve --wait 0), exists $env{PORT} ? () : qw(--port 0)], env => { %keys, %env });
        is $r->{status}, $status, join ' ', %env;
        like $r->{err}, $sentence, '… says which';
        unlike $r->{err}, qr/only tests know/, '… without a secret';
    }
    my $one = Serve->new($stack);
    my $r = $stack->sim(['serve', '--port', $one->port], env => { JWT_SECRET => 'x' x 20, FILE_ENCRYPTION_KEY => 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' });
    is $r->{status}, 3, 'a port that is taken';
    like $r->{err}, qr/cannot listen on 127\.0\.0\.1 port \d+: Address already in use/, '… is named';
};

subtest 'what starts later than the server is waited for' => sub {
    my %env = (JWT_SECRET => 'a secret that only tests know', FILE_ENCRYPTION_KEY => 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=');
    for my $part ([ postgres => 'Postgres (DATABASE_URL)' ], [ redis => 'Redis (REDIS_URL)' ]) {
        my ($name, $called) = @$part;
        is $stack->stack('stop', $name)->{status}, 0, "$name is not there";
        my $r = $stack->sim([qw(serve --port 0 --wait 2s)], env => \%env);
        is $r->{status}, 3, 'the wait has an end';
        like $r->{err}, qr/waiting for \Q$called\E, \S+ m?s left: .*\Q$called\E cannot be used: .*: start it, or correct the setting; --wait TIME waits longer/s, '… a line tells for what, and the last one what to do';
        my $waits = $stack->start([qw(serve --port 0 --wait 10min)], env => \%env);
        ok sim_await($waits, sub { $_[0]{err} =~ /waiting for \Q$called\E/ }), 'another one waits';
        kill 'TERM', $waits->{pid};
        is sim_finish($waits)->{status}, 130, '… until it is told to stop';
        $waits = $stack->start([qw(serve --port 0 --wait 10min)], env => \%env);
        ok sim_await($waits, sub { $_[0]{err} =~ /waiting for \Q$called\E/ }), 'another one';
        is $stack->stack('start', $name)->{status}, 0, "$name comes";
        ok sim_await($waits, sub { $_[0]{out} =~ /listening on/ }), '… and so does the server';
        kill 'TERM', $waits->{pid};
        is sim_finish($waits)->{status}, 0, '… which ends well';
    }
    (my $wrong = $stack->env->{DATABASE_URL}) =~ s{/[^/?]*(\?|$)}{/nosuchdb$1};
    my $r = $stack->sim([qw(serve --port 0 --wait 10min)], env => { %env, DATABASE_URL => $wrong });
    is $r->{status}, 3, 'a database that is not known there';
    like $r->{err}, qr/cannot be used: .*nosuchdb.*: start it, or correct the setting\n/, '… will not come by itself: not waited for';
};

subtest 'settings come from .env, the environment before it' => sub {
    open my $fh, '>', "$stack->{dir}/.env" or die $!;
    print {$fh} "# settings\nexport JWT_SECRET='a secret that only tests know'\nFILE_ENCRYPTION_KEY=\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"\nAPP_ENV=from the file\nPORT=1\n";
    close $fh;
    my $server = Serve->new($stack, { JWT_SECRET => '', FILE_ENCRYPTION_KEY => '', PORT => '' });
    is $server->call('GET', '/health')->{json}{environment}, 'from the file', 'read';
    undef $server;
    $server = Serve->new($stack, { APP_ENV => 'from the environment' });
    is $server->call('GET', '/health')->{json}{environment}, 'from the environment', 'overruled';
    unlink "$stack->{dir}/.env";
};

my $server = Serve->new($stack);
my $token = $server->token('owner@load.test');
my %auth = $server->auth($token);
my $stream = $server->connect;
print {$stream} head('GET /api/files/events', %auth);
$stream->flush;
my $seen = '';
ok wait_until(sub { Serve::more($stream, \$seen, 1); $seen =~ /"connected"/ }), 'a stream is open';

subtest 'Postgres goes away and comes back' => sub {
    is $stack->stack('stop', 'postgres')->{status}, 0, 'it is down';
    my $r = $server->call('POST', '/api/files/folder', { name => 'No' }, %auth);
    is $r->{status}, 503, 'a write is refused';
    like $r->{json}{message}, qr/database cannot be reached/, '… with a sentence';
    ok $r->{headers}{'retry-after'}, '… and when to come back';
    is $server->call('POST', '/api/login', { email => 'owner@load.test', password => 'load-test-password' })->{status}, 503, 'so is signing in';
    is $server->call('GET', '/health')->{status}, 200, 'the server lives';
    is $stack->stack('start', 'postgres')->{status}, 0, 'it is back';
    ok wait_until(sub { $server->call('POST', '/api/files/folder', { name => 'Yes' }, %auth)->{status} == 201 }), 'writes work again';
    ok wait_until(sub { Serve::more($stream, \$seen, 1); $seen =~ /"folder.created".*"Yes"/ }), 'the stream stayed and hears of it';
    is $server->metric('drive_server_errors_total'), 0, 'no server error was counted';
};

subtest 'Redis goes away and comes back' => sub {
    is $stack->stack('stop', 'redis')->{status}, 0, 'it is down';
    is $server->call('POST', '/api/files/folder', { name => 'Without' }, %auth)->{status}, 201, 'writes go on';
    is $server->metric('drive_redis_up'), 0, 'the metrics tell';
    is $stack->stack('start', 'redis')->{status}, 0, 'it is back';
    ok wait_until(sub { Serve::more($stream, \$seen, 1); $seen =~ /"resync"/ }), 'streams are told to list again';
    my $r;
    ok wait_until(sub { $r = $server->call('GET', '/api/files/stats', undef, %auth); exists $r->{headers}{'ratelimit-remaining'} }), 'budgets are counted again';
};

sub form { return qq{--b\r\nContent-Disposition: form-data; name="file"; filename="x.txt"\r\n\r\n$_[0]\r\n--b--\r\n} }
my %form = (%auth, 'Content-Type' => 'multipart/form-data; boundary=b');

subtest 'Postgres stands still' => sub {
    my $hasty = Serve->new($stack, '--db-timeout', '1s');
    my $calm = sub { # an answer of a busy machine may be late for this server
        my @call = @_;
        my $r;
        wait_until(sub { $r = $hasty->call(@call, %auth); return $r->{status} != 503 });
        return $r;
    };
    is $calm->('GET', '/api/files', undef)->{status}, 200, 'a server that waits for a second';
    my $s = $hasty->connect;
    print {$s} head('GET /api/files/events', %auth);
    $s->flush;
    my $heard = '';
    ok wait_until(sub { Serve::more($s, \$heard, 1); $heard =~ /"connected"/ }), 'a stream';
    is $stack->stack('pause', 'postgres')->{status}, 0, 'Postgres is stopped';
    my $r = $hasty->call('POST', '/api/files/folder', { name => 'Perhaps' }, %auth);
    is $r->{status}, 503, 'a write is not waited for';
    is $r->{json}{error}, 'DATABASE_UNAVAILABLE', '… with the reason';
    ok $r->{headers}{'retry-after'}, '… and when to come back';
    is $hasty->call('GET', '/api/files', undef, %auth)->{status}, 503, 'nor is a read';
    is $stack->stack('resume', 'postgres')->{status}, 0, 'it goes on';
    ok wait_until(sub { $hasty->call('GET', '/api/files', undef, %auth)->{status} == 200 }), 'reads work again';
    ok wait_until(sub { Serve::more($s, \$heard, 1); $heard =~ /"resync"/ }), 'nobody knows whether the write was done: the stream is told to list again';
    my @done = grep { $_->{name} eq 'Perhaps' } @{ $calm->('GET', '/api/files', undef)->{json} };
    cmp_ok scalar @done, '<=', 1, 'it was done once or not at all';
    is $server->call('POST', '/api/files/folder', { name => 'Perhaps' }, %auth)->{status}, @done ? 409 : 201, '… and that is settled';
    is $hasty->metric('drive_server_errors_total'), 0, 'no server error was counted';
};

subtest 'Postgres gives no more connections' => sub {
    my $few = Serve->new($stack);
    my $fill = $stack->start(['stack', 'fill', 'postgres', '--for', '10min']);
    ok sim_await($fill, sub { $_[0]{err} =~ /gives no more connections: \d+ are taken/ }), 'all of them are taken';
    my @calls = map { my $s = $few->connect; print {$s} head("GET /api/files?limit=$_", %auth, Connection => 'close'); $s } 1 .. 12;
    is_deeply [map { answer($_)->{status} } @calls], [(200) x 12], 'the connections that the server has do for all';
    is $few->call('POST', '/api/files/folder', { name => 'Crowded' }, %auth)->{status}, 201, 'a write too';
    kill 'TERM', $fill->{pid};
    is sim_finish($fill)->{status}, 130, 'they are let go';
    ok wait_until(sub { $stack->sql('SELECT 1') eq '1' }), 'and there for others';
};

my $other = Serve->new($stack); # before a bucket is connected
is $other->call('POST', '/api/files/upload', form('no'), %form)->{status}, 503, 'no bucket is connected yet';

subtest 'the store goes away and comes back' => sub {
    $server->connect_store($token);
    my $upload = sub { $server->call('POST', '/api/files/upload', form('hello'), %form) };
    my $id = $upload->()->{json}{id};
    ok $id, 'an upload';
    is $other->call('POST', '/api/files/upload', form('too'), %form)->{status}, 200, 'another process has the bucket as well';
    is $stack->stack('stop', 'store')->{status}, 0, 'the store is down';
    my $r = $upload->();
    is $r->{status}, 503, 'an upload is refused';
    like $r->{json}{message}, qr/store/, '… with a sentence';
    is $server->call('POST', "/api/files/$id/replace", form('newer'), %form)->{status}, 503, 'so is a save';
    is $server->call('GET', "/api/files/$id/download", undef, %auth)->{status}, 503, 'so is a download';
    is $server->call('GET', '/api/files', undef, %auth)->{status}, 200, 'listings go on';
    is $stack->stack('start', 'store')->{status}, 0, 'the store is back';
    ok wait_until(sub { $upload->()->{status} =~ /^20/ }), 'uploads work again';
    is $server->call('GET', "/api/files/$id/download", undef, %auth)->{body}, 'hello', 'the old content is there';
    is $server->metric('drive_server_errors_total'), 0, 'no server error was counted';
};

# As after a Postgres that went away when it had committed the claim, or when the job could not be put back.
subtest 'a job that its server claimed and is not at' => sub {
    my $id = $server->call('POST', '/api/files/folder', { name => 'For the trash' }, %auth)->{json}{id};
    $stack->sql("INSERT INTO jobs (id, account_id, user_id, kind, args, status, server_id, attempts) SELECT 'lost', u.id, u.id, 'trash', jsonb_build_object('ids', jsonb_build_array('$id'), 'target', NULL), 'active', s.id, 1"
        . " FROM users u, servers s WHERE u.email = 'owner\@load.test' AND s.pid = " . $server->pid);
    ok wait_until(sub { $stack->sql(q{SELECT status FROM jobs WHERE id = 'lost'}) eq 'completed' }), 'is taken up';
    is $stack->sql("SELECT count(*) FROM files WHERE id = '$id' AND trash_root = id"), 1, '… and done';
};

# As after a Postgres that stood still for longer than the sweeper waits: what a dead server asked for runs in the end.
subtest 'a commit comes after its object was swept' => sub {
    my $account = $stack->sql('SELECT first_user_id FROM app_settings');
    my $late = "SELECT coalesce(refused, 'done') FROM drive_upload_commit_many('$account', '$account', ARRAY[NULL], ARRAY['late.txt'],"
        . " ARRAY[1], ARRAY['text/plain'], ARRAY['$account/1111111111111111'], ARRAY[NULL::bigint], NULL)";
    my $give_up = sub { $stack->sql("SELECT count(*) FROM drive_give_up_objects('$account', ARRAY['$account/1111111111111111'])") };
    is $give_up->(), 1, 'no row names the object: it is given up';
    is $stack->sql($late), 'CONTENT_GIVEN_UP', 'no row ever will';
    is $stack->sql("SELECT count(*) FROM files WHERE name = 'late.txt'"), 0, 'nothing is listed';
    $stack->sql('DELETE FROM dead_objects');
    is $stack->sql($late), 'done', 'a commit in time';
    is $give_up->(), 0, '… keeps its object';
    $stack->sql("DELETE FROM files WHERE name = 'late.txt'");
};

my $end = $server->stop;
is $end->{status}, 0, 'ends well';
like $end->{err}, qr/budgets are not counted/, 'the log says that budgets were not counted';
done_testing;
