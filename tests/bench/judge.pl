#!/usr/bin/perl
# What the judgement costs: the checks over many rows and a long ledger, made by SQL and by hand, with their time and
# memory; and the simulator's own processor time with and without a ledger, in alternating pairs of one seed.
#   make bench                      200,000 and 1,000,000 rows, 3 pairs of 150 apps
#   ROWS=50000 PAIRS=1 APPS=20 perl tests/bench/judge.pl
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Compress::Zlib 'crc32';
use List::Util qw(max min);
use POSIX ':sys_wait_h';
use Sim;
use Time::HiRes 'time';

my @rows  = split /,/, $ENV{ROWS} // '200000,1000000';
my %limit = (200_000 => 20, 1_000_000 => 120);
my ($pairs, $apps) = ($ENV{PAIRS} // 3, $ENV{APPS} // 150);
my $bad = 0;

# ---- rows: folders of 20 files below one folder, their totals and the storage use exact

sub make_rows {
    my ($stack, $n) = @_;
    $stack->sql(<<~"SQL");
        BEGIN;
        DELETE FROM files WHERE id LIKE 'bench-%';
        CREATE TEMP TABLE o AS SELECT id FROM users WHERE email = 'owner\@load.test';
        INSERT INTO files (id, name, type, user_id, aggregate_size, aggregate_file_count, aggregate_folder_count)
            SELECT 'bench-root', 'bench', 'folder', id, $n * 20::bigint / 21 * 100, $n * 20 / 21, $n / 21 FROM o;
        INSERT INTO files (id, name, type, user_id, parent_id, aggregate_size, aggregate_file_count)
            SELECT 'bench-d' || i, 'folder ' || i, 'folder', o.id, 'bench-root', 2000, 20 FROM o, generate_series(1, $n / 21) i;
        INSERT INTO files (id, name, type, size, user_id, parent_id, path)
            SELECT 'bench-f' || d || '-' || i, 'file ' || i || '.txt', 'file', 100, o.id, 'bench-d' || d, o.id || '/bench' || d || '-' || i
            FROM o, generate_series(1, $n / 21) d, generate_series(1, 20) i;
        UPDATE files SET aggregate_file_count = $n / 21 * 20, aggregate_size = $n / 21 * 2000 WHERE id = 'bench-root';
        UPDATE users SET storage_used = (SELECT sum(size) FROM files WHERE user_id = users.id) WHERE id IN (SELECT id FROM o);
        COMMIT;
        ANALYZE files;
        SQL
    return;
}

# ---- a ledger (src/drive/ledger.c): renames that hold, locks, and the events that 20 apps heard of them

my @FIELDS = qw(outcome flags status app login seq mono wall file parent other before after key revision parent_revision size name old_name);
my %text = map { $_ => 1 } qw(file parent other before after name old_name);
my %wide = map { $_ => 1 } qw(key revision parent_revision);
my %op;

sub ops {
    my $model = slurp("$FindBin::Bin/../../src/drive/model.h");
    my ($list) = $model =~ /#define DRIVE_OPS\(X\)(.*?)enum drive_op/s;
    my $i = 0;
    $op{$_} = $i++ for $list =~ /^\s+X\((\w+), "/mg;
    return;
}

sub record {
    my ($kind, $op, %f) = @_;
    my ($mask, $body) = (0, '');
    for my $i (grep { $f{ $FIELDS[$_] } } 0 .. $#FIELDS) {
        my ($name, $v) = ($FIELDS[$i], $f{ $FIELDS[$i] });
        $mask |= 1 << $i;
        $body .= $text{$name} ? pack('C/a*', $v) : $wide{$name} ? pack('Q<', $v) : varint($v);
    }
    my $payload = chr($kind) . chr($op) . varint($mask) . $body;
    my $framed = pack('v', length $payload) . $payload;
    return $framed . pack 'V', crc32($framed);
}

sub varint { my ($v) = @_; my $b = ''; for (; $v >= 128; $v >>= 7) { $b .= chr($v & 127 | 128) } return $b . chr $v }

sub make_ledger {
    my ($dir, $changes) = @_;
    mkdir $dir;
    open my $fh, '>:raw', "$dir/ledger.bin" or die "$dir: $!";
    my ($seq, $n, $at) = (0, 0, 0);
    my $put = sub { print {$fh} record(@_); $n++ };
    print {$fh} 'DSLEDGER', pack 'VVq<q<', 2, 0, 0, 0;
    $put->(3, $op{STREAM}, flags => 2, app => $_, mono => 2) for 0 .. 19;
    for my $i (0 .. $changes - 1) {
        my ($d, $f) = (1 + int($i / 20), 1 + $i % 20);
        my %on = (file => "bench-f$d-$f", parent => "bench-d$d", app => $i % 20);
        for my $row ([LOCK => (other => "l$i")], [RENAME => (name => "file $f.txt", old_name => "was $f.txt")], [UNLOCK => (other => "l$i")]) {
            my ($what, %more) = @$row;
            $seq++;
            $put->(1, $op{$what}, %on, %more, seq => $seq, mono => 2 * ($at += 1000));
            $put->(2, $op{$what}, seq => $seq, status => 200, app => $i % 20, mono => 2 * ($at += 1000), $what eq 'LOCK' ? (other => "l$i") : ());
        }
        $put->(3, $op{STREAM}, file => $on{file}, app => $_, mono => 2 * ($at + 10), status => $op{RENAME}, revision => $i + 1, size => $i + 1) for 0 .. 19;
    }
    $put->(3, $op{STREAM}, flags => 4, app => $_, mono => 2 * ($at + 1000)) for 0 .. 19;
    print {$fh} record(0, 0, seq => $n);
    close $fh or die "$dir: $!";
    spew("$dir/run.json", '{"logins": ["owner@load.test"], "login_accounts": [0], "ended": "then"}');
    return $n;
}

# ---- measuring

# Seconds and the most memory (MiB) of a command, and its handle.
sub measured {
    my ($stack, @args) = @_;
    my ($from, $peak) = (time, 0);
    my $h = $stack->start([@args, '--json', 'bench.json', '-q']);
    while (!sim_read($h, 0.05)) {
        open my $fh, '<', "/proc/$h->{pid}/status" or last;
        while (<$fh>) { $peak = max($peak, $1 / 1024) if /^VmHWM:\s+(\d+)/ }
    }
    sim_finish($h);
    return (time - $from, $peak, $h);
}

sub rows {
    my ($stack, $n) = @_;
    make_rows($stack, $n);
    my $changes = min($n / 40, 5000);
    my $records = make_ledger("$stack->{dir}/bench$n", $changes);
    # without the objects: what they cost is the time that the store takes to list them
    my @only = qw(drain aggregates storage structure ledger answers reads versions locks changes events convergence database server);
    my ($s, $mib, $h) = measured($stack, 'check', '--run', "bench$n", '--only', join ',', @only);
    my $violated = join ', ', map { "$_->{name}: " . ($_->{detail}[0] // '') } grep { $_->{status} eq 'violated' } @{ json_file("$stack->{dir}/bench.json")->{checks} };
    printf "%9s rows, %7s records: %6.1f s, %5.0f MiB%s%s\n", $n, $records, $s, $mib, $limit{$n} ? " (limit $limit{$n} s)" : '', $violated ? "; VIOLATED $violated" : '';
    $bad++ if ($limit{$n} && $s > $limit{$n}) || $violated;
    return;
}

sub median { my @s = sort { $a <=> $b } @_; return $s[ @s / 2 ] }

sub cpu {
    my ($stack) = @_;
    my (%cpu, @ratio);
    for my $i (1 .. $pairs) {
        for my $how ($i % 2 ? qw(ledger none) : qw(none ledger)) {
            my (undef, undef, $h) = measured($stack, 'run', $apps, 20, 6, 20, '--seed', 7, $how eq 'none' ? '--no-ledger' : ());
            push @{ $cpu{$how} }, json_file("$stack->{dir}/bench.json")->{generator}{cpu_seconds};
        }
        push @ratio, $cpu{ledger}[-1] / $cpu{none}[-1];
    }
    printf "%d apps, 20 s: %.2f s of CPU with a ledger, %.2f s without: %+.0f %% (limit 15 %%; pairs %s)\n", $apps, median(@{ $cpu{ledger} }), median(@{ $cpu{none} }),
        (median(@ratio) - 1) * 100, join ' ', map { sprintf '%.2f', $_ } @ratio;
    $bad++ if median(@ratio) > 1.15;
    return;
}

ops();
my $stack = Sim::Stack->new('--native');
$stack->sim([qw(seed 9 0.02 -q)])->{status} eq '0' or die 'sim seed failed';
cpu($stack) if $pairs;
rows($stack, $_) for @rows;
exit($bad ? 1 : 0);
