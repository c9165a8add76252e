# The generator runs short of something of this machine's, in earnest: the server is not blamed, the checks stand, and a
# threshold on a time is not judged. What takes privileges that are not there is skipped, by name.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;
use Socket;

# A network of its own, where that may be had: its ports can be few without harm to anybody.
my $own_network = $ENV{LIMITED_OWN_NETWORK} // 0;
if (!defined $ENV{LIMITED_OWN_NETWORK}) {
    my @unshare = $> == 0 ? qw(unshare -n) : qw(unshare -rn);
    $ENV{LIMITED_OWN_NETWORK} = system("@unshare true 2>/dev/null") == 0 ? 1 : 0;
    exec @unshare, $^X, '-Itests/lib', $0 if $ENV{LIMITED_OWN_NETWORK};
}
if ($own_network) { # SIOCSIFFLAGS: IFF_UP | IFF_LOOPBACK | IFF_RUNNING
    socket(my $s, AF_INET, SOCK_DGRAM, 0) or die "socket: $!";
    my $up = pack 'a16 s x22', 'lo', 0x49;
    ioctl($s, 0x8914, $up) or die "lo: $!";
}
my $dir = run_folder();
my @judged = ('--fail-on', 'download.p95<1h', '--fail-on', 'window.requests_per_s>=0', '--fail-on', 'failed==0');

# What every cause comes to. $more: further text of the sentence.
sub limited_by {
    my ($r, $cause, $text) = @_;
    my ($g, $v) = ($r->{json}{generator}, $r->{json}{verdict});
    ok $g->{limited}, "$cause: the generator was the limit" or diag $r->{out}, $r->{err};
    is $g->{cause}, $cause, 'by that cause';
    like $g->{why}, $text, 'with its figure and what to do';
    is $r->{json}{outages}{count}, 0, 'no outage of the server';
    is $v->{failed}, 0, 'nothing failed' or diag $r->{out};
    is $v->{violated}, 0, 'no check is violated' or diag $r->{out};
    is_deeply [ map { $_->{status} } @{ $r->{json}{thresholds} } ], [qw(not_judged not_judged met)],
        'times and rates are not judged, failures are';
    is $r->{status}, 3, 'which is the status';
    like $r->{out}, qr/^summary of run, .*: the generator was the limit/m, 'the head says so';
    like $r->{out}, qr/^not judged: 2 thresholds .*, and the generator was the limit: no figures; \Q$g->{why}\E$/m, 'the last line too';
    my ($lag) = $r->{out} =~ /^generator .* loop lag p99 (\S+)/m;
    is $lag eq '-', !defined $g->{lag_p99_ms}, 'one lag figure';
    my $again = sim(['report', $r->{json_name}, qw(--fail-on download.p95<1h --fail-on failed==0), '--junit', "$r->{json_name}.xml"], dir => $dir);
    is $again->{status}, 3, 'a report of it judges as it did';
    like slurp("$r->{json_name}.xml"), qr/name="was not the limit"[^>]*>\s*<skipped message="the generator was the limit: no figures: /, 'JUnit';
    return;
}

sub put { my ($file, $text) = @_; open my $f, '>', $file or return 0; my $n = syswrite $f, $text; return close $f && $n }
sub drive { return FakeDrive->new(sub_users => 12, folders => 12, files => 5) }

SKIP: {
    my $range = '/proc/sys/net/ipv4/ip_local_port_range';
    skip 'no network of its own can be made here', 1 if !$own_network;
    my $before = slurp($range);
    skip 'the range of local ports cannot be set', 1 if !put($range, '40000 40050');
    my $d = drive();
    my $r = run_sim($d, qw(60 40 120 4 --no-ledger), @judged);
    put($range, $before);
    limited_by($r, 'local_ports', qr/^no local ports were left \(\d+ times\).*ip_local_port_range/);
    my $local = 0;
    $local += $_->{outcomes}{local} for values %{ $r->{json}{operations} };
    cmp_ok $local, '>', 0, 'what could not be sent is counted apart';
    like $r->{out}, qr/\d not sent: this machine ran short/, 'and shown so';
}

SKIP: {
    skip 'prlimit is not installed', 1 if system('prlimit --version >/dev/null 2>&1') != 0;
    my $d = drive();
    my $h = start_run($d, qw(6 20 60 5 --no-ledger --report-every 1), @judged);
    in_window($h);
    my ($soft) = slurp("/proc/$h->{pid}/limits") =~ /^Max open files\s+(\d+)/m;
    system('prlimit', "--pid=$h->{pid}", '--nofile=8:') == 0 or die 'prlimit';
    $d->cut_streams;
    ok sim_await($h, sub { $_[0]{out} =~ /no open files were left/ }), 'told while it lasts';
    system('prlimit', "--pid=$h->{pid}", "--nofile=$soft:") == 0 or die 'prlimit'; # the results are written to files
    limited_by(done_run($h), 'open_files', qr/^no open files were left \(\d+ times\).*ulimit/);
}

{
    my $d = drive();
    my $h = start_run($d, qw(6 20 60 5 --no-ledger), @judged);
    in_window($h);
    kill STOP => $h->{pid};
    select undef, undef, undef, 4; # as long as a server may not be silent
    kill CONT => $h->{pid};
    limited_by(done_run($h), 'paused', qr/^it did not run for \d+\.\d s \(stopped, frozen or held up\)/);
}

SKIP: {
    my ($top) = grep { -e "$_/cpu.stat" } map { "/sys/fs/cgroup$_" } '/cpu', '/cpu,cpuacct', '';
    my $group = ($top // '') . "/drivesim-limited-$$";
    skip 'no control group can be made here', 1 if !$top || !mkdir $group;
    my $d = drive();
    my $in = put("$group/cgroup.procs", $$); # the run is born there
    my $h = start_run($d, qw(12 60 120 5 --no-ledger), @judged);
    put("$top/cgroup.procs", $$);
    in_window($h);
    my $quota = $in && (put("$group/cpu.cfs_quota_us", 2000) || put("$group/cpu.max", '2000 100000'));
    my $r = done_run($h);
    rmdir $group;
    skip 'no quota can be set here', 1 if !$quota;
    limited_by($r, 'cpu_quota', qr/^its CPU quota was used up in \d+ % of the time \(2 % of a processor\).*raise the quota/);
}

SKIP: {
    my ($lib) = grep { -e } map { glob } '/usr/lib/*/faketime/libfaketimeMT.so.1', '/usr/lib*/faketime/libfaketimeMT.so.1';
    skip 'libfaketime is not installed', 1 if !$lib;
    skip 'libfaketime and a sanitizer are two preloads of one call', 1 if sanitized();
    my $d = drive();
    spew("$dir/clock", "+0\n");
    my $h = start_run({ env => { TMA_URL => $d->url, LD_PRELOAD => $lib, FAKETIME_TIMESTAMP_FILE => "$dir/clock", FAKETIME_NO_CACHE => 1, FAKETIME_DONT_FAKE_MONOTONIC => 1, DONT_FAKE_MONOTONIC => 1 } }, qw(6 20 60 4 --no-ledger), @judged);
    in_window($h);
    spew("$dir/clock", "+1h\n");
    limited_by(done_run($h), 'clock', qr/^this machine's clock was set by 3[56]\d\d\.\d s/);
}
done_testing;
