# The layers of a real stack measured one by one: every figure is there, nothing of it is left behind, and what cannot be
# measured says what is missing.
use strict;
use warnings;
use Cwd qw(realpath);
use File::Path qw(make_path);
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 1 0.01)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
make_path("$stack->{dir}/disk", "$stack->{dir}/bin");
symlink '/bin/sh', "$stack->{dir}/bin/sh";    # and no other program

subtest 'all of them' => sub {
    my $r = $stack->sim([qw(baseline --time 300ms --dir disk --json b.json)]);
    is $r->{status}, 0, 'status 0' or diag $r->{out}, $r->{err};
    my $base = json_file("$stack->{dir}/b.json")->{baseline};
    for my $layer (qw(disk network postgres redis store drive)) {
        my @figures = grep { /^${layer}_/ } keys %$base;
        ok @figures, "$layer has figures";
        cmp_ok $base->{$_}, '>', 0, $_ for @figures;
    }
    is scalar keys %$base, 18, 'eighteen in all';
    my $all = json_file("$stack->{dir}/b.json");
    is scalar @{ $all->{layers} }, 18, 'the table as JSON';
    my ($up) = grep { $_->{figure} eq 'drive_upload_64m_mb_per_s' } @{ $all->{layers} };
    is $up->{of}, 'store_put_64m_mb_per_s', 'what a figure rests on';
    cmp_ok abs($up->{ratio} - $base->{drive_upload_64m_mb_per_s} / $base->{store_put_64m_mb_per_s}), '<', 0.02, 'and its share of that';
    is "slowest link: $all->{slowest_link}", ($r->{out} =~ /^(slowest link: .*)$/m)[0], 'and the slowest link';
    is $all->{sessions}{signed_in}, 0, 'with the sessions of the command before' or diag $r->{out};
    my ($share) = $r->{out} =~ /^drive +64 MiB uploads +[\d.]+ MB\/s +([\d.]+) x store: 64 MiB objects put$/m;
    ok $share && abs($share - $base->{drive_upload_64m_mb_per_s} / $base->{store_put_64m_mb_per_s}) < 0.02, 'a share is one of the layer below';
    my @shares = $r->{out} =~ /([\d.]+) x \w+: /g;
    my ($least) = sort { $a <=> $b } @shares;
    my ($percent) = $r->{out} =~ /^slowest link: .*, ([\d.]+) % of /m;
    ok defined $percent && abs($percent - 100 * $least) <= 0.6, 'the slowest link is the smallest share' or diag $r->{out};
    is $stack->sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'drivesim_baseline'"), 0, 'no schema is left';
    is $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'Baseline %' OR name LIKE 'base-%'"), 0, 'no file';
    is_deeply [glob "$stack->{dir}/disk/*"], [], 'nothing on the disk';
    my $check = $stack->sim(['check', '--only', 'objects,storage,aggregates']);
    is $check->{status}, 0, 'and no object' or diag $check->{out};
};

# One connection at first, then eight that each write: they are to be seen at once, in one of some tries.
subtest 'eight commit together' => sub {
    my $writers = sub { return $stack->sql(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO drivesim_baseline.t%'}) };
    my $most = 0;
    for (1 .. 20) {
        my $h = $stack->start([qw(baseline --time 2s --only postgres)]);
        while (!sim_read($h, 0.02)) { my $n = $writers->(); $most = $n if $n > $most; }
        is sim_finish($h)->{status}, 0, 'measured' or diag $h->{out}, $h->{err};
        last if $most >= 8;
    }
    is $most, 8, 'all of them at once';
};

subtest 'what is not there' => sub {
    my $r = $stack->sim(['baseline', '--only', 'redis,postgres', '--time', '100ms'], env => { REDIS_URL => 'redis://127.0.0.1:9/0' });
    is $r->{status}, 3, 'a Redis that does not answer: status 3';
    like $r->{out}, qr/^redis: not measured: /m, 'named';
    like $r->{out}, qr/^postgres +commits of one row, one at a time +[\d.]+ /m, 'the others are measured';
    unlike $r->{out}, qr/^disk /m, 'and no word of those that were not asked for';
    $r = Sim::sim([qw(baseline --time 100ms --only network)], dir => $stack->{dir}, env => { PATH => "$stack->{dir}/bin" });
    is $r->{status}, 3, 'no iperf3, asked for';
    like $r->{err}, qr/iperf3 is not installed: apt-get install iperf3/, 'says what to install';
    mkdir "$stack->{dir}/bare";
    $r = Sim::sim([qw(baseline --time 100ms)], dir => "$stack->{dir}/bare", env => { PATH => "$stack->{dir}/bin" });
    is $r->{status}, 0, 'nothing is configured: nothing is wrong';
    like $r->{out}, qr/^$_: not measured: /m, "$_ says why" for qw(disk network postgres redis store drive);
    like $r->{out}, qr/^slowest link: not known/m, 'and no link is called slow';
    $r = $stack->sim([qw(baseline --only drive --time 100ms)], env => { TMA_LOAD_PASSWORD => 'another' });
    is $r->{status}, 3, 'a drive that was not seeded' or diag $r->{out}, $r->{err};
    like $r->{err}, qr/sim seed/, 'says what to do';
};

# Of ten minutes a figure nothing is waited for.
subtest 'interrupted' => sub {
    my %at_work = (
        disk => sub { my @data = glob "$stack->{dir}/disk/drivesim-baseline-*/data"; return scalar @data },
        drive => sub { $stack->sql("SELECT count(*) FROM files WHERE name LIKE 'base-%'") },
    );
    for my $layer (sort keys %at_work) {
        my $h = $stack->start([ qw(baseline --time 600s --dir disk --only), $layer eq q(disk) ? q(disk,redis) : $layer ]);
        ok Sim::wait_until($at_work{$layer}), "$layer is being measured";
        kill 'INT', $h->{pid};
        my $r = Sim::sim_finish($h);
        is $r->{status}, 130, 'status 130' or diag $r->{out}, $r->{err};
        like $r->{out}, qr/^$layer: not measured to the end: interrupted$/m, 'says so';
        is_deeply [grep { (readlink "$_/exe" // '') =~ m{/fio$} && (readlink "$_/cwd" // '') eq realpath($stack->{dir}) } glob '/proc/[0-9]*'], [], 'no tool is left';
        is_deeply [glob "$stack->{dir}/disk/*"], [], 'nothing on the disk';
    }
};

subtest 'arguments' => sub {
    my $r = $stack->sim([qw(baseline --only disks)]);
    is $r->{status}, 2, 'a layer that is none';
    $r = $stack->sim([qw(baseline --only network --time 100ms --iperf 192.0.2.1)]);
    is $r->{status}, 3, 'a host that was not allowed';
    like $r->{err}, qr/--allow-host/, 'says how';
};

done_testing;
