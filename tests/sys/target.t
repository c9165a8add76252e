# What sim is aimed at: each wrong target gets one clear sentence and the right exit status, and production is refused.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;
use lib 'tests/lib';
use Sim;

my $empty = tempdir(CLEANUP => 1);

# A command is refused with this status by one line on stderr that fits, and within a second or so.
sub refused {
    my ($what, $status, $pattern, $args, %opt) = @_;
    my $r = sim($args, dir => $empty, %opt);
    is $r->{status}, $status, "$what: exit status $status" or diag "$r->{out}$r->{err}";
    like $r->{err}, $pattern, "$what: says so";
    my @lines = grep { /^sim/ } split /\n/, $r->{err};
    is scalar(@lines), 1, "$what: one sentence" or diag $r->{err};
    cmp_ok $r->{seconds}, '<', 25, "$what: before any time limit of a request is over";
    return $r;
}

sub free_port { my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!; return $s->sockport }

# A server that gives every request the same answer, until the test ends.
my @children;
sub always {
    my ($answer) = @_;
    my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die $!;
    my $pid = fork // die $!;
    if (!$pid) {
        $SIG{PIPE} = 'IGNORE';
        while (my $c = $listen->accept) {
            my $head = '';
            while ($head !~ /\r\n\r\n/) { sysread($c, $head, 4096, length $head) or last }
            syswrite $c, $answer;
            close $c;
        }
        POSIX::_exit(0);
    }
    push @children, $pid;
    return 'http://127.0.0.1:' . $listen->sockport;
}
END { local $?; kill 'TERM', $_ for @children; waitpid $_, 0 for @children }
sub answer { my ($status, $body, @headers) = @_; return join "\r\n", "HTTP/1.1 $status", @headers, 'Content-Length: ' . length($body), 'Connection: close', '', $body }

my @seed = qw(seed 1 0.01);
my $dead = free_port();
refused('no TMA_URL', 2, qr/TMA_URL/, \@seed);
refused('an empty TMA_URL', 2, qr/TMA_URL/, \@seed, env => { TMA_URL => '' });
refused('no environment at all', 2, qr/TMA_URL/, [qw(run 1 1 1 1)], wrap => [qw(env -i)]);
refused('nothing listening', 3, qr/nothing is listening at .*127\.0\.0\.1:$dead/, \@seed, env => { TMA_URL => "http://127.0.0.1:$dead" });
refused('a wrong scheme', 2, qr/htp/, \@seed, env => { TMA_URL => 'htp://127.0.0.1:3200' });
refused('no host', 2, qr/TMA_URL/, \@seed, env => { TMA_URL => 'http://' });
refused('a bare IPv6 address', 2, qr/\[/, \@seed, env => { TMA_URL => 'http://::1:3200' });
refused('a host elsewhere', 3, qr/--allow-host/, \@seed, env => { TMA_URL => 'http://latest.example.com' });

# Each part of a server is judged as the server is, by every command that would dial it, before it does: a port of this
# machine that would answer for the name is never called.
{
    my $local = 'http://127.0.0.1:9';
    my %elsewhere = (
        'a URL of several hosts' => { DATABASE_URL => 'postgresql://127.0.0.1,db.example.com/d' },
        'a host as a parameter' => { DATABASE_URL => 'postgresql://127.0.0.1/d?hostaddr=192.0.2.7' },
        'a connection string' => { DATABASE_URL => 'host=db.example.com dbname=d' },
        'PGHOST' => { DATABASE_URL => 'dbname=d', PGHOST => 'db.example.com' },
        'PGHOSTADDR' => { DATABASE_URL => 'postgresql://127.0.0.1/d', PGHOSTADDR => '192.0.2.7' },
        'Redis' => { REDIS_URL => 'redis://kv.example.com:6379/0' },
        'the store' => { TMA_LOAD_S3_ENDPOINT => 'http://s3.example.com', map { ("TMA_LOAD_S3_$_" => 'x') } qw(BUCKET ACCESS_KEY SECRET_KEY) },
    );
    refused("check, $_", 3, qr/(?:DATABASE_URL|REDIS_URL|TMA_LOAD_S3_ENDPOINT): .*--allow-host/, ['check'], env => { TMA_URL => $local, %{ $elsewhere{$_} } }) for sort keys %elsewhere;
    my %production = (DATABASE_URL => 'postgresql://prod-db/d', REDIS_URL => 'redis://production-redis', TMA_LOAD_S3_ENDPOINT => 'http://s3.prod.example');
    refused("clean, production as $_", 3, qr/^sim clean: $_: .*production/, ['clean', '--yes', '--allow-host', 'prod-db,production-redis', '--allow-host', 's3.prod.example'],
        env => { TMA_URL => $local, $_ => $production{$_} }) for sort keys %production;
    refused('serve', 3, qr/db\.example\.com.*--allow-host/, [qw(serve --wait 0s)], env => { DATABASE_URL => 'postgresql://db.example.com/d', REDIS_URL => 'redis://127.0.0.1:9/0', JWT_SECRET => 'x' x 32, FILE_ENCRYPTION_KEY => '0' x 64, BACKEND_URL => $local });
    refused('stop', 3, qr/kv\.example\.com.*--allow-host/, ['stop'], env => { REDIS_URL => 'redis://kv.example.com' });
    refused('mix import', 3, qr/prod-db/, [qw(mix import --database postgresql://prod-db/d --allow-host prod-db)]);
    refused('baseline', 3, qr/postgres: .*db\.example\.com/, [qw(baseline --only postgres)], env => { DATABASE_URL => 'postgresql://db.example.com/d' });
    refused('http', 3, qr/prod\.example/, [qw(http http://prod.example/ --allow-host prod.example)]);
    refused('several that are allowed', 3, qr/nothing is listening/, [qw(check --allow-host a.example.com --allow-host), 'b.example.com, kv.example.com'],
        env => { TMA_URL => $local, REDIS_URL => 'redis://kv.example.com', DATABASE_URL => 'host=a.example.com,b.example.com' });
}
refused('another kind of server', 3, qr/not a drive|no drive|health/i, \@seed, env => { TMA_URL => always(answer('200 OK', '<html>hello</html>', 'Content-Type: text/html')) });
refused('a redirect', 3, qr{https://127\.0\.0\.1:8443}, \@seed,
    env => { TMA_URL => always(answer('301 Moved Permanently', '', 'Location: https://127.0.0.1:8443/health')) });
refused('a server that says it is production', 3, qr/production/i, \@seed,
    env => { TMA_URL => always(answer('200 OK', '{"status":"ok","uptime":1,"environment":"production"}', 'Content-Type: application/json')) });

my $stack = Sim::Stack->new;
refused('an unseeded server', 3, qr/seed/, [qw(run 2 2 6 2)], env => $stack->env);
refused('a prefix that the server has not', 3, qr{/tma}, \@seed, env => { %{ $stack->env }, TMA_URL => $stack->env->{TMA_URL} . '/tma' });
{
    my %no_store = %{ $stack->env };
    delete @no_store{ grep { /^TMA_LOAD_S3_/ } keys %no_store };
    refused('a server without an object store', 3, qr/TMA_LOAD_S3|store/, \@seed, env => \%no_store);
}

my $r = $stack->sim([qw(seed 1 0.01)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
refused('too few logins', 3, qr/sub-users/, [qw(run 100 2 6 2)], env => $stack->env);
refused('more requests than the budgets allow', 3, qr/sub-users/, [qw(run 20 5 20 900)], env => $stack->env);

# What ssh would dial, or go by, is told by its own settings.
for my $row (['ann@prod-db', qr/prod-db says that it is production/], ['ann@elsewhere.example.com', qr/elsewhere\.example\.com is not this machine.*--allow-host/]) {
    refused("--watch ssh:$row->[0]", 3, $row->[1], [qw(run 1 1 1 1 --watch), "ssh:$row->[0]"], env => $stack->env);
}

$stack->stack('kill', 'postgres');
refused('a server whose database is away', 3, qr/is not ready: GET .* gave 503: The database cannot be reached/, [qw(run 2 2 6 2)], env => $stack->env);
$stack->stack('start', 'postgres');

# The same server behind a prefix (a proxy strips it), with and without the trailing slash.
SKIP: {
    my $nginx = -x '/usr/sbin/nginx' ? '/usr/sbin/nginx' : undef;
    skip 'nginx is not installed', 2 unless $nginx;
    my $dir = tempdir(CLEANUP => 1);
    my $port = free_port();
    my $root = $> == 0 ? 'user root;' : '';
    spew("$dir/nginx.conf", "$root daemon off; master_process off; pid $dir/pid; error_log $dir/error.log; events {}\n"
        . "http { access_log off; client_body_temp_path $dir/b; proxy_temp_path $dir/p; fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;\n"
        . " server { listen 127.0.0.1:$port; client_max_body_size 0; location /tma/ { proxy_pass " . $stack->env->{TMA_URL} . "/; proxy_buffering off; proxy_request_buffering off; proxy_http_version 1.1; } } }\n");
    my $pid = fork // die $!;
    if (!$pid) { exec $nginx, '-c', "$dir/nginx.conf", '-e', "$dir/error.log" or POSIX::_exit(1) }
    push @children, $pid;
    wait_until(sub { IO::Socket::INET->new("127.0.0.1:$port") }) or die slurp("$dir/error.log");
    for my $url ("http://127.0.0.1:$port/tma", "http://127.0.0.1:$port/tma/") {
        my $run = $stack->sim([qw(run 4 5 30 5 --json), "$dir/run.json"], env => { TMA_URL => $url });
        is $run->{status}, 0, "a server behind a prefix works: $url" or diag $run->{out}, $run->{err};
    }
}

# A server that holds somebody else's account is no throwaway.
$stack->sql("INSERT INTO users (id, email, password, name) VALUES ('realuser00000001', 'someone\@example.com', 'x', 'Someone')");
for my $command ([qw(run 2 2 6 2)], \@seed) {
    my $refusal = refused("X09: $command->[0] on a server with real users", 3, qr/holds 1 other user, outside \@load\.test/, $command, env => $stack->env);
    like $refusal->{out}, qr/\Atarget: \Q$stack->{env}{TMA_URL}\E \(from the environment\)$/m, 'X09: the target is printed first';
}

done_testing;
