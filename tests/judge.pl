#!/usr/bin/perl
# The judge is judged: each fault that the reference server can plant, under a short load on a stack of its own, must be
# found by its own check; and runs without any fault must raise nothing.
#
#   make judge                     every fault once, 5 clean runs
#   make judge RUNS=5 CLEAN=20     as the release asks for
#   KEEP=DIR make judge            keeps the run folders of what was found
#   make judge FAULTS=hang,lost-update CLEAN=0
#
# Prints the matrix fault x check, and writes it into README.md between the two markers when all faults were run.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Fcntl ':flock';
use File::Temp qw(tempdir);
use JSON::PP;
use Sim;
use Time::HiRes qw(time);

my $RUNS  = $ENV{RUNS}  || 1;
my $CLEAN = length($ENV{CLEAN} // '') ? $ENV{CLEAN} : 5;
my $JOBS  = $ENV{JOBS}  || 2;
binmode STDOUT, ':utf8';
my %only  = map { $_ => 1 } split /,/, $ENV{FAULTS} // '';
my $tmp   = tempdir(CLEANUP => 1);

# What a load is made of: the arguments of sim run, a mix, what is done to the database before it.
my @BUSY  = (8, 20, 240, 8);
my %SAVES = (args => [8, 20, 300, 8], mix => "save 85\nupload 5\ndownload 10\n"); # on few files, so that they meet
my %ADDS  = (args => \@BUSY, mix => "upload 40\nsave 30\ndownload 30\n");
my $FULL  = 'UPDATE users SET storage_limit = storage_used + 100000 WHERE parent_user_id IS NULL';

# fault => [check that must find it, the load]. "operations": the run's own failed operations; "thresholds": a condition
# given by --fail-on.
my @FAULTS = (
    ['lost-update',        'versions',    { %SAVES, few => 1 }],
    ['double-lock',        'locks',       { %SAVES, few => 1 }],
    ['lock-ignored',       'locks',       { %SAVES, few => 1 }],
    ['lost-upload',        'ledger',      {%ADDS}],
    ['truncated-object',   'objects',     {%ADDS}],
    ['orphan-object',      'objects',     {%ADDS}],
    ['event-dropped',      'events',      {%ADDS}],
    ['event-late',         'events',      {%ADDS}],
    ['stale-listing',      'convergence', {%ADDS}],
    ['feed-gap',           'convergence', {%ADDS}],
    ['aggregate-drift',    'aggregates',  {%ADDS}],
    ['storage-drift',      'storage',     {%ADDS}],
    ['quota-overrun',      'storage',     { %ADDS, sql => $FULL }],
    ['copy-partial',       'objects',     { args => \@BUSY, mix => "copy 50\ndownload 50\n" }],
    ['trash-leak',         'changes',     { args => \@BUSY, mix => "trash 30\nupload 30\ndownload 40\n" }],
    ['corrupt-download',   'operations',  { args => \@BUSY, p => 0.3 }],
    ['duplicate-on-retry', 'changes',     { args => \@BUSY, mix => "copy 50\ndownload 50\n" }],
    ['dropped-413',        'operations',  { %ADDS, sql => $FULL, refusals => 1 }],
    ['slow-commit',        'thresholds',  { %ADDS, fail_on => ['save.p95<800ms'], p => 0.3 }],
    ['deadlock',           'database',    { %SAVES, args => [8, 20, 600, 8] }],
    ['hang',               'operations',  { args => \@BUSY, more => ['--timeout', '3s'], p => 0.01 }],
);

# One at a time: two that start together may choose the same port.
sub stack {
    open my $turn, '>', "$tmp/turn" or die "$tmp/turn: $!";
    flock $turn, LOCK_EX or die "flock: $!";
    for my $try (1 .. 3) {
        my $stack = eval { Sim::Stack->new('--native') };
        return $stack if $stack && eval { $stack->sql('SELECT count(*) FROM files') } eq '0'; # ours, nobody else's
        die $@ || 'another stack answers in place of ours' if $try == 3;
    }
    return;
}

# One load on a stack of its own. Gives back the checks that found something, and what the checks were.
sub load {
    my ($fault, $load, $seed) = @_;
    my $stack = stack();
    my $seeded = $stack->sim(['seed', 1, $load->{few} ? 0.003 : 0.01, '-q'], timeout => 120);
    die "sim seed failed: $seeded->{out}$seeded->{err}" if $seeded->{status} ne '0';
    $stack->sql($load->{sql}) if $load->{sql};
    if ($fault) {
        $stack->stack('stop', 'server');
        my $r = $stack->stack('start', 'server', "--server-args=--fault $fault=" . ($load->{p} // 1));
        die "the server with $fault does not start: $r->{err}" if $r->{status} ne '0';
    }
    my @args = ('run', @{ $load->{args} // \@BUSY }, '--seed', $seed, '--json', 'run.json', '-q', @{ $load->{more} // [] });
    push @args, '--fail-on', $_ for @{ $load->{fail_on} // [] };
    if ($load->{mix}) { spew("$stack->{dir}/mix", $load->{mix}); push @args, '--mix', 'mix' }
    my $r = $stack->sim(\@args, timeout => 180);
    my $json = eval { json_file("$stack->{dir}/run.json") } or die "sim run left no JSON ($r->{status}): $r->{out}$r->{err}";
    my (%found, %ran);
    $found{operations} = $1 if $r->{status} eq '3' && $r->{err} =~ /(no answer from .*)/; # before the first action
    for my $c (@{ $json->{checks} }) {
        $ran{ $c->{name} } = 1 if $c->{status} ne 'not_run';
        $found{ $c->{name} } = $c->{detail}[0] // '?' if $c->{status} eq 'violated';
    }
    my ($failed, $why) = failures($json, $load);
    $found{operations} ||= $why if $failed;
    $found{thresholds} = 'exit 1' if grep { !$_->{ok} } @{ $json->{thresholds} // [] };
    system 'cp', '-r', "$stack->{dir}/runs", "$ENV{KEEP}/" . ($fault || 'clean') . "-$seed" if $ENV{KEEP} && %found; # to look closer
    return { found => \%found, ran => \%ran, status => $r->{status}, out => $r->{out} };
}

# Failed operations. Where the account is full refusals are the right answer, and only what is none counts.
sub failures {
    my ($json, $load) = @_;
    my ($n, $why) = (0, '');
    for my $op (sort keys %{ $json->{operations} }) {
        my $o = $json->{operations}{$op}{outcomes} // {};
        for my $how (grep { !/^(ok|conflict|throttled)$/ } sort keys %$o) {
            next if !$o->{$how} || ($load->{sql} && $how eq 'refused');
            $n += $o->{$how};
            $why ||= "$op: $o->{$how} $how";
        }
    }
    return ($n, $why);
}

# ---- the work, JOBS at a time, each in a process of its own ----

my @work;
for my $row (@FAULTS) {
    my ($fault, $check, $load) = @$row;
    next if %only && !$only{$fault};
    push @work, { fault => $fault, check => $check, load => $load, seed => $_ } for 1 .. $RUNS;
}
push @work, { fault => '', check => '', load => {}, seed => 100 + $_ } for 1 .. $CLEAN;

my (%running, $next, $failed_runs);
$next = $failed_runs = 0;
while ($next < @work || %running) {
    while ($next < @work && keys %running < $JOBS) {
        my ($i, $w) = ($next, $work[$next]);
        $next++;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            my $once = sub { eval { load($w->{fault}, $w->{load}, $w->{seed}) } || { error => "$@" } };
            my $r = $once->();
            $r = $once->() if $r->{error};
            spew("$tmp/$i.json", JSON::PP->new->utf8->encode($r));
            exit 0;
        }
        $running{$pid} = $i;
    }
    my $pid = wait;
    my $i = delete $running{$pid} // next;
    my ($w, $r) = ($work[$i], eval { json_file("$tmp/$i.json") } // { error => 'died' });
    $w->{result} = $r;
    my $found = join ', ', sort keys %{ $r->{found} // {} };
    my $ok = !$r->{error} && ($w->{fault} ? $r->{found}{ $w->{check} } : !$found);
    $w->{ok} = $ok ? 1 : 0;
    $failed_runs += !$ok;
    printf "%-8s %-19s seed %-3d %s\n", $ok ? 'ok' : 'MISSED', $w->{fault} || '(no fault)', $w->{seed},
        $r->{error} ? "could not run: " . substr($r->{error}, 0, 300) : $found ? "found by $found" : 'found by none';
    for my $name (sort keys %{ $r->{found} // {} }) {
        print "           $name: $r->{found}{$name}\n" if $ENV{VERBOSE} || !$w->{fault} || ($w->{check} eq $name && $ENV{DETAIL});
    }
    $| = 1;
}

# ---- the matrix ----

my @columns = qw(aggregates storage structure objects ledger versions locks changes events convergence database server operations thresholds);
sub matrix {
    my @rows;
    my %cell;
    for my $w (@work) {
        my $name = $w->{fault} || 'no fault';
        push @rows, $name unless $cell{$name};
        $cell{$name}{runs}++;
        $cell{$name}{own} = $w->{check};
        $cell{$name}{$_}++ for keys %{ $w->{result}{found} // {} };
    }
    my @used = grep { my $c = $_; grep { $cell{$_}{$c} || $cell{$_}{own} eq $c } @rows } @columns;
    my $t = '| fault | ' . join(' | ', @used) . " | own check |\n|---|" . ('---|' x @used) . "---|\n";
    for my $name (@rows) {
        my $c = $cell{$name};
        my $own = $c->{own} ? ($c->{ $c->{own} } // 0) . " of $c->{runs}" : (grep { $c->{$_} } @used) ? 'ALARM' : "0 alarms in $c->{runs}";
        my @cells = map { my $n = $c->{$_} // 0; $_ eq $c->{own} ? "**$n**" : $n || '' } @used;
        $t .= "| $name | " . join(' | ', @cells) . " | $own |\n";
    }
    return $t;
}

my $matrix = matrix();
print "\n$matrix\n";
my $caught = grep { $_->{fault} && $_->{ok} } @work;
my $planted = grep { $_->{fault} } @work;
print "$caught of $planted planted faults found by their own check; ", scalar(grep { !$_->{fault} && %{ $_->{result}{found} // {} } } @work), " false alarms in $CLEAN clean runs\n";

if (!%only && $ENV{WRITE}) {
    my $file = "$FindBin::Bin/../README.md";
    my $text = slurp($file);
    $text =~ s/(<!-- judge: made by make judge -->\n).*?(<!-- judge: end -->)/$1$matrix$2/s or die "README.md has no markers";
    spew($file, $text);
}
exit($failed_runs ? 1 : 0);
