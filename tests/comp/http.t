#!/usr/bin/env perl
# sim http against scripted servers: every request is counted once and by how it ended, times are where they belong, and
# a refusal that comes before the upload is through is an answer.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP;
use POSIX qw(mkfifo);
use Sim;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

my $dir = tempdir(CLEANUP => 1);
my $log = "$dir/log";

# ---- a server whose answer is chosen by the path: one process a connection ----

sub answer { my ($status, $body, @more) = @_; return "HTTP/1.1 $status\r\n" . join('', map { "$_\r\n" } @more) . 'Content-Length: ' . length($body) . "\r\n\r\n$body" }
my %pages = (
    ok => sub { answer('200 OK', 'x' x 500, 'Server: scripted/1') },
    still => sub { answer('200 OK', 'x', 'Connection: keep-alive') },
    empty => sub { "HTTP/1.1 204 No Content\r\n\r\n" },
    missing => sub { answer('404 Not Found', 'no') },
    chunked => sub { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" },
    late => sub { sleep 0.3; answer('200 OK', 'late') },
    interim => sub { "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" . answer('200 OK', 'after it') },
    garbage => sub { "SSH-2.0-nothing\r\n" },
    cut => sub { ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", 'close') },
    once => sub { (answer('200 OK', 'once'), 'close') },           # says nothing of it: the next request finds it closed
    hang => sub { ('', 'hang') },
    early => sub { (answer('413 Too Large', '{"message":"too large"}'), 'reset') },
);

sub serve_one {
    my ($c) = @_;
    my $in = '';
    while (1) {
        while ($in !~ /\r\n\r\n/) { sysread($c, $in, 65536, length $in) or return }
        $in =~ s/^(.*?)\r\n\r\n//s;
        my $head = $1;
        my ($method, $page) = $head =~ m{^(\w+) /(\w*)};
        my ($n) = $head =~ /^Content-Length: (\d+)/mi;
        open my $fh, '>>', $log or die $!;
        syswrite $fh, JSON::PP->new->canonical->encode({ at => time, head => $head }) . "\n";
        if ($page ne 'early') { while (length $in < ($n // 0)) { sysread($c, $in, 65536, length $in) or return } }
        my ($text, $then) = $page eq 'store' ? answer('201 Created', substr($in, 0, $n)) : $pages{$page}->();
        $text =~ s/\r\n\r\n.*/\r\n\r\n/s if $method eq 'HEAD';
        $text =~ s/\r\n/\r\nConnection: close\r\n/ if $head =~ /^Connection: close/mi && $text =~ /^HTTP/;
        syswrite $c, $text;
        sleep 600 if ($then // '') eq 'hang';
        if (($then // '') eq 'reset') { sleep 0.02; setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0); return }
        return if $then || $head =~ /^Connection: close/mi;
        $in = substr $in, $n // 0;
    }
}

my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 512) or die $!;
my $url = 'http://127.0.0.1:' . $listen->sockport;
my $server = fork // die $!;
if (!$server) {
    $SIG{CHLD} = 'IGNORE';
    $SIG{PIPE} = 'IGNORE';
    setpgrp;
    while (my $c = $listen->accept) {
        next if fork;
        close $listen;
        serve_one($c);
        close $c;
        POSIX::_exit(0);
    }
    POSIX::_exit(0);
}
END { local $?; kill 'KILL', -$server, $server if $server; }

sub http {
    my ($path, @args) = @_;
    unlink $log;
    my $r = Sim::sim(['http', "$url$path", @args, '--json', "$dir/out.json"]);
    $r->{json} = Sim::json_file("$dir/out.json");
    $r->{http} = $r->{json}{http};
    $r->{log} = -e $log ? [map { decode_json($_) } split /\n/, Sim::slurp($log)] : [];
    return $r;
}

subtest 'a page, many times' => sub {
    my $r = http('/ok', qw(-n 300 -c 10 -k));
    is $r->{status}, 0, 'status 0' or diag $r->{out}, $r->{err};
    is $r->{http}{complete}, 300, 'all complete';
    is scalar @{ $r->{log} }, 300, 'the server saw as many';
    is $r->{http}{keep_alive}, 300, 'connections were kept';
    is $r->{http}{body_bytes}, 150_000, 'bytes of the pages';
    is $r->{http}{server}, 'scripted/1', 'the server is named';
    like $r->{out}, qr/^Complete requests: +300$/m, 'the classic report';
    like $r->{out}, qr/^ 100% +[\d.]+ \(longest request\)$/m, 'ends with the slowest';
    cmp_ok $r->{http}{total_ms}{p100}, '>=', $r->{http}{total_ms}{p99}, 'percentiles rise';
    is $r->{json}{operations}{request}{ok}, 300, 'and stand among the operations';
    $r = http('/ok', qw(-n 40 -c 4));
    is $r->{http}{keep_alive}, 0, 'without -k each request has its own connection';
    is http('/still', qw(-n 4))->{http}{keep_alive}, 0, 'even where the server would not mind another';
    is scalar(grep { $_->{head} =~ /^Connection: close/mi } @{ $r->{log} }), 40, 'and says so';
    cmp_ok $r->{http}{connect_ms}{min}, '>', 0, 'connecting takes time';
};

subtest 'answers of every shape' => sub {
    for my $case (['/empty', 0], ['/chunked', 11], ['/interim', 8], ['/ok', 0, '--method', 'HEAD']) {
        my ($path, $bytes, @more) = @$case;
        my $r = http($path, qw(-n 6 -c 2 -k), @more);
        is $r->{status}, 0, "$path @more" or diag $r->{out};
        is $r->{http}{body_bytes}, 6 * $bytes, "$path @more: bytes";
    }
};

subtest 'each end has its name' => sub {
    for my $case (['/missing', undef, qr/404 from the server/], ['/garbage', 'protocol', qr/not HTTP/], ['/cut', 'receive', qr/ended before the answer was whole/],
        ['/hang', 'timeout', qr/no answer in time/, '--timeout', '300ms'],
        ) {
        my ($path, $key, $reason, @more) = @$case;
        my $r = http($path, qw(-n 4 -c 2), @more);
        is $r->{status}, 1, "$path: status 1" or diag $r->{out};
        is $r->{http}{failures}{$key}, 4, "$path: $key" if $key;
        is $r->{http}{non_2xx}, 4, "$path: an answer that is not 2xx" unless $key;
        like $r->{out}, $reason, "$path: the reason";
        is $r->{http}{complete} + $r->{http}{failed}, 4, "$path: each counted once";
    }
    my $free = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1)->sockport;
    my $r = Sim::sim(['http', "http://127.0.0.1:$free/", qw(-n 3)]);
    is $r->{status}, 1, 'nothing listens';
    like $r->{out}, qr/3  request: cannot connect: Connection refused/, 'said so';
    like $r->{out}, qr/^request +0 +3 +- +- +- +-$/m, 'no percentiles of nothing';
    unlike $r->{out}, qr/^Time per request:/m, 'and no time of one';
};

subtest 'an idle connection that the server has closed' => sub {    # U10
    my $r = http('/once', qw(-n 30 -c 3 -k));
    is $r->{status}, 0, 'is no failure' or diag $r->{out};
    is $r->{http}{complete}, 30, 'all answered';
    is $r->{http}{reconnects}, 27, 'reconnects are counted';
    $r = http('/once', qw(-n 30 -c 3 -k --method POST));
    is $r->{http}{reconnects}, 0, 'a POST is not sent twice';
    is scalar @{ $r->{log} }, $r->{http}{complete}, 'by nobody';
    cmp_ok $r->{http}{failed}, '>', 0, 'and its loss is told';
};

subtest 'uploads' => sub {
    Sim::spew("$dir/body", join '', map { chr rand 256 } 1 .. 100_000);
    my $r = http('/store/x?y=1', qw(-n 5 -c 2 -k -T), "$dir/body");
    is $r->{status}, 0, 'PUT' or diag $r->{out};
    is $r->{http}{body_bytes}, 500_000, 'the server got each byte';
    like $r->{log}[0]{head}, qr{^PUT /store/x\?y=1 HTTP/1\.1}, 'path and query as given';
    Sim::spew("$dir/body", 'x' x 8_000_000);
    $r = http('/early', qw(-n 30 -c 3 -k -T), "$dir/body");    # U01
    is $r->{http}{complete}, 30, 'a refusal in mid-upload is an answer, 30 of 30' or diag $r->{out};
    is $r->{json}{operations}{request}{outcomes}{refused}, 30, 'with its status';
};

subtest 'a rate' => sub {
    my $r = http('/late', qw(-r 1000 -n 12 -c 2 -k)); # the last one has waited for five others at least, all of them due at once
    cmp_ok $r->{http}{from_due_ms}{p100}, '>', 2 * $r->{http}{total_ms}{p50}, 'what had to wait shows in the time from due';
    like $r->{out}, qr/^From due:/m, 'as a row';
    $r = http('/ok', qw(-r 25 -n 50 -c 5 -k));
    cmp_ok $r->{http}{seconds}, '>=', 1.96, 'the last is due 49/25 s after the first';
    my @at = map { $_->{at} } @{ $r->{log} };
    cmp_ok $at[-1] - $at[0], '>', 0.5, 'requests are spread over the time';
    is $r->{http}{complete}, 50, 'and all sent';
};

subtest 'time runs out, or somebody does' => sub {
    my $from = time;
    my $r = http('/hang', qw(-t 0.5 -c 2 --timeout 10min));
    cmp_ok time - $from, '<', 300, 'a hanging server ends with the run';
    is $r->{http}{failures}{unfinished}, 2, 'what ran is unfinished';
    is $r->{status}, 1, 'and not healthy';
    unlink $log;
    my $p = Sim::sim_start(['http', "$url/late", qw(-n 1000 -c 2 -k)]);
    ok Sim::wait_until(sub { -s $log && 3 <= (() = Sim::slurp($log) =~ /\n/g) }), 'a third request of two connections: one is done';
    kill 'INT', $p->{pid};
    my $end = Sim::sim_finish($p);
    is $end->{status}, 130, 'Ctrl-C';
    like $end->{out}, qr/interrupted after/, 'with a report';
    like $end->{out}, qr/^Complete requests: +[1-9]/m, 'of what was done';
};

subtest 'TLS' => sub {
    my $port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1)->sockport;
    system "cd $dir && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 >tls.log 2>&1";
    my $pid = fork // die $!;
    if (!$pid) {
        open STDOUT, '>', "$dir/tls.log";
        open STDERR, '>&', \*STDOUT;
        exec qw(openssl s_server -www -quiet -accept), "127.0.0.1:$port", '-key', "$dir/key.pem", '-cert', "$dir/cert.pem" or POSIX::_exit(9);
    }
    Sim::wait_until(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) });
    my @try = ('http', "https://127.0.0.1:$port/", qw(-n 6 -c 2));
    my $r = Sim::sim([@try]);
    is $r->{status}, 1, 'an unknown certificate';
    like $r->{out}, qr/not trusted.*--cacert/, 'says what to do';
    is Sim::sim([@try, '--insecure'])->{status}, 0, '--insecure';
    is Sim::sim([@try, '--cacert', "$dir/cert.pem"])->{status}, 0, '--cacert';
    $r = Sim::sim(['http', "https://localhost.localdomain:$port/", qw(-n 1 --cacert), "$dir/cert.pem"]);
    isnt $r->{status}, 0, 'another name';
    kill 'KILL', $pid;
    waitpid $pid, 0;
};

subtest 'arguments' => sub {
    my $fifo = "$dir/fifo";
    mkfifo($fifo, 0600) or die "$fifo: $!";
    for my $case (
        [2, qr/needs http/, 'ftp://127.0.0.1/'], [2, qr/names no host/, 'http:///x'], [2, qr/blank/, "$url/a b"], [2, qr/--header/, $url, '-H', 'nonsense'],
        [2, qr/-c takes a whole number/, $url, '-c', '0'], [2, qr/cannot read/, $url, '-T', "$dir/none"],
        [2, qr/a folder, not a file/, $url, '-T', $dir], [2, qr/nothing comes out of this pipe/, $url, '-T', $fifo], [2, qr/a pipe, not a file/, $url, '--cacert', $fifo],
        [2, qr/nobody reads from this pipe/, $url, '--json', $fifo], [3, qr/not this machine.*--allow-host/, 'http://192.0.2.1/'],
        [3, qr/production/, 'http://prod.example.com/'],
        ) {
        my ($status, $sentence, @args) = @$case;
        my $r = Sim::sim(['http', @args]);
        is $r->{status}, $status, "@args";
        like $r->{err}, $sentence, '… says why';
    }
    my $r = http('/ok', '-n', 1, '-H', 'X-Own: 1', '-H', 'User-Agent: mine');
    like $r->{log}[0]{head}, qr/^X-Own: 1\r?$/m, 'a header of one\'s own';
    is scalar(() = $r->{log}[0]{head} =~ /^User-Agent:/mg), 1, 'replaces ours';
    (my $with = $url) =~ s{//}{//me:secret-word\@};
    $r = Sim::sim(['http', "$with/ok"]);
    unlike $r->{out} . $r->{err}, qr/secret-word/, 'a password is not shown';
};

done_testing;
