#!/usr/bin/perl
# The judge is judged: each fault that the reference server can plant, under a short load on a stack of its own, must be
# found by its own check, which must say what it is about (tests/lib/Judge.pm has the table); and runs without any fault
# must raise nothing.
#
#   make judge                     every fault once, 5 clean runs
#   make judge RUNS=5 CLEAN=20     as the release asks for
#   KEEP=DIR make judge            keeps the run folders of what was found
#   make judge FAULTS=hang,lost-update CLEAN=0
#
# Prints the matrix fault x check, and writes it into docs/judge.md between the two markers when all faults were run.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Fcntl ':flock';
use File::Temp qw(tempdir);
use JSON::PP;
use Judge qw(@FAULTS look);
use Sim;
use Time::HiRes qw(time);

my $RUNS  = $ENV{RUNS}  || 1;
my $CLEAN = length($ENV{CLEAN} // '') ? $ENV{CLEAN} : 5;
my $JOBS  = $ENV{JOBS}  || 2;
binmode STDOUT, ':utf8';
my %only  = map { $_ => 1 } split /,/, $ENV{FAULTS} // '';
my $tmp   = tempdir(CLEANUP => 1);

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

# One load on a stack of its own. Gives back the checks that found something.
sub load {
    my ($fault, $load, $seed) = @_;
    my $stack = stack();
    my $seeded = $stack->sim(['seed', 1, $load->{few} ? 0.003 : 0.01, '-q']);
    die "sim seed failed: $seeded->{out}$seeded->{err}" if $seeded->{status} ne '0';
    my $r = look($stack, $fault ? ["$fault=" . ($load->{p} // 1)] : [], $load, $seed);
    my %found = map { $_ => join "\n", @{ $r->{found}{$_} } } keys %{ $r->{found} };
    my ($failed, $why) = failures($r->{json}, $load);
    $found{operations} = $why if $failed;
    $found{exit} = "exit status $r->{status}: $r->{err}" if $r->{status} !~ /^[01]$/;
    system 'cp', '-r', "$stack->{dir}/runs", "$ENV{KEEP}/" . ($fault || 'clean') . "-$seed" if $ENV{KEEP} && %found; # to look closer
    return { found => \%found };
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
for my $f (@FAULTS) {
    next if %only && !$only{ $f->{fault} };
    push @work, { %$f, seed => $_ } for 1 .. $RUNS;
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
    my $ok = !$r->{error} && ($w->{fault} ? ($r->{found}{ $w->{check} } // '') =~ $w->{says} : !$found);
    $w->{ok} = $ok ? 1 : 0;
    $failed_runs += !$ok;
    printf "%-8s %-19s seed %-3d %s\n", $ok ? 'ok' : 'MISSED', $w->{fault} || '(no fault)', $w->{seed},
        $r->{error} ? "could not run: " . substr($r->{error}, 0, 300) : $found ? "found by $found" : 'found by none';
    for my $name (sort keys %{ $r->{found} // {} }) {
        my ($first) = split /\n/, $r->{found}{$name};
        print "           $name: $first\n" if $ENV{VERBOSE} || !$w->{fault} || ($w->{check} eq $name && $ENV{DETAIL});
    }
    $| = 1;
}

# ---- the matrix ----

my @columns = qw(drain aggregates storage structure objects ledger answers reads versions locks changes events convergence database server operations exit);
sub matrix {
    my @rows;
    my %cell;
    for my $w (@work) {
        my $name = $w->{fault} || 'no fault';
        push @rows, $name unless $cell{$name};
        $cell{$name}{runs}++;
        $cell{$name}{own} = $w->{check};
        $cell{$name}{caught} += $w->{ok};
        $cell{$name}{$_}++ for keys %{ $w->{result}{found} // {} };
    }
    my @used = grep { my $c = $_; grep { $cell{$_}{$c} || $cell{$_}{own} eq $c } @rows } @columns;
    my $t = '| fault | ' . join(' | ', @used) . " | own check |\n|---|" . ('---|' x @used) . "---|\n";
    for my $name (@rows) {
        my $c = $cell{$name};
        my $own = $c->{own} ? "$c->{caught} of $c->{runs}" : (grep { $c->{$_} } @used) ? 'ALARM' : "0 alarms in $c->{runs}";
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
    my $file = "$FindBin::Bin/../docs/judge.md";
    my $text = slurp($file);
    $text =~ s/(<!-- judge: made by make judge -->\n).*?(<!-- judge: end -->)/$1$matrix$2/s or die "docs/judge.md has no markers";
    spew($file, $text);
}
exit($failed_runs ? 1 : 0);
