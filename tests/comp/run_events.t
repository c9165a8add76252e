# Event streams of a run and what goes wrong with them: cuts, storms, endless events, slow readers; events that are lost,
# doubled, late or out of order (E08 E14 E15).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;
use Time::HiRes qw(time);

# ---- what mostly waits is started together
my (%drive, %run);

# Streams that are cut again and again, by a server that asks for 1.5 s of patience, once.
$drive{E08} = FakeDrive->new(sub_users => 1, folders => 4, files => 4, replay => 1, retry => 1500);
$run{E08} = start_run($drive{E08}, qw(3 4 0 300));

# All streams broken at the second second; the server repeats what was missed.
$drive{storm} = FakeDrive->new(sub_users => 2, folders => 4, files => 20, replay => 1);
$run{storm} = start_run($drive{storm}, qw(9 5 120 12 --reconnect-storm 2), mix("save 1\n"));

# Events that do not come, come twice, in the wrong order, or late.
for my $fault (qw(drop twice swap late)) {
    $drive{$fault} = FakeDrive->new(sub_users => 1, folders => 3, files => 20, event_faults => [$fault]);
    $run{$fault} = start_run($drive{$fault}, qw(4 4 60 20 --run-dir), $fault, mix("save 1\n"));
}
$drive{none} = FakeDrive->new(sub_users => 1, folders => 3, files => 20);
$run{none} = start_run($drive{none}, qw(4 4 60 6 --fail-on event.p50<20s --fail-on event_visible.p50<20s --fail-on events.lost==0), mix("save 1\nmove 1\nupload 1\n"));

sub check_of { my ($h, $name) = @_; return (grep { $_->{name} eq $name } @{ $h->{json}{checks} })[0] }

subtest 'E08: streams that are cut come back with their last id, after the wait that the server asks for' => sub {
    my ($h, $d) = ($run{E08}, $drive{E08});
    ok in_window($h), 'running';
    $d->set(retry => 0); # what was asked once holds
    for (1 .. 3) {
        $d->touch({ n => 2 });
        my $open = $d->count(qr{/events});
        my $cut = time;
        $d->cut_streams;
        ok wait_until(sub { $d->count(qr{/events}) >= $open + 3 }), 'all three are back';
        my @back = map { $_->{t} - $cut } (grep { $_->{path} =~ m{/events} } @{ $d->log })[ $open .. $open + 2 ];
        is scalar(grep { $_ < 1.4 } @back), 0, 'none before the time' or diag "@back";
    }
    end_run($h);
    my @opened = grep { $_->{path} =~ m{/events} } @{ $d->log };
    is scalar(@opened), 12, 'opened once, and once more after each cut: no tight loop';
    is scalar(grep { !defined $_->{last_id} } @opened[ 3 .. 11 ]), 0, 'with the last id';
    is $h->{json}{reconnects}, 9, 'counted';
    like $h->{out}, qr/^streams +9 reconnects$/m, 'and shown';
    is $h->{json}{failed}, 0, 'no failure' or diag $h->{out};
};

subtest 'ids move by blocks without data too, a bare one ends them, and broken UTF-8 is no reason to lose one' => sub {
    my $d = FakeDrive->new(sub_users => 0, folders => 2, files => 2);
    my $h = start_run($d, qw(1 2 0 300 --no-ledger));
    ok in_window($h), 'running';
    my $again = sub {
        my ($raw, $want, $what) = @_;
        $d->event({ raw => $raw });
        my $open = $d->count(qr{/events});
        $d->cut_streams;
        ok wait_until(sub { $d->count(qr{/events}) > $open }), "back after $what";
        is +(grep { $_->{path} =~ m{/events} } @{ $d->log })[-1]{last_id}, $want, $what;
    };
    $again->("id: one\n\n", 'one', 'a block with an id alone');
    $again->(": nothing\n\n", 'one', 'a connection without any id');
    $again->("id: two\ndata: {}\n", 'one', 'a block that was cut off');
    $again->("id: a\0b\n\n", 'one', 'an id with a NUL');
    $again->("id: \xE2\x80\xA6\n\n", "\xE2\x80\xA6", 'an id beyond ASCII');
    $again->('id: ' . ('x' x 2000) . "\n\n", 'x' x 2000, 'a long id');
    $again->("id\n\n", undef, 'a bare id');
    end_run($h);
};

subtest 'what changed before the stream was open is asked for once it is' => sub {
    for my $feed (1, 0) {
        my $d = FakeDrive->new(sub_users => 0, folders => 3, files => 2, caps => { feed => $feed });
        $d->rule(path => qr{/events}, status => 503); # until the rules are cleared
        my $h = start_run($d, qw(1 3 0 300 --no-ledger));
        ok wait_until(sub { $d->count(qr{^GET /api/files\?.*parentId}) >= 3 && $d->count(qr{/events}) }), 'listed, and the stream not open yet';
        my $folder = $d->touch;
        my ($lists, $changed) = ($d->count(qr{^GET /api/files\?.*parentId}), $feed ? 1 : 3);
        $d->rules_clear;
        ok wait_until(sub { $d->count(qr{^GET /api/files\?.*parentId}) >= $lists + $changed }), 'listed again, long before the minute';
        end_run($h);
        my @again = (grep { $_->{path} =~ m{^/api/files\?.*parentId} } @{ $d->log })[ $lists .. $d->count(qr{^GET /api/files\?.*parentId}) - 1 ];
        my @hit = grep { $_->{path} =~ /parentId=$folder\b/ } @again;
        is scalar(@hit), 1, 'the folder that changed';
        is scalar(@again), $changed, $feed ? 'and no other' : 'as nobody tells which, all';
        is $d->count(qr{/changes\?cursor=}), $feed, $feed ? 'by one question' : 'without a question';
        is $h->{json}{causes}{relist}, scalar(@again), 'counted as re-lists';
    }
};

subtest 'E14: a storm of events is one pass at a time, and one again and again' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 8, files => 4);
    my $h = start_run($d, qw(2 8 0 300 --no-ledger));
    ok in_window($h), 'running';
    $d->rule(path => qr{^/api/files\?}, delay => 0.6);
    my $from = time;
    my @logins = ('owner@load.test', 'user-1@load.test');
    my $lists = sub { my ($login) = @_; return grep { $_->{path} =~ m{^/api/files\?} && ($_->{login} // '') eq $login && $_->{t} > $from } @{ $d->log } };
    ok wait_until(sub { $d->touch({ n => 1 }); select undef, undef, undef, 0.1; return !grep { 3 > $lists->($_) } @logins }), 'listed while changes go on';
    my %seen = map { $_ => [ $lists->($_) ] } @logins;
    my $took = time - $from;
    end_run($h);
    for my $login (@logins) {
        my @lists = @{ $seen{$login} };
        cmp_ok scalar(@lists), '<=', $took / 2 + 0.5, "$login: not once an event, which are gathered for 2 s";
        is scalar(grep { $lists[$_]{t} < $lists[ $_ - 1 ]{t} + 0.55 } 1 .. $#lists), 0, "$login: one at a time";
    }
};

subtest 'slow readers are let go, and the figures of the others are as ever' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 20, replay => 1, backlog => 4000);
    my $h = start_run($d, qw(8 4 60 5 --slow-readers 25%), mix("save 1\n"));
    ok in_window($h), 'running';
    $d->touch({ n => 10 }) for 1 .. 20;
    done_run($h);
    is $h->{json}{slow_readers}{apps}, 2, 'a quarter of eight';
    cmp_ok $d->state->{slow_ended} // 0, '>=', 2, 'the server ended their streams';
    is check_of($h, 'events')->{status}, 'ok', 'they are no violation' or diag explain check_of($h, 'events');
    cmp_ok ops($h, 'event')->{ok}, '>', 0, 'the others hear of each other';
    cmp_ok ops($h, 'event')->{p50_ms}, '<', 20_000, '… in time';
    is sim([qw(run 1 1 1 1 --slow-readers 120%)], env => { TMA_URL => $d->url })->{status}, 2, 'a share above all is none';
};

subtest 'E15: an endless event ends the stream by name, and everything is listed again' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 4);
    my $h = start_run($d, qw(2 4 0 300 --report-every 1));
    ok in_window($h), 'running';
    my $lists = $d->count(qr{^GET /api/files\?});
    $d->event({ raw => 'data: ', pad => 3 << 20 });
    ok wait_until(sub { $d->count(qr{^GET /api/files\?}) >= $lists + 8 }), 'all folders of both apps';
    ok sim_await($h, sub { $_[0]{out} =~ /.*^interval [^\n]* streams up (\d) of 2$/ms && $1 == 2 }), 'both streams are back';
    end_run($h);
    like $h->{out}, qr/^ +2  stream connect: 200 an event of more than # KiB: the stream was given up$/m, 'named' or diag $h->{out};
    is $h->{json}{failed}, 2, 'and not healthy';
};

subtest 'all streams broken at once come back spread out, and nothing is lost' => sub {
    my ($h, $d) = (done_run($run{storm}), $drive{storm});
    is $h->{status}, 0, 'healthy' or diag $h->{out}, $h->{err};
    my $s = $h->{json}{storm};
    is $s->{streams_broken}, 9, 'nine were broken';
    is $s->{back}, 9, 'nine are back';
    cmp_ok $s->{seconds_until_all_back}, '>=', 0.5, 'not at once';
    is $s->{refused_429}, 0, 'none was refused';
    cmp_ok $s->{events_replayed}, '>', 0, 'what was missed was repeated';
    like $h->{out}, qr/^storm: all 9 event streams are back after \d+\.\d s$/m, 'told when it is over';
    my @again = sort { $a <=> $b } (map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $d->log })[ 9 .. 17 ];
    cmp_ok $again[-1] - $again[0], '>', 0.1, 'spread out';
    is check_of($h, 'events')->{status}, 'ok', 'events are judged across the gap' or diag explain check_of($h, 'events');
    is $h->{json}{events}{lost}, 0, 'none is lost';
    cmp_ok $h->{json}{events}{expected}, '>', 50, 'of many';
};

subtest 'events as figures' => sub {
    my $h = done_run($run{none});
    is $h->{status}, judged($h, 0), 'thresholds can name them' or diag $h->{out}, $h->{err};
    my $e = $h->{json}{events};
    cmp_ok $e->{expected}, '>', 10, 'changes were to reach streams';
    is $e->{seen}, $e->{expected}, 'all did';
    is $e->{$_}, 0, "none $_" for qw(lost duplicate out_of_order late);
    like $h->{out}, qr/^events: +\d+ expected, \d+ seen, 0 lost, 0 duplicate, 0 out of order, 0 late$/m, 'in the text';
    # Each change at three other apps; the acting one does not count.
    is ops($h, 'event')->{ok}, $e->{expected} * 3 / 4, 'the figures are of the others';
    cmp_ok ops($h, 'event_visible')->{max_ms}, '>', ops($h, 'event')->{p50_ms}, 'seen later than heard of';
    like $h->{out}, qr/^event visible +\d+ +0 +\d/m, 'a row of the table';
};

subtest 'events that are lost, doubled, late or out of order are told apart' => sub {
    my %want = (drop => 'lost', twice => 'duplicate', swap => 'out_of_order', late => 'late');
    my %says = (drop => qr/never got the event of the save of file/, twice => qr/got an event of file .* once more/,
        swap => qr/after one of a higher number/, late => qr/heard of the save of file .* \d\.\d s after its answer/);
    for my $fault (sort keys %want) {
        my $h = done_run($run{$fault});
        my $c = check_of($h, 'events');
        is $c->{status}, 'violated', "$fault: violated" or diag $h->{out};
        cmp_ok $h->{json}{events}{ $want{$fault} }, '>=', 1, "$fault: counted as $want{$fault}";
        my @other = grep { $_ ne $want{$fault} && $h->{json}{events}{$_} } qw(lost duplicate late), $fault eq 'late' ? () : 'out_of_order';
        is "@other", '', "$fault: as nothing else" or diag explain $c;
        like join("\n", @{ $c->{detail} }), $says{$fault}, "$fault: said what, of which app, file and time";
        like $c->{detail}[0], qr/look: SELECT seq, type, at FROM changes WHERE data->>'id' = '\w+'/, "$fault: and how to look it up";
    }
    my $again = sim([qw(check --run drop --only events)], env => { TMA_URL => $drive{drop}->url }, dir => run_folder());
    is $again->{status}, 1, 'the same from the run folder' or diag $again->{out}, $again->{err};
};

done_testing;
