#!/usr/bin/perl
# Each part of the stack taken away in each way while apps run: does drivesim stay up, and has the server kept its word
# afterwards? Prints the table part x way.
#
#   make chaos                    each once
#   make chaos RUNS=5             as the release asks for
#   make chaos ONLY=kill:server,fill:store JOBS=1
#   WRITE=1 make chaos            writes the table into docs/outages.md between its markers
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp qw(tempdir);
use JSON::PP;
use Sim;

my $RUNS = $ENV{RUNS} || 1;
my $JOBS = $ENV{JOBS} || 2;
my %only = map { $_ => 1 } split /,/, $ENV{ONLY} // '';
my $tmp = tempdir(CLEANUP => 1);
$| = 1;

# way, part, seconds
my @CELLS = grep { !%only || $only{"$_->[0]:$_->[1]"} } (
    (map { ['kill', $_, 3] } qw(server redis postgres store)),
    (map { ['stop', $_, 3] } qw(server redis postgres store)),
    (map { ['pause', $_, 10] } qw(server redis postgres store)),
    ['fill', 'store', 10],
    ['fill', 'postgres', 10],
);

# One run on a stack that has had others: {ok, why, seen, late}.
sub one {
    my ($stack, $cell, $seed) = @_;
    my ($way, $part, $for) = @$cell;
    my @args = ('run', 10, 20, 120, $for + 8, '--seed', $seed, '--chaos', "$way:$part\@3+$for", '--json', 'run.json', '-q');
    my $r = $stack->sim(\@args);
    my $json = eval { json_file("$stack->{dir}/run.json") } or return { ok => 0, why => "no JSON: $r->{err}" };
    my @wrong = map { "$_->{name}: " . ($_->{detail}[0] // '?') } grep { $_->{status} eq 'violated' } @{ $json->{checks} };
    push @wrong, map { "$_->{name} not run: $_->{summary}" } grep { $_->{status} eq 'not_run' && $_->{name} !~ /^(?:events)$/ } @{ $json->{checks} };
    push @wrong, "failed: $json->{failures}[0]{reason}" if $json->{failed};
    push @wrong, "exit $r->{status}: $r->{err}" if $r->{status} ne '0';
    push @wrong, 'signed in again' if $json->{sessions}{signed_in};
    my ($late) = sort { $b <=> $a } map { $json->{operations}{$_}{from_due}{max_ms} // 0 } keys %{ $json->{operations} };
    my %seen = map { $_->{what} => 1 } grep { !$_->{ordered} } @{ $json->{timeline} };
    return { ok => @wrong ? 0 : 1, why => join('; ', @wrong), seen => [sort keys %seen], late => $late / 1000, failed => $json->{actions}{during_outage} };
}

# All runs of a cell on one stack.
sub cell {
    my ($cell) = @_;
    my $stack = Sim::Stack->new('--native');
    my $seeded = $stack->sim(['seed', 1, 0.02, '-q']);
    die "sim seed failed: $seeded->{out}$seeded->{err}" if $seeded->{status} ne '0';
    return [map { one($stack, $cell, $_) } 1 .. $RUNS];
}

my %running;
my $next = 0;
while ($next < @CELLS || %running) {
    while ($next < @CELLS && keys %running < $JOBS) {
        my $i = $next++;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            my $runs = eval { cell($CELLS[$i]) } || [{ ok => 0, why => "$@" }];
            spew("$tmp/$i.json", JSON::PP->new->utf8->encode($runs));
            exit 0;
        }
        $running{$pid} = $i;
    }
    my $i = delete $running{ wait() } // next;
    my $runs = $CELLS[$i][3] = eval { json_file("$tmp/$i.json") } // [{ ok => 0, why => 'died' }];
    for my $k (0 .. $#$runs) {
        printf "%-8s %-5s %-9s seed %d%s\n", $runs->[$k]{ok} ? 'ok' : 'WRONG', @{ $CELLS[$i] }[0, 1], $k + 1, $runs->[$k]{ok} ? '' : ": $runs->[$k]{why}";
    }
}

my ($table, $wrong) = ("| part | taken away | for | actions that failed meanwhile | slowest from due | shown as | kept its word |\n|---|---|---|---|---|---|---|\n", 0);
for my $c (@CELLS) {
    my ($way, $part, $for, $runs) = @$c;
    my $ok = grep { $_->{ok} } @$runs;
    my ($failed, $late, %seen) = (0, 0);
    for my $r (@$runs) {
        $failed += $r->{failed} // 0;
        $late = $r->{late} if ($r->{late} // 0) > $late;
        $seen{$_} = 1 for @{ $r->{seen} // [] };
    }
    $wrong += $ok != $RUNS;
    $table .= sprintf "| %s | %s | %d s | %d | %.1f s | %s | %d of %d |\n", $part, $way, $for, $failed, $late, join(', ', sort keys %seen) || 'nothing', $ok, $RUNS;
}
print "\n$table\n";
if (!%only && $ENV{WRITE}) {
    my $file = "$FindBin::Bin/../docs/outages.md";
    my $text = slurp($file);
    $text =~ s/(<!-- chaos: made by make chaos -->\n).*?(<!-- chaos: end -->)/$1$table$2/s or die 'docs/outages.md has no markers';
    spew($file, $text);
}
exit($wrong ? 1 : 0);
