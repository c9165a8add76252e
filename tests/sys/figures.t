# What a command says of itself is one account: every request that the server counted stands in the summary, under its
# cause, and whatever stands side by side adds up.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack);
my %env = (TMA_URL => $server->url);

# Every number that has to fit another one, wherever it stands in the document.
sub adds_up {
    my ($j, $name) = @_;
    my $n = 0;
    $n += $_ for values %{ $j->{causes} };
    is $j->{requests}, $n, "$name: requests are the sum of their causes";
    my @wrong;
    for my $op (sort keys %{ $j->{operations} }) {
        my $o = $j->{operations}{$op};
        my %by = %{ $o->{outcomes} };
        my $failed = 0;
        $failed += $by{$_} for grep { !/^(?:ok|conflict|throttled|during_outage)$/ } keys %by;
        push @wrong, $op unless $by{ok} == $o->{ok} && $failed == $o->{failed};
    }
    is_deeply \@wrong, [], "$name: outcomes are those of the operations";
    $n = 0;
    $n += $_->{requests} for @{ $j->{phases} };
    is $n, $j->{requests}, "$name: its parts add up to the whole";
    is_deeply [rates($j, '')], [], "$name: each rate is its count by its seconds";
    return if !$j->{run_dir} || !-e "$stack->{dir}/$j->{run_dir}/intervals.jsonl";
    my (%sum, $lines);
    for (map { JSON::PP->new->decode($_) } grep { /"phase"/ } split /\n/, slurp("$stack->{dir}/$j->{run_dir}/intervals.jsonl")) {
        $sum{all} += $_->{requests};
        $sum{ $_->{phase} } += $_->{requests};
        $sum{"seconds $_->{phase}"} += $_->{seconds};
        $lines++;
    }
    is $sum{all}, $j->{requests}, "$name: the lines of its course add up to the whole" or diag explain \%sum;
    return if !$j->{window};
    is $sum{window}, $j->{window}{requests}, "$name: those of the window to the window";
    cmp_ok abs($sum{'seconds window'} - $j->{window}{seconds}), '<=', 0.05 + 0.01 * $sum{'seconds window'}, "$name: in as many seconds";
    is +(grep { $_->{name} eq 'window' } @{ $j->{phases} })[0]{requests}, $j->{window}{requests}, "$name: and the part that is the window";
    return;
}

# Counts, seconds and rates that stand in one object; each rate is told with so many digits.
my %of = (requests => ['requests', 'complete'], operations => ['operations_done'], actions => ['actions_done'], sign_ins => ['sign_ins_done'], items => ['items']);
my %within = (sign_ins => ['sign_in_seconds'], operations => ['measured_seconds'], actions => ['measured_seconds']);
sub rates {
    my ($v, $path) = @_;
    return map { rates($v->[$_], "$path\[$_]") } 0 .. $#$v if ref $v eq 'ARRAY';
    return () if ref $v ne 'HASH';
    my @wrong = map { rates($v->{$_}, "$path.$_") } sort keys %$v;
    for my $key (grep { /_per_s$/ && defined $v->{$_} } sort keys %$v) {
        my $what = $key =~ s/_per_s$//r;
        my ($count) = grep { exists $v->{$_} } @{ $of{$what} // [] };
        my ($seconds) = grep { defined $v->{$_} } @{ $within{$what} // [] }, 'measured_seconds', 'seconds';
        next if !defined $count || !defined $v->{$count} || !$seconds || !$v->{$seconds};
        my $least = $v->{$count} / ($v->{$seconds} + 0.006);
        my $most = $v->{$seconds} > 0.006 ? $v->{$count} / ($v->{$seconds} - 0.006) : 9e99;
        push @wrong, "$path.$key is $v->{$key}, but $v->{$count} in $v->{$seconds} s" if $v->{$key} < $least - 0.06 || $v->{$key} > $most + 0.06;
    }
    return @wrong;
}

sub counted {
    my (@args) = @_;
    my $before = $server->metric('drive_requests_total');
    my $r = $stack->sim([@args, '--json', 'f.json'], env => \%env);
    my $after = $server->metric('drive_requests_total');
    my $j = json_file("$stack->{dir}/f.json");
    my $name = join ' ', @args;
    is $j->{requests}, $after - $before - 1, "$name: the server counted as many requests" or diag $r->{out}, $r->{err}; # less the question itself
    adds_up($j, $name);
    return $j;
}

counted(qw(seed 2 0.01));
counted(qw(seed 2 0.01));
counted('check', '--only', 'storage,drain');
counted(qw(doctor));
my $j = counted(qw(run 3 4 60 3 --bigfiles 2x1@1 --reconnect-storm 1));
cmp_ok $j->{causes}{$_}, '>', 0, "run: cause $_" for qw(first_pass action heartbeat reconnect setup check);
counted(qw(pairs 5 6));
for (qw(upload:64KiB sign-in)) {
    my $one = counted('ramp', '2,3', qw(--hold 1s --settle 200ms --arrive 0 --no-stop --session), $_);
    cmp_ok $one->{steps}[1]{requests_per_s}, '>', 0, "$_: of the measured part" if /upload/;
}
my $apps = counted('ramp', '2,3', qw(--hold 3s --settle 1s --arrive 0 --no-stop --folders 4 --per-minute 60 --session apps));
cmp_ok $apps->{causes}{first_pass}, '>=', 5 * 4, 'apps that join a ramp list their folders, and that is counted';
cmp_ok $apps->{operations}{first_list}{ok}, '==', $apps->{causes}{first_pass}, 'each of them';
counted(qw(bigfiles 2 1));
counted(qw(bulk));
counted(qw(reads --times 2 --background 2));
counted('refusals', '--only', 'no_token,over_quota', qw(--background 2));
counted(qw(baseline --only drive --time 500ms));
counted(qw(clean --dry-run));
counted(qw(clean --yes));
done_testing;
