#!/usr/bin/env perl
# Event streams: frames, replay, resync, limits, leaving, and what a stream costs (E08 E09 E11: the server's side).
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Serve;
use Sim;
use Test::More;
use Time::HiRes qw(time);

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack, '--keepalive', '2s');
my $token = $server->token('owner@load.test');
my %auth = $server->auth($token);

# Opens a stream; frames are read by frame().
sub stream {
    my ($on, $who, %headers) = @_;
    my $s = $on->connect;
    print {$s} head('GET /api/files/events', %$who, %headers);
    $s->flush;
    my $text = '';
    while ($text !~ /\r\n\r\n/) { Serve::more($s, \$text, 60) or last }
    my ($top, $rest) = split /\r\n\r\n/, $text, 2;
    ${*$s}{status} = ($top // '') =~ m{^HTTP/1.1 (\d+)} ? $1 : 0;
    ${*$s}{top} = $top;
    ${*$s}{text} = $rest // '';
    return $s;
}

# The next frame with data as {id, data…}; undef when none comes in time. Comments are counted.
sub frame {
    my ($s, $timeout) = @_;
    my $end = time + ($timeout // 60);
    while (1) {
        while (${*$s}{text} =~ s/^(.*?)\n\n//s) {
            my $block = $1;
            if ($block =~ /^:/) { ${*$s}{comments}++; next }
            my ($id) = $block =~ /^id: (.*)$/m;
            my ($data) = $block =~ /^data: (.*)$/m;
            return { id => $id, %{ JSON::PP->new->utf8->decode($data) } };
        }
        my $left = $end - time;
        return undef if $left <= 0 || !Serve::more($s, \${*$s}{text}, $left);
    }
}

sub folder {
    my ($on, $name, %who) = @_;
    my $r = $on->call('POST', '/api/files/folder', { name => $name }, %who);
    die "folder $name: $r->{status} $r->{body}" if $r->{status} !~ /^2/;
    return $r->{json}{id};
}

my ($first_id, $second_id);
subtest 'frames' => sub {
    my $s = stream($server, \%auth);
    like ${*$s}{top}, qr{^content-type: text/event-stream}mi, 'type';
    like ${*$s}{top}, qr{^x-accel-buffering: no}mi, 'no buffering on the way';
    like ${*$s}{top}, qr{^cache-control: no-cache}mi, 'no cache';
    ok wait_until(sub { length ${*$s}{text} || Serve::more($s, \${*$s}{text}, 1) }), 'bytes at once';
    like ${*$s}{text}, qr/^: /, '… a comment first';
    my $hello = frame($s);
    is $hello->{type}, 'connected', 'connected';
    $first_id = $hello->{id};
    is $hello->{cursor}, $first_id, '… with the cursor as its id';
    my $id = folder($server, 'A', %auth);
    my $made = frame($s);
    is $made->{type}, 'folder.created', 'an event';
    is $made->{data}{id}, $id, '… names the folder';
    is $made->{id}, $made->{cursor}, '… and has its cursor as id';
    like $made->{timestamp}, qr/^\d{4}-.*Z$/, '… and a time in UTC';
    $second_id = $made->{id};
    my $else;
    ok wait_until(sub { $else = frame($s, 1); return $else || (${*$s}{comments} // 0) >= 2 }), 'comments meanwhile';
    is $else, undef, '… and nothing else';
};

subtest 'replay after Last-Event-ID' => sub {
    folder($server, 'B', %auth);
    my $s = stream($server, \%auth, 'Last-Event-ID' => $first_id);
    is frame($s)->{type}, 'connected', 'connected';
    is_deeply [map { frame($s)->{data}{name} } 1 .. 2], ['A', 'B'], 'what was missed, in order';
    folder($server, 'C', %auth);
    is frame($s)->{data}{name}, 'C', 'then live';
    $s = stream($server, \%auth, 'Last-Event-ID' => $second_id);
    frame($s);
    is_deeply [map { frame($s)->{data}{name} } 1 .. 2], ['B', 'C'], 'from a later one less';
    is frame($s, 0.3), undef, 'nothing twice';
    for my $id ('nonsense', 'otherdatabase-1', ($first_id =~ s/-\d+$/-999/r), ($first_id =~ s/-\d+$/--1/r)) {
        $s = stream($server, \%auth, 'Last-Event-ID' => $id);
        is frame($s)->{type}, 'connected', "connected after $id";
        my $r = frame($s);
        is $r->{type}, 'resync', '… then resync';
        is $r->{cursor}, $server->call('GET', '/api/files/changes', undef, %auth)->{json}{cursor}, '… with the present cursor';
    }
};

subtest 'a row of the past is gone' => sub {
    $stack->sql(q{DELETE FROM changes WHERE seq = 1});
    my $s = stream($server, \%auth, 'Last-Event-ID' => $first_id);
    frame($s);
    is frame($s)->{type}, 'resync', 'resync instead of a gap';
    my $r = $server->call('GET', "/api/files/changes?cursor=$first_id", undef, %auth)->{json};
    ok $r->{resync}, 'the feed says so too';
};

subtest 'the change feed' => sub {
    my $feed = sub { $server->call('GET', '/api/files/changes' . ($_[0] ? "?cursor=$_[0]" : ''), undef, %auth)->{json} };
    my $start = $feed->();
    is_deeply [@$start{qw(folders resync hasMore)}], [[], JSON::PP::false, JSON::PP::false], 'without a cursor: the present one';
    my $a = folder($server, 'Feed', %auth);
    $server->call('POST', '/api/files/folder', { name => 'Below', parentId => $a }, %auth);
    my $r = $feed->($start->{cursor});
    is_deeply $r->{folders}, [undef, $a], 'the top level and the folder, in commit order';
    is_deeply $feed->($r->{cursor})->{folders}, [], 'nothing after it';
    ok $feed->($_)->{resync}, "resync for $_" for 'x', 'x-1', $r->{cursor} =~ s/-\d+$/-100000/r;
};

subtest 'at most 20 streams a login' => sub {
    $server->call('POST', '/api/user/sub-users', { email => 'user-1@load.test', password => 'load-test-password', permissions => [] }, %auth);
    my %sub = $server->auth($server->token('user-1@load.test'));
    my @s = map { stream($server, \%sub) } 1 .. 20;
    is scalar(grep { ${*$_}{status} == 200 } @s), 20, '20 are open';
    my $r = $server->call('GET', '/api/files/events', undef, %sub);
    is $r->{status}, 429, 'the 21st is refused';
    like $r->{json}{error}, qr/Too many active connections/, '… with its sentence in error';
    is ${* { stream($server, \%auth) }}{status}, 200, 'the owner has its own 20';
    folder($server, 'Seen', %auth);
    my $seen = grep { my $s = $_; my $f; do { $f = frame($s) } while ($f && $f->{type} eq 'connected'); ($f // {})->{type} eq 'folder.created' } @s;
    is $seen, 20, 'all hear of a change by the owner';
    close shift @s;
    ok wait_until(sub { ${* { stream($server, \%sub) }}{status} == 200 }), 'a place is free again when one leaves';
    close $_ for @s;
};

subtest 'leaving and being sent away' => sub {
    # One of those before may have left while the server was still reading the database for it: counted until that ends.
    ok wait_until(sub { $server->metric('drive_streams') == 0 }), 'none is left of those before';
    my @s = map { stream($server, \%auth) } 1 .. 5;
    is $server->metric('drive_streams'), 5, 'counted';
    close shift @s;
    ok wait_until(sub { $server->metric('drive_streams') == 4 }), 'a client that leaves is noticed without an event';
    my $other = $server->token('owner@load.test');
    my $s = stream($server, { $server->auth($other) });
    frame($s);
    $server->call('POST', '/api/logout', undef, $server->auth($other));
    is frame($s), undef, 'no frame after a logout';
    rest($s);
    ok ${*$s}{ended}, '… the stream has ended';
    ok frame($_) && ${*$_}{status} == 200, 'the others go on' for @s;
};

subtest 'events cross processes' => sub {
    my $second = Serve->new($stack);
    my $s = stream($second, \%auth);
    frame($s);
    my $id = folder($server, 'Across', %auth);
    is frame($s)->{data}{id}, $id, 'made by one, told by the other';
};

subtest 'several processes: the order of commits, nothing twice, nothing left out' => sub {
    my $second = Serve->new($stack);
    my ($account) = $stack->sql(q{SELECT id FROM users WHERE email = 'owner@load.test'});
    my @on = ($server, $second);
    my @s = map { stream($_, \%auth) } @on;
    my ($at) = map { $_->{cursor} =~ /-(\d+)$/ } map { frame($_) } @s;
    my $n = 40;
    my @writers = map {
        my $on = $_;
        my $pid = fork // die "fork: $!";
        if (!$pid) { eval { folder($on, "Order $$ $_", %auth) for 1 .. $n; 1 } or print STDERR $@; POSIX::_exit($@ ? 1 : 0) }
        $pid;
    } @on, @on;
    my @got = map { my $s = $_; [ map { (frame($s) // { cursor => '-' })->{cursor} =~ /-(\d*)$/ } 1 .. 4 * $n ] } @s;
    for (@writers) { waitpid $_, 0; is $?, 0, 'a writer' }
    is_deeply $got[$_], [ $at + 1 .. $at + 4 * $n ], "stream $_: each number once, in order" for 0, 1;

    # One that was committed and whose message never came: told with the next.
    my $lost = $stack->sql("SELECT id FROM drive_folder_create('$account', '$account', NULL, 'Not published')");
    my $id = folder($second, 'Published', %auth);
    for my $s (@s) {
        is frame($s)->{data}{id}, $lost, 'what no message told comes first';
        is frame($s)->{data}{id}, $id, 'then what one did';
        is frame($s, 0.3), undef, 'and nothing twice';
    }
    cmp_ok $server->metric('drive_event_gaps_total'), '>=', 1, 'counted';
};

subtest 'a client that does not read' => sub {
    my $s = $server->connect;
    setsockopt $s, Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 4096;
    print {$s} head('GET /api/files/events', %auth);
    $s->flush;
    ok wait_until(sub { $server->metric('drive_streams') }), 'it has a stream';
    my $streams = $server->metric('drive_streams');
    my ($account) = $stack->sql(q{SELECT id FROM users WHERE email = 'owner@load.test'});
    my $redis = redis();
    my $pad = 'x' x 8000;
    my $sent = 0;
    my $from = numbers($account, 4000);
    while ($sent++ < 4000) {
        redis_do($redis, 'PUBLISH', "drive:events:$account", $from + $sent . " data: $pad\n\n");
        last if $sent % 50 == 0 && $server->metric('drive_streams') < $streams;
    }
    cmp_ok $sent, '<', 4000, "dropped after about $sent frames of 8 kB";
    cmp_ok resident_kib($server->pid), '<', 100_000, 'the server did not keep them' if !sanitized();
    cmp_ok $server->metric('drive_slow_streams_dropped_total'), '>=', 1, 'and counts such streams';
};

subtest 'what a stream costs' => sub {
    my $n = $ENV{STREAMS} // 2000;
    my $big = Serve->new($stack, '--stream-limit', 0, '--keepalive', '30s');
    my ($account) = $stack->sql(q{SELECT id FROM users WHERE email = 'owner@load.test'});
    my ($listen) = stream($big, \%auth);
    frame($listen);
    my $redis = redis();
    my $push = sub {
        my $cpu = cpu_ms($big->pid);
        my $from = numbers($account, 4000);
        for my $i (1 .. 4000) { redis_do($redis, 'PUBLISH', "drive:events:$account", $from + $i . " id: x-$i\ndata: {\"type\":\"file.updated\"}\n\n") }
        frame($listen) for 1 .. 4000;
        return (cpu_ms($big->pid) - $cpu) / 4;
    };
    $push->();
    my $least = sub { my ($a, $b) = ($_[0], $push->()); return defined $a && $a < $b ? $a : $b }; # neighbours make it dearer, never cheaper
    my $few;
    $few = $least->($few) for 1 .. 3;
    $big->call('POST', '/api/user/signup-toggle', { enabled => JSON::PP::true }, %auth);
    my %other = $big->auth($big->token('owner-2@load.test'));
    my (@idle, @each); # a quarter at a time: what else the server takes meanwhile, as connections to Postgres, it takes once
    for my $quarter (1 .. 4) {
        my $rss = resident_kib($big->pid);
        push @idle, stream($big, \%other) for 1 .. $n / 4;
        ok wait_until(sub { $big->metric('drive_streams') == $quarter * $n / 4 + 1 }), "$quarter/4 of $n idle streams";
        push @each, (resident_kib($big->pid) - $rss) / ($n / 4);
    }
    my $each = (sort { $a <=> $b } @each)[1];
    my $many;
    for (1 .. 20) { $many = $least->($many); last if $_ >= 3 && $many < 2 * $few + 20 }
    note sprintf '%.2f KiB a stream; %.1f us a push beside none, %.1f us beside %d', $each, $few, $many, $n;
    cmp_ok $each, '<', 1.5, 'about a KiB each at most' if !sanitized();
    cmp_ok $many, '<', 2 * $few + 20, 'a push costs the same';
};

subtest 'Redis goes away and comes back' => sub {
    my $s = stream($server, \%auth);
    frame($s);
    is $stack->stack('stop', 'redis')->{status}, 0, 'Redis is down';
    is $server->call('GET', '/api/files/stats', undef, %auth)->{status}, 200, 'requests are answered';
    folder($server, 'Unheard', %auth);
    is $stack->stack('start', 'redis')->{status}, 0, 'Redis is back';
    is ((frame($s) // {})->{type}, 'resync', 'the stream stayed and is told to list again');
    ok wait_until(sub { $server->metric('drive_redis_up') }), 'publishing works again';
    my $id = folder($server, 'Heard', %auth);
    my $f;
    do { $f = frame($s) } while ($f && $f->{type} eq 'resync');
    is $f->{data}{name}, 'Unheard', 'what was published meanwhile is made up for';
    is frame($s)->{data}{id}, $id, 'events come again';
};

# Takes change numbers of an account for events that a test makes up; returns the one before them.
sub numbers {
    my ($account, $n) = @_;
    return $stack->sql("UPDATE users SET change_seq = change_seq + $n WHERE id = '$account' RETURNING change_seq - $n");
}

# Redis by hand: one command, its answer dropped.
sub redis {
    my ($host, $port) = $stack->env->{REDIS_URL} =~ m{redis://(?:[^@]*@)?([^:/]+):(\d+)} or die;
    return IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port) // die "redis: $@";
}

sub redis_do {
    my ($redis, @words) = @_;
    print {$redis} '*' . @words . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @words;
    $redis->flush;
    my $line = <$redis>;
    die "redis: $line" if $line !~ /^:/;
    return;
}

is $server->stop->{status}, 0, 'ends well with streams open';
done_testing;
