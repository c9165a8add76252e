#!/usr/bin/perl
# Small GETs against one local nginx, by our engine, a bare libcurl loop (the floor of what was chosen), wrk, ab and hey in
# turn; `sim http` beside ab, whose report it must match; then the engine with event streams held, and the memory that a
# held stream takes. Every round runs each tool once, so that a slow minute of the machine hits all of them; medians are
# shown, and ratios are medians of the rounds' ratios. Processor time is what the kernel says of the tool's process.
#   BENCH_ROUNDS=5  BENCH_REQUESTS=100000
# Ends with 1 when a goal was not held; with 3 when one was not held and the machine had other work to do.
use strict;
use warnings;
use File::Temp ();
use IO::Socket::INET;
use JSON::PP;
use List::Util qw(max);
use POSIX ();
use Time::HiRes qw(time sleep);

my $engine = shift or die "usage: engine.pl path/to/engine path/to/sim\n";
my $sim = shift;
my $floor = $engine =~ s{[^/]+$}{floor}r;
my $rounds = $ENV{BENCH_ROUNDS} // 5;
my $requests = $ENV{BENCH_REQUESTS} // 100_000;
my $dir = File::Temp->newdir('drivesim-bench-XXXXXX', TMPDIR => 1);
my %children;
my @not_held;
my $spent = 0; # processor seconds of the tools

sub in_path { my ($name) = @_; (grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin')[0] }
sub median { my @v = sort { $a <=> $b } @_; @v ? ($v[$#v / 2] + $v[@v / 2]) / 2 : undef }
sub cell { my ($fmt, $v) = @_; defined $v ? sprintf($fmt, $v) : '-' }

sub stop_child {
    my ($pid) = @_;
    kill 'TERM', $pid if delete $children{$pid};
    waitpid $pid, 0;
}
END { my $status = $?; stop_child($_) for keys %children; $? = $status }
$SIG{$_} = sub { exit 130 } for qw(INT TERM HUP);

# ---- servers ----

sub free_port {
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => 0) or die "no free port: $!\n";
    return $s->sockport;
}

sub wait_for_port {
    my ($port, $pid) = @_;
    for (1 .. 500) {
        return 1 if IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
        die "nginx ended: see its words above\n" if waitpid($pid, POSIX::WNOHANG()) > 0;
        sleep 0.01;
    }
    die "nothing listens on port $port after 5 s\n";
}

sub start_nginx {
    my $nginx = in_path('nginx') or do { print STDERR "nginx is missing: apt-get install nginx-light\n"; exit 3 };
    my $port = free_port();
    mkdir "$dir/www";
    write_file("$dir/www/small.json", '{"data":"' . 'x' x 1013 . '"}');
    my $user = $> == 0 ? 'user root;' : '';
    write_file("$dir/nginx.conf", <<"END");
$user
worker_processes 1;
daemon off;
pid $dir/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
    uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
    keepalive_requests 100000000;
    types { application/json json; }
    server { listen 127.0.0.1:$port; root $dir/www; }
}
END
    my $pid = fork // die "fork: $!\n";
    exec $nginx, '-e', 'stderr', '-p', "$dir", '-c', "$dir/nginx.conf" if !$pid;
    $children{$pid} = 1;
    wait_for_port($port, $pid);
    return "http://127.0.0.1:$port";
}

# The event server ends with the pipe to its stdin.
sub start_streams {
    pipe(my $in, my $keep) or die "pipe: $!\n";
    my $pid = open(my $out, '-|') // die "fork: $!\n";
    if (!$pid) {
        close $keep;
        open STDIN, '<&', $in or die;
        exec $engine, 'streams' or POSIX::_exit(127);
    }
    close $in;
    chomp(my $port = <$out> // '');
    die "the event server did not start\n" if $port !~ /^\d+$/;
    return { url => "http://127.0.0.1:$port", out => $out, keep => $keep };
}

sub write_file { my ($name, $text) = @_; open my $f, '>', $name or die "$name: $!\n"; print $f $text; close $f }

# ---- one run of one tool: requests a second, CPU seconds of the client for 100,000 requests ----

# Of the children that have ended: getrusage(RUSAGE_CHILDREN), which is finer than times().
sub children_cpu {
    my $nr = { x86_64 => 98, aarch64 => 165 }->{ (POSIX::uname())[4] };
    my $usage = "\0" x 144;
    if ($nr && syscall($nr, -1, $usage) == 0) {
        my ($user, $user_us, $system, $system_us) = unpack 'q4', $usage;
        return $user + $system + ($user_us + $system_us) / 1e6;
    }
    my @t = times;
    return $t[2] + $t[3];
}

sub run {
    my (@command) = @_;
    my $before = children_cpu();
    open my $out, '-|', @command or die "$command[0]: $!\n";
    my $text = do { local $/; <$out> };
    close $out;
    my $status = $?;
    my $cpu = children_cpu() - $before;
    $spent += $cpu;
    return ($text, $cpu, $status);
}

my %tools = (
    engine => sub { my ($url, $c, $n) = @_; ([$engine, 'get', $url, $c, $n], qr/"requests":(\d+)/, qr/"per_second":([\d.]+)/) },
    floor  => sub { my ($url, $c, $n) = @_; ([$floor, "$url/small.json", $c, $n], qr/"requests":(\d+)/, qr/"per_second":([\d.]+)/) },
    wrk    => sub { my ($url, $c) = @_; (['wrk', '-t1', "-c$c", '-d2s', "$url/small.json"], qr/(\d+) requests in/, qr/Requests\/sec:\s+([\d.]+)/) },
    ab     => sub { my ($url, $c, $n) = @_; (['ab', '-q', '-k', '-n', $n, '-c', $c, "$url/small.json"], qr/Complete requests:\s+(\d+)/, qr/Requests per second:\s+([\d.]+)/) },
    hey    => sub { my ($url, $c, $n) = @_; (['hey', '-cpus', 1, '-n', $n, '-c', $c, "$url/small.json"], qr/\[200\]\s+(\d+) responses/, qr/Requests\/sec:\s+([\d.]+)/) },
);

sub measure {
    my ($tool, @args) = @_;
    my ($command, $count, $rate) = $tools{$tool}->(@args);
    $command->[0] = in_path($command->[0]) // return if $tool !~ /^(?:engine|floor)$/;
    my ($text, $cpu, $status) = run(@$command);
    my ($n) = $text =~ $count;
    my ($per_second) = $text =~ $rate;
    die "$tool failed: $text\n" if $status || !$n || !$per_second;
    return { rate => $per_second, cpu => $cpu / $n * 100_000 };
}

sub goal {
    my ($text, $value, $held) = @_;
    printf "  goal: %-58s %8s  %s\n", $text, $value // '', !defined $value ? 'not measured' : $held ? 'held' : 'NOT HELD';
    push @not_held, $text if defined $value && !$held;
}

sub goal_most { my ($text, $v, $most) = @_; goal($text, cell('%.2f', $v) x defined $v || undef, defined $v && $v <= $most) }
sub goal_least { my ($text, $v, $least) = @_; goal($text, cell('%.2f', $v) x defined $v || undef, defined $v && $v >= $least) }

# ---- what else the machine has to do ----

sub machine_busy { # processor seconds of all of it so far
    open my $f, '<', '/proc/stat' or return 0;
    my (undef, @t) = split ' ', scalar <$f>;
    return ($t[0] + $t[1] + $t[2] + $t[5] + $t[6] + ($t[7] // 0)) / 100;
}

sub servers_busy {
    my $sum = 0;
    for my $stat (map { glob "/proc/$_/stat" } map { ($_, children_of($_)) } keys %children) {
        open my $f, '<', $stat or next;
        my @w = split ' ', scalar(<$f>) =~ s/^.*\)//r;
        $sum += ($w[11] + $w[12]) / 100;
    }
    return $sum;
}

sub children_of { my ($pid) = @_; open my $f, '<', "/proc/$pid/task/$pid/children" or return; return split ' ', scalar <$f> // '' }

# Of others, as a share of one processor, since the mark.
sub others_share {
    my ($mark) = @_;
    my @t = times;
    my $ours = $spent + servers_busy() + $t[0] + $t[1];
    return (machine_busy() - $mark->{busy} - ($ours - $mark->{ours})) / (time - $mark->{at});
}
sub mark { my @t = times; return { busy => machine_busy(), ours => $spent + servers_busy() + $t[0] + $t[1], at => time } }

# ---- the tables ----

# ratio("rate", "engine", "wrk"): the median of the rounds' ratios; undef where one of them is missing.
sub ratio {
    my ($seen, $what, $tool, $to) = @_;
    return undef if grep { !$seen->{$_}[0] } $tool, $to;
    return median(map { $seen->{$tool}[$_]{$what} / $seen->{$to}[$_]{$what} } 0 .. $#{ $seen->{$tool} });
}

sub compare_tools {
    my ($url) = @_;
    my %of_wrk = (16 => 0.6, 128 => 0.5);
    my @order = qw(engine floor wrk ab hey);
    for my $tool (grep { !/^(?:engine|floor)$/ && !in_path($_) } @order) {
        print "$tool is missing: apt-get install " . ($tool eq 'ab' ? 'apache2-utils' : $tool) . "\n";
    }
    printf "small GETs, 1 KiB, keep-alive, nginx with 1 worker; medians of %d rounds\n", $rounds;
    printf "%-12s %-10s %12s %8s %8s %16s %8s\n", 'connections', 'client', 'requests/s', 'x floor', 'x wrk', 'CPU s / 100,000', 'x floor';
    for my $c (1, 16, 128) {
        my %seen;
        for (1 .. $rounds) {
            push @{ $seen{$_} }, measure($_, $url, $c, $c == 1 ? $requests / 4 : $requests) for @order;
        }
        for my $tool (@order) {
            my @got = grep { $_ } @{ $seen{$tool} };
            printf "%-12s %-10s %12s %8s %8s %16s %8s\n", $tool eq 'engine' ? $c : '', $tool eq 'engine' ? 'drivesim' : $tool,
                cell('%.0f', median(map { $_->{rate} } @got)), cell('%.2f', ratio(\%seen, 'rate', $tool, 'floor')),
                cell('%.2f', ratio(\%seen, 'rate', $tool, 'wrk')), cell('%.2f', median(map { $_->{cpu} } @got)),
                cell('%.2f', ratio(\%seen, 'cpu', $tool, 'floor'));
        }
        next if !$of_wrk{$c};
        goal_most("at $c connections at most 1.15 x the floor's CPU", ratio(\%seen, 'cpu', 'engine', 'floor'), 1.15);
        goal_most("at $c connections less than 0.7 x hey's CPU", ratio(\%seen, 'cpu', 'engine', 'hey'), 0.699);
        goal_least("at $c connections at least 0.9 x the floor's requests/s", ratio(\%seen, 'rate', 'engine', 'floor'), 0.9);
        goal_least("at $c connections at least $of_wrk{$c} x wrk's requests/s", ratio(\%seen, 'rate', 'engine', 'wrk'), $of_wrk{$c});
    }
}

# `sim http` asks what ab asks: the same counts, the same percentiles, for no more processor time. ab writes its percentiles
# in fractions of a millisecond only as CSV.
sub stress_once {
    my ($url, $keep, $n) = @_;
    my $csv = "$dir/ab.csv";
    my %command = (
        'sim http' => [$sim, 'http', "$url/small.json", '-n', $n, '-c', 16, ('-k') x $keep, '-q', '--json', "$dir/http.json"],
        ab => ['ab', '-q', '-n', $n, '-c', 16, ('-k') x $keep, '-e', $csv, "$url/small.json"],
    );
    my %got;
    for my $tool (sort keys %command) {
        my ($text, $cpu, $status) = run(@{ $command{$tool} });
        die "$tool failed: $text\n" if $status;
        $got{$tool}{cpu} = $cpu / $n * 100_000;
        ($got{$tool}{ $_->[0] }) = $text =~ $_->[1]
            for [complete => qr/Complete requests:\s+(\d+)/], [html => qr/HTML transferred:\s+(\d+)/], [rate => qr/Requests per second:\s+([\d.]+)/];
    }
    my $t = decode_json(do { open my $f, '<', "$dir/http.json" or die; local $/; <$f> })->{http}{total_ms};
    @{ $got{'sim http'} }{qw(p50 p99)} = @$t{qw(p50 p99)};
    open my $f, '<', $csv or die "$csv: $!\n";
    my %at = map { /^(\d+),([\d.]+)/ ? ($1 => $2) : () } <$f>;
    @{ $got{ab} }{qw(p50 p99)} = @at{ 50, 99 };
    return \%got;
}

sub compare_stress {
    my ($url) = @_;
    return goal('sim http beside ab') if !$sim || !in_path('ab');
    for my $keep (1, 0) {
        my $n = $keep ? $requests : $requests / 4;
        my @got = map { stress_once($url, $keep, $n) } 1 .. $rounds;
        printf "\n%d GETs, 16 at a time, %s\n%-12s %12s %12s %12s %10s %10s %18s\n", $n, $keep ? 'keep-alive' : 'a connection each',
            'client', 'complete', 'page bytes', 'requests/s', 'p50 ms', 'p99 ms', 'CPU s / 100,000';
        my %m;
        for my $tool ('sim http', 'ab') {
            for my $key (qw(complete html rate p50 p99 cpu)) {
                $m{$tool}{$key} = median(map { $_->{$tool}{$key} } @got);
            }
            printf "%-12s %12d %12d %12.0f %10.3f %10.3f %18.2f\n", $tool, @{ $m{$tool} }{qw(complete html rate p50 p99 cpu)};
        }
        my $p50 = median(map { $_->{'sim http'}{p50} / $_->{ab}{p50} } @got);
        goal('the same counts as ab', $m{'sim http'}{complete}, $m{'sim http'}{complete} == $m{ab}{complete} && $m{'sim http'}{html} == $m{ab}{html});
        goal("a median within 10 % of ab's", cell('%.2f', $p50), abs($p50 - 1) < 0.1);
        goal_most('no more CPU than ab, but for 5 % of noise', median(map { $_->{'sim http'}{cpu} / $_->{ab}{cpu} } @got), 1.05);
    }
}

sub engine_run {
    my ($text, undef, $status) = run($engine, 'get', @_);
    return $status ? undef : decode_json($text);
}

sub with_streams {
    my ($url, $streams) = @_;
    my $n = 5000;
    my (@ratio, @without, @with);
    for (1 .. $rounds) {
        my $plain = engine_run($url, 16, $requests) or return;
        my $held = engine_run($url, 16, $requests, $streams->{url}, $n) or return goal("with $n streams held");
        push @without, $plain->{per_second};
        push @with, $held->{per_second};
        push @ratio, $held->{per_second} / $plain->{per_second};
    }
    printf "\n16 connections, %d event streams held by the same process\n", $n;
    printf "%-12s %12s\n%-12s %12.0f\n%-12s %12.0f   %.2f x\n", 'streams', 'requests/s', 0, median(@without), $n, median(@with), median(@ratio);
    goal_least("with $n streams held at least 0.9 x without", median(@ratio), 0.9);
}

sub stream_memory {
    my ($url, $streams) = @_;
    print "\nresident memory of a held stream with its peer, and of an idle peer with its connection\n";
    printf "%-12s %12s\n", 'streams', 'KiB each';
    for my $n (1000, 9000) {
        my $r = engine_run($url, 1, 10, $streams->{url}, $n);
        printf "%-12d %12s\n", $n, $r ? sprintf('%.1f', $r->{bytes_per_stream} / 1024) : '-';
    }
    printf "%-12s %12s\n", 'peers', 'KiB each';
    my $r = engine_run($url, 2000, 2000);
    printf "%-12d %12s\n", 2000, $r ? sprintf('%.1f', $r->{bytes_per_peer} / 1024) : '-';
}

my $url = start_nginx();
my $streams = start_streams();
my $mark = mark();
sleep 1;
my $before = others_share($mark);
$mark = mark();
compare_tools($url);
compare_stress($url);
with_streams($url, $streams);
stream_memory($url, $streams);
close $streams->{keep};
my $during = others_share($mark);
my $busy = max($before, $during) > 0.1;
printf "\nother work on this machine: %.0f %% of a processor before, %.0f %% meanwhile%s\n", 100 * max(0, $before), 100 * max(0, $during),
    $busy ? ': it was busy, so believe no figure here' : '';
print @not_held ? 'not held: ' . join('; ', @not_held) . "\n" : "all measured goals held\n";
exit(@not_held ? $busy ? 3 : 1 : 0);
