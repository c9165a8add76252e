# The throwaway stack: brought up, broken in every way that a machine breaks things, and taken down without a trace.
use strict;
use warnings;
use Cwd 'abs_path';
use Fcntl qw(O_WRONLY O_CREAT O_EXCL);
use File::Path 'make_path';
use File::Temp 'tempdir';
use IO::Socket::INET;
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use Sim;

my $root = $ENV{DRIVESIM_ROOT} // abs_path('.');
my @parts = qw(postgres redis store server);
my %postmasters;

sub folder { return abs_path(tempdir(CLEANUP => 1)) }
sub stack { my ($dir, @args) = @_; my %opt = ref $args[-1] ? %{ pop @args } : (); return sim(['stack', @args], dir => $dir, %opt) }
sub state_of { my $s = json_file("$_[0]/.sim/stack.json"); $postmasters{ $s->{parts}{postgres}{pid} } = 1; return $s }
sub alive { my ($pid) = @_; return $pid > 0 && -d "/proc/$pid" && slurp("/proc/$pid/stat") !~ /^\d+ \(.*\) [ZX] /s }
sub exports { my ($r) = @_; return { $r->{out} =~ /^export (\w+)=(\S+)$/mg } }

# Processes that work in a folder or name it on their command line, apart from this test.
sub processes_in {
    my ($dir) = @_;
    my @found;
    for my $proc (glob '/proc/[0-9]*') {
        my ($pid) = $proc =~ /(\d+)$/;
        next if $pid == $$ || !alive($pid);
        my $cwd = readlink("$proc/cwd") // '';
        my $line = eval { slurp("$proc/cmdline") } // '';
        push @found, "$pid $cwd $line" if index($cwd, $dir) == 0 || index($line, $dir) >= 0;
    }
    return @found;
}

# Postgres' interlock in the kernel, by the postmaster that made it and is gone: its number may be another's by now.
sub segments { return grep { /^\d+ +\S+ +(\d+) / && $postmasters{$1} && !-e "/proc/$1" } split /\n/, `ipcs -m -p 2>/dev/null` }

sub no_trace {
    my ($dir, $why, %before) = @_;
    is_deeply [processes_in($dir)], [], "$why: no process";
    ok !-e "$dir/.sim", "$why: no folder";
    my @claims = grep { index(eval { slurp($_) } // '', $dir) == 0 } glob("/tmp/drivesim-ports/*");
    is_deeply \@claims, [], "$why: no port claimed";
    return;
}

subtest 'up, twice' => sub {
    my $dir = folder();
    my $r = stack($dir, 'up');
    is $r->{status}, 0, 'up' or BAIL_OUT("no stack: $r->{err}");
    my $env = exports($r);
    is_deeply [sort keys %$env],
      [qw(DATABASE_URL REDIS_URL TMA_LOAD_S3_ACCESS_KEY TMA_LOAD_S3_BUCKET TMA_LOAD_S3_ENDPOINT TMA_LOAD_S3_SECRET_KEY TMA_URL)],
      'stdout holds the exports';
    is $r->{out} =~ s/^export .*\n//mgr, '', 'and nothing else';
    like $r->{err}, qr/^$_ +ready on 127\.0\.0\.1:\d+ after /m, "progress of $_ on stderr" for @parts;
    is psql($env->{DATABASE_URL}, 'SHOW max_connections'), 300, 'Postgres takes 300 connections';
    is psql($env->{DATABASE_URL}, 'SHOW log_lock_waits'), 'on', 'and logs who waits for whom';
    is psql($env->{DATABASE_URL}, 'SHOW fsync'), 'on', 'and is honest about its commits';
    my $state = state_of($dir);
    for my $part (@parts) {
        my $port = sprintf '%04X', $state->{parts}{$part}{port};
        my @listen = grep { /^\s*\d+: [0-9A-F]+:$port \S+ 0A/ } map { split /\n/, slurp($_) } '/proc/net/tcp', '/proc/net/tcp6';
        is_deeply [map { /: ([0-9A-F]+):/ } @listen], ['0100007F'], "$part listens on loopback alone";
    }
    is sprintf('%o', (stat "$dir/.sim/$_")[2] & 07777), '600', "$_ is for its owner alone" for qw(stack.json env);
    unlike join("\n", map { slurp("$dir/.sim/logs/$_.log") } @parts), qr/\Q$env->{TMA_LOAD_S3_SECRET_KEY}\E|\Q$state->{password}\E/,
      'no secret in a log';

    my $again = stack($dir, 'up');
    is $again->{status}, 0, 'up again';
    is $again->{out}, $r->{out}, 'the same exports';
    is $again->{err}, '', 'nothing to say';
    is_deeply state_of($dir), $state, 'nothing was started';

    my $status = stack($dir, 'status');
    is $status->{status}, 0, 'status';
    like $status->{out}, qr/^$_ +up +\d+ +\d+ /m, "status knows $_" for @parts;
    like stack($dir, 'logs', 'postgres')->{out}, qr/database system is ready/, 'logs of a part';
    like stack($dir, 'logs', '--lines', 1)->{out}, qr/^postgres:\n.*\nredis:\n.*\nstore:\n.*\nserver:\n/, 'the last line of each';

    my $down = stack($dir, 'down');
    is $down->{status}, 0, 'down' or diag $down->{err};
    no_trace($dir, 'after down');
    my $once_more = stack($dir, 'down');
    is $once_more->{status}, 0, 'down again is fine';
    like $once_more->{err}, qr/^no stack runs in \Q$dir\E$/m, 'and says that nothing was there';
    ok !-e "$dir/.sim", 'and leaves nothing';
};

subtest 'parts that are killed' => sub {
    my $dir = folder();
    my $r = stack($dir, 'up');
    is $r->{status}, 0, 'up' or diag $r->{err};
    my $env = exports($r);
    psql($env->{DATABASE_URL}, 'CREATE TABLE kept (i int); INSERT INTO kept VALUES (42)');
    my $before = state_of($dir);
    kill 'KILL', map { $before->{parts}{$_}{pid} } @parts;
    ok wait_until(sub { !grep { alive($before->{parts}{$_}{pid}) } @parts }), 'all killed';
    my $status = stack($dir, 'status');
    is $status->{status}, 3, 'status fails';
    like $status->{out}, qr/^postgres +down/m, 'and says what is down';
    like $status->{err}, qr/^sim stack: postgres is down: /m, 'and what to do';
    my $up = stack($dir, 'up');
    is $up->{status}, 0, 'up again' or diag $up->{err};
    is $up->{out}, $r->{out}, 'on the same ports';
    is psql($env->{DATABASE_URL}, 'SELECT i FROM kept'), 42, 'with its data';
    my $after = state_of($dir);

    is stack($dir, 'kill', 'server')->{status}, 0, 'kill server';
    ok !alive($after->{parts}{server}{pid}), 'it is gone';
    ok alive($after->{parts}{postgres}{pid}), 'the others are not';
    my $start = stack($dir, 'start', 'server');
    is $start->{status}, 0, 'start server' or diag $start->{err};
    my $third = state_of($dir);
    is $third->{parts}{server}{port}, $after->{parts}{server}{port}, 'on its port';
    isnt $third->{parts}{server}{pid}, $after->{parts}{server}{pid}, 'anew';
    is stack($dir, 'restart', 'redis')->{status}, 0, 'restart redis';
    is stack($dir, 'stop', 'postgres')->{status}, 0, 'stop postgres';
    like stack($dir, 'logs', 'postgres')->{out}, qr/database system is shut down/, 'in order';

    is stack($dir, 'pause', 'server')->{status}, 0, 'pause server';
    like slurp('/proc/' . state_of($dir)->{parts}{server}{pid} . '/stat'), qr/\) T /, 'it stands still';
    is stack($dir, 'resume', 'server')->{status}, 0, 'resume server';
    unlike slurp('/proc/' . state_of($dir)->{parts}{server}{pid} . '/stat'), qr/\) T /, 'it goes on';
    is stack($dir, 'kill', 'everything')->{status}, 2, 'an unknown part is a usage error';
    is stack($dir, 'kill')->{status}, 2, 'so is none';
    is stack($dir, 'explode')->{status}, 2, 'and an unknown action';
    is stack($dir, 'down')->{status}, 0, 'down';
    no_trace($dir, 'after kills');
};

subtest 'without the server, and with options for it' => sub {
    my $dir = folder();
    my $r = stack($dir, 'up', '--no-server');
    is $r->{status}, 0, 'up --no-server';
    unlike $r->{out}, qr/TMA_URL/, 'no TMA_URL';
    unlike stack($dir, 'status')->{out}, qr/^server/m, 'no server';
    my $bad = stack($dir, 'up', '--server-args=--no-such-option');
    is $bad->{status}, 3, 'a server that does not start';
    like $bad->{err}, qr/^server: the last lines of its log:\n.*--no-such-option/m, 'shows its log';
    like $bad->{err}, qr/^sim stack: server: it ended by itself/m, 'and is named';
    ok alive(state_of($dir)->{parts}{postgres}{pid}), 'what stood before stands';
    my $good = stack($dir, 'up', '--server-args=--stream-limit 3  --request-budget 0');
    is $good->{status}, 0, 'with good options' or diag $good->{err};
    my $line = slurp('/proc/' . state_of($dir)->{parts}{server}{pid} . '/cmdline') =~ tr/\0/ /r;
    like $line, qr/ serve .*--stream-limit 3 --request-budget 0 $/, 'they reach it';
    is stack($dir, 'down')->{status}, 0, 'down';
    no_trace($dir, 'after that');
};

subtest 'two stacks at once' => sub {
    my @dirs = map { folder() } 1, 2;
    my @handles = map { sim_start(['stack', 'up', '--no-server'], dir => $_) } @dirs;
    my @results = map { sim_finish($_) } @handles;
    is $_->{status}, 0, 'up' or diag $_->{err} for @results;
    my %ports;
    $ports{$_}++ for map { my $s = state_of($_); map { $s->{parts}{$_}{port} } qw(postgres redis store) } @dirs;
    is_deeply [grep { $_ != 1 } values %ports], [], 'no port is shared';
    is stack($dirs[0], 'down')->{status}, 0, 'one goes';
    is stack($dirs[1], 'status')->{status}, 0, 'the other stays';
    is stack($dirs[1], 'down')->{status}, 0, 'until it goes too';
    no_trace($_, 'afterwards') for @dirs;
};

# A program of that name first in PATH.
sub fake {
    my ($name, $script) = @_;
    my $bin = folder();
    spew("$bin/$name", "#!/bin/sh\n$script");
    chmod 0755, "$bin/$name";
    return (env => { PATH => "$bin:$ENV{PATH}" });
}

subtest 'a part that does not come up' => sub {
    my $dir = folder();
    my $r = stack($dir, 'up', { fake('redis-server', "echo 'no luck today'; exit 7\n") });
    is $r->{status}, 3, 'up fails';
    is $r->{out}, '', 'no exports';
    like $r->{err}, qr/^redis: the last lines of its log:\n  no luck today\n/m, 'shows the log';
    like $r->{err}, qr/^sim stack: redis: it ended by itself$/m, 'names the part';
    no_trace($dir, 'after a failed up');

    my ($key, $opt) = fake('npm', "echo 'npm ERR! no network' >&2; exit 1\n");
    $r = stack($dir, 'up', { env => { %$opt, XDG_CACHE_HOME => folder() } });
    is $r->{status}, 3, 'no package';
    like $r->{err}, qr/^  npm ERR! no network$/m, 'shows what npm said';
    like $r->{err}, qr/^sim stack: store: npm failed with status 1$/m, 'names the part';
    no_trace($dir, 'after a failed installation');

    ($key, $opt) = fake('npm', "echo \"\$@\" >&2; exit 1\n");
    my $cache = folder();
    $r = stack($dir, 'up', { env => { %$opt, XDG_CACHE_HOME => $cache, HOME => '/nonexistent' } });
    like $r->{err}, qr{--cache=\Q$cache\E/drivesim/npm$}m, 'without a home to write to npm keeps its downloads beside the package';
};

subtest 'interrupted' => sub {
    my $dir = folder();
    my $h = sim_start(['stack', 'up'], dir => $dir, fake('node', "exec sleep 1000\n"));
    ok sim_await($h, sub { $_[0]{err} =~ /^redis +ready/m }), 'redis is up, the store hangs';
    kill 'INT', $h->{pid};
    my $r = sim_finish($h);
    is $r->{status}, 130, 'Ctrl-C: status 130';
    like $r->{err}, qr/interrupted/, 'says so';
    no_trace($dir, 'after Ctrl-C');
};

subtest 'killed in the middle' => sub {
    my $dir = folder();
    my $h = sim_start(['stack', 'up'], dir => $dir);
    ok sim_await($h, sub { $_[0]{err} =~ /ready/ }), 'half up';
    kill 'KILL', $h->{pid};
    sim_finish($h);
    ok -e "$dir/.sim/stack.json", 'it left things behind';
    my $r = stack($dir, 'down');
    is $r->{status}, 0, 'down' or diag $r->{err};
    no_trace($dir, 'after SIGKILL and down');

    $h = sim_start(['stack', 'up', '--no-server'], dir => $dir);
    ok sim_await($h, sub { $_[0]{err} =~ /ready/ }), 'half up again';
    kill 'KILL', $h->{pid};
    sim_finish($h);
    is stack($dir, 'up')->{status}, 0, 'another up finishes it';
    is stack($dir, 'down')->{status}, 0, 'down';
    no_trace($dir, 'after that');
};

subtest 'a state that lies' => sub {
    my $dir = folder();
    is stack($dir, 'up')->{status}, 0, 'up';
    my $innocent = fork // die $!;
    if (!$innocent) { exec 'sleep', '1000' or POSIX::_exit(1) }
    my $state = state_of($dir);
    kill 'KILL', $state->{parts}{redis}{pid};
    $state->{parts}{redis}{pid} = $innocent; # its number has been given to somebody else
    spew("$dir/.sim/stack.json", encode_json($state));
    is stack($dir, 'status')->{status}, 3, 'a recycled pid is not taken for the part';
    is stack($dir, 'down')->{status}, 0, 'down';
    ok alive($innocent), 'nor killed';
    kill 'KILL', $innocent;
    waitpid $innocent, 0;
    no_trace($dir, 'afterwards');

    is stack($dir, 'up', '--no-server')->{status}, 0, 'up';
    spew("$dir/.sim/stack.json", '{"kind": "nat');
    is stack($dir, 'down')->{status}, 0, 'down with a damaged state';
    no_trace($dir, 'after the damage');
};

subtest 'what is not ours stays' => sub {
    my $dir = folder();
    make_path("$dir/.sim");
    spew("$dir/.sim/mine", 'text');
    is stack($dir, 'up', '--no-server')->{status}, 0, 'up in a used folder';
    is stack($dir, 'down')->{status}, 0, 'down';
    is_deeply [map { s{.*/}{}r } glob "$dir/.sim/*"], ['mine'], 'the file stays, alone';
    is_deeply [processes_in($dir)], [], 'no process';
    is stack("$dir", 'status')->{status}, 3, 'status without a stack';
    is stack('/', 'up', '--dir', "$dir/none")->{status}, 3, 'a folder that is not there';
};

# What bears no mark of ours, and where a link leads, is nobody's business of ours, before a stack and under one.
subtest 'links and the folders of others' => sub {
    my $dir = folder();
    make_path("$dir/.sim", "$dir/victim");
    spew("$dir/victim/precious", 'text');
    my $safe = sub { ok -e "$dir/victim/precious", "$_[0]: what it leads to is untouched" };
    for my $name (@parts, qw(logs sessions store.next fixtures)) {
        symlink '../victim', "$dir/.sim/$name" or die $!;
        my $r = stack($dir, 'down');
        $safe->("down, $name");
        like $r->{err}, qr{\Q$dir/.sim/$name\E is a link}, "$name: said" if $name ne 'fixtures';
        is $r->{status}, 3, "$name: status 3" if grep { $_ eq $name } @parts;
        if ($name !~ /server|next|fixtures/) { # what `up --no-server` works in
            $r = stack($dir, 'up', '--no-server');
            ok $r->{status} == 3 && $r->{err} =~ /is a link/, "$name: no stack is built on it";
            $safe->("up, $name");
        }
        unlink "$dir/.sim/$name";
        stack($dir, 'down');
        make_path("$dir/.sim");
    }
    rmdir "$dir/.sim" or die "$!: @{[glob qq($dir/.sim/*)]}";
    symlink 'victim', "$dir/.sim" or die $!;
    for my $verb (qw(up down fetch)) {
        my $r = stack($dir, $verb);
        is $r->{status}, 3, ".sim is a link: $verb";
        like $r->{err}, qr/\.sim is a link/, 'said';
    }
    is_deeply [map { s{.*/}{}r } glob "$dir/victim/* $dir/victim/.??*"], ['precious'], 'nothing in it, nothing gone';
    unlink "$dir/.sim";

    is stack($dir, 'up', '--no-server')->{status}, 0, 'up';
    for my $at ('store', 'redis', 'logs') {
        symlink "$dir/victim", "$dir/.sim/$at/leak" or die $!;
    }
    unlink "$dir/.sim/env";
    symlink "$dir/victim/precious", "$dir/.sim/env.next" or die $!;
    is stack($dir, 'up', '--no-server')->{status}, 0, 'up again';
    is slurp("$dir/victim/precious"), 'text', 'not written through a link';
    is stack($dir, 'down')->{status}, 0, 'down';
    $safe->('down with links inside');
    no_trace($dir, 'links within');

    make_path("$dir/.sim/redis");
    spew("$dir/.sim/redis/theirs", 'text');
    my $r = stack($dir, 'down');
    is $r->{status}, 3, 'a folder of others where a part would be';
    like $r->{err}, qr/redis was not made by this drivesim/, 'said';
    ok -e "$dir/.sim/redis/theirs", 'it stays';
};

# Root in a container may end processes of others and yet not look at them.
subtest 'as root with few rights' => sub {
    plan skip_all => 'needs root' if $> != 0;
    plan skip_all => 'setpriv is not installed' if system('command -v setpriv >/dev/null 2>&1');
    my $dir = folder();
    my %as = (wrap => ['setpriv', '--bounding-set', '-sys_ptrace,-ipc_owner,-sys_admin,-sys_resource']);
    my $r = stack($dir, 'up', '--no-server', {%as});
    is $r->{status}, 0, 'up' or diag $r->{err};
    my $state = state_of($dir);
    my $url = exports($r)->{DATABASE_URL};
    open my $busy, '-|', 'psql', $url, '-c', "SELECT pg_sleep(1000)" or die $!; # a child that the postmaster leaves behind
    ok wait_until(sub { psql($url, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(1000)' AND pid <> pg_backend_pid()") }), 'a session is busy';
    kill 'KILL', $state->{parts}{postgres}{pid};
    is stack($dir, 'start', 'postgres', {%as})->{status}, 0, 'start after a crash';
    is psql($url, 'SELECT 1'), 1, 'it serves';
    state_of($dir);
    is stack($dir, 'kill', 'postgres', {%as})->{status}, 0, 'kill';
    is stack($dir, 'down', {%as})->{status}, 0, 'down';
    close $busy;
    no_trace($dir, 'afterwards');
};

is_deeply [segments()], [], 'no shared memory was left in the kernel';

subtest 'as a user without rights' => sub {
    plan skip_all => 'needs root to become somebody else' if $> != 0;
    plan skip_all => 'runuser is not installed' if system('command -v runuser >/dev/null 2>&1');
    my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
    plan skip_all => 'there is no account nobody' if !defined $uid;
    my $dir = folder();
    chmod 0755, $dir;
    make_path("$dir/home", "$dir/work", "$dir/cache");
    my $cache = ($ENV{XDG_CACHE_HOME} // "$ENV{HOME}/.cache") . '/drivesim';
    system('cp', '-r', $cache, "$dir/cache/") if -d $cache; # spares an installation
    system('cp', sim_path(), "$dir/sim");                   # the build folder may be closed to others
    system('chown', '-R', "$uid:$gid", $dir);
    my %as = (program => "$dir/sim", wrap => ['runuser', '-u', 'nobody', '--'], env => { HOME => "$dir/home", XDG_CACHE_HOME => "$dir/cache" });
    my $ours = folder(); # which that user may not look into
    spew("$ours/stack.json", '{}');
    mkdir '/tmp/drivesim-ports' and chmod 01777, '/tmp/drivesim-ports';
    my @claimed = grep { my $fh; sysopen($fh, "/tmp/drivesim-ports/$_", O_WRONLY | O_CREAT | O_EXCL, 0644) && syswrite $fh, $ours } 3200 .. 3240;
    my $r = stack("$dir/work", 'up', {%as});
    is $r->{status}, 0, 'up' or diag $r->{err};
    my $state = state_of("$dir/work");
    is scalar(grep { $_ == $state->{parts}{server}{port} } @claimed), 0, "port $state->{parts}{server}{port} is none of those that others claim";
    unlink map { "/tmp/drivesim-ports/$_" } @claimed;
    for my $part (@parts) {
        is((stat "/proc/$state->{parts}{$part}{pid}")[4], $uid, "$part runs as that user");
        is readlink("/proc/$state->{parts}{$part}{pid}/cwd") =~ s{/data$}{}r, "$dir/work/.sim/$part", "$part works in the stack's folder";
    }
    is stack("$dir/work", 'status', {%as})->{status}, 0, 'status';
    is stack("$dir/work", 'down', {%as})->{status}, 0, 'down';
    no_trace("$dir/work", 'afterwards');
};

done_testing;
