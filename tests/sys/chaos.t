#!/usr/bin/env perl
# Outages that a run orders: each kind once against each part of a real stack, in one run. drivesim stays up and keeps
# its schedule, the outages stand on its time axis, nobody signs in anew, and in the end nothing acknowledged is missing.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Sim;
use Test::More;

my $stack = Sim::Stack->new('--native');
is $stack->sim(['seed', 1, 0.01, '-q'])->{status}, 0, 'seeded';

subtest 'what cannot be ordered' => sub {
    for my $case (
        [2, 'kill:server', qr/--chaos takes VERB:PART\@SECOND/],
        [2, 'maim:server@1', qr/not "maim:server\@1"/],
        [2, 'kill:disk@1', qr/parts: server redis postgres store/],
        [2, 'fill:redis@1', qr/fill for store and postgres/],
        [2, 'kill:server@1+x', qr/not "kill:server\@1\+x"/],
        [2, '', qr/--chaos takes/],
        [2, 'kill:server@9', qr/kill server at 9\.0 s: the run ends after/],
        [2, 'kill:store@1+3,pause:store@2', qr/pause store at 2\.0 s: store is away already/],
        ) {
        my ($status, $text, $sentence) = @$case;
        my $r = $stack->sim(['run', 1, 1, 1, 5, '--chaos', $text]);
        is $r->{status}, $status, "'$text'";
        like $r->{err}, $sentence, '… says why';
    }
    my $r = $stack->sim(['run', 1, 1, 1, 5, '--chaos', 'kill:server@1'], dir => '/');
    is $r->{status}, 3, 'a server that is not of a stack in this folder';
    like $r->{err}, qr/of drivesim's own only/, '… is left alone';
    is $stack->stack('status')->{status}, 0, 'and nothing was taken away';
};

# Seconds of the window; the parts are brought back before the next one goes, on a slow machine too.
my @orders = (
    ['kill', 'server', 1, 1], ['pause', 'server', 3.5, 1.5], ['kill', 'redis', 5.5, 1], ['pause', 'redis', 7.5, 1.5],
    ['kill', 'store', 10, 1], ['pause', 'store', 12.5, 1.5], ['fill', 'store', 15, 2], ['kill', 'postgres', 18, 1],
    ['pause', 'postgres', 21, 1.5], ['fill', 'postgres', 23, 2.5],
);
my $chaos = join ',', map { "$_->[0]:$_->[1]\@$_->[2]+$_->[3]" } @orders;
my $h = $stack->sim(['run', 6, 10, 120, 27, '--chaos', $chaos, '--json', 'run.json']);
my $json = json_file("$stack->{dir}/run.json");

is $h->{status}, 0, 'an outage that was ordered fails no run by itself' or diag $h->{out}, $h->{err}, $stack->stack('logs', 'server')->{out};
like $h->{out}, qr/taken away: kill server at 1\.0 s for 1\.0 s, pause server at/, 'the plan says what will be taken away';
like $h->{out}, qr/^ordered: kill server from \d\d:\d\d:\d\dZ for \d+\.\d s$/m, 'an interval tells what was';
like $h->{out}, qr/^ +\d+\.\d s  for +\d+\.\d s  ordered: fill postgres$/m, 'so does the summary';

subtest 'the time axis' => sub {
    my @ordered = grep { $_->{ordered} } @{ $json->{timeline} };
    is scalar @ordered, scalar @orders, 'all that was ordered';
    for (@orders) { # each by a process of its own: on a slow machine one may be overtaken
        my ($verb, $part, $at, $for) = @$_;
        my ($o, @more) = grep { $_->{what} eq "$verb $part" } @ordered;
        ok $o && !@more, "$verb $part" or next;
        cmp_ok $o->{at_seconds}, '>=', $at - 0.01, '… not too early';
        cmp_ok $o->{seconds}, '>=', $for, '… and so long';
    }
    my %seen = map { $_->{what} => $_ } grep { !$_->{ordered} } @{ $json->{timeline} };
    for my $what ('server unreachable', '503 STORAGE_UNAVAILABLE', '503 DATABASE_UNAVAILABLE') {
        ok $seen{$what}, "seen: $what" or diag explain [sort keys %seen];
        cmp_ok $seen{$what}{failures} // 0, '>', 0, '… by requests';
    }
    cmp_ok $json->{outages}{count}, '>=', 3, 'outages are counted';
    cmp_ok $json->{outages}{seconds}, '>', 0, 'and their time';
};

subtest 'the schedule' => sub {
    my $n = $json->{actions};
    is $n->{planned}, 6 * 2 * 27, 'planned';
    is $n->{done} + $n->{conflicts} + $n->{failed} + $n->{during_outage} + $n->{unfinished} + $n->{nothing_to_act_on} + $n->{not_started},
        $n->{planned}, 'each action has one end';
    my ($away, $asked) = (0, 0);
    $away += $_->{seconds} for grep { $_->{ordered} } @{ $json->{timeline} };
    $asked += $_->[3] for @orders;
    SKIP: {
        skip "this machine needs $away s for outages of $asked s", 1 if $away > 1.5 * $asked;
        cmp_ok $n->{not_started}, '<', $n->{planned} / 10, 'nearly all were started: an app that waits for a copy does nothing else';
    }
    cmp_ok $n->{during_outage}, '>', 0, 'some failed in an outage';
    is $json->{failed}, 0, 'which is no failure' or diag explain $json->{failures};
    my ($most) = sort { $b <=> $a } map { $json->{operations}{$_}{from_due}{max_ms} // 0 } qw(download save upload);
    cmp_ok $most, '>', 1000, 'what was late counts from when it was due';
};

subtest 'coming back' => sub {
    is_deeply $json->{sessions}, { kept => 2, signed_in => 0 }, 'nobody signed in again';
    is $json->{apps}{streams_up}, 6, 'all streams are up again';
};

subtest 'the verdict' => sub {
    my %check = map { $_->{name} => $_ } @{ $json->{checks} };
    for my $name (qw(drain aggregates storage structure objects ledger answers reads versions locks changes convergence database server)) {
        is $check{$name}{status}, 'ok', "$name: " . ($check{$name}{summary} // '') or diag explain $check{$name};
    }
    isnt $check{events}{status}, 'violated', 'no event is missed' or diag explain $check{events};
};

subtest 'interrupted' => sub {
    my $run = $stack->start(['run', 2, 5, 60, 300, '--chaos', 'kill:store@0+300,pause:postgres@0.5+300']);
    ok sim_await($run, sub { $_[0]{out} =~ /measured window begins/ }), 'a run';
    ok wait_until(sub { $stack->stack('status')->{status} == 3 }), 'that has taken the store away';
    my ($postgres) = $stack->stack('status')->{out} =~ /^postgres +up +\d+ +(\d+)/m;
    ok wait_until(sub { slurp("/proc/$postgres/stat") =~ /\) T / }), 'and stopped Postgres';
    kill 'INT', $run->{pid};
    is sim_finish($run)->{status}, 130, 'ends in order' or diag $run->{err};
    is $stack->stack('status')->{status}, 0, 'everything is back';
    unlike slurp("/proc/$postgres/stat"), qr/\) T /, 'and goes on';
};

done_testing;
