# The judge's own weak spots: a clock that is set in mid-run, a simulator that is killed, a ledger cut short or damaged, a
# full disk for the run folder, a database and a store that cannot be had. Each is said, and none passes in silence.
use strict;
use warnings;
use File::Copy ();
use Test::More;
use lib 'tests/lib';
use Drive;
use Sim;

my $stack = Sim::Stack->new('--server-args=--login-budget 1000'); # many commands in a short time
is $stack->sim([qw(seed 1 0.01 -q)])->{status}, 0, 'seed';
my $dir = $stack->{dir};
spew("$dir/mix", "download 10\nsave 40\nupload 20\nrename 15\nmove 5\ntrash 10\ncopy 5\nnew_folder 5\n");
my @RUN = (qw(run 6 10 240), 5, qw(--mix mix -q));

sub checks { my ($json) = @_; return { map { $_->{name} => $_ } @{ json_file("$dir/$json")->{checks} } } }
sub in_window { my ($h) = @_; return sim_await($h, sub { $_[0]{out} =~ /window begins/ }) }

# ---- the wall clock is set back and forth in mid-run: figures, length and verdict are those of any run
my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1';
SKIP: {
    skip 'no libfaketime, or a sanitizer that wants to be first', 7 if !$faketime || sanitized();
    spew("$dir/clock", '+0');
    my %step = (LD_PRELOAD => $faketime, FAKETIME_TIMESTAMP_FILE => "$dir/clock", FAKETIME_NO_CACHE => 1, FAKETIME_DONT_FAKE_MONOTONIC => 1, DONT_FAKE_MONOTONIC => 1);
    my $h = $stack->start([qw(run 6 10 240 6 --mix mix --run-dir stepped --json stepped.json)], env => \%step);
    in_window($h);
    for my $to ('-7200', '+3600', '+0') { # at the end as it was: the store takes no request of another hour
        my $written = $stack->sql('SELECT count(*) FROM changes');
        spew("$dir/clock", $to);
        ok wait_until(sub { $stack->sql('SELECT count(*) FROM changes') > $written + 2 }), "$to s: the apps go on";
    }
    sim_finish($h);
    is $h->{status}, 0, 'a clock that is set in mid-run: status 0' or diag $h->{out}, $h->{err};
    my $j = json_file("$dir/stepped.json");
    cmp_ok abs($j->{seconds} - 6), '<', 0.5, 'the window is as long as asked for';
    cmp_ok $j->{operations}{save}{max_ms}, '<', 60_000, 'no latency holds the step';
    is $stack->sim([qw(check --run stepped)])->{status}, 0, 'and it can be judged again';
}

# ---- the same judgement again, from the run's folder: every row, the same figures
my $before = $stack->sql('SELECT max(seq) FROM changes');
my $r = $stack->sim([@RUN, qw(--run-dir kept --json kept.json)]);
is $r->{status}, 0, 'a run' or diag $r->{out}, $r->{err};
is $stack->sim([qw(check --run kept --json again.json)])->{status}, 0, 'judged again: status 0';
my ($then, $now) = (checks('kept.json'), checks('again.json'));
is_deeply [map { "$_ $now->{$_}{status} $now->{$_}{examined}" } sort keys %$now], [map { "$_ $then->{$_}{status} $then->{$_}{examined}" } sort keys %$then], 'every check, with the same figures';
is_deeply json_file("$dir/again.json")->{ledger}, json_file("$dir/kept.json")->{ledger}, 'the ledger to the last count';
like $r->{out}, qr/^ +saves: [\d,]+ acknowledged, [\d,]+ found$/m, 'one line a kind';
my $saves = json_file("$dir/kept.json")->{ledger}{saves};
ok $saves->{acknowledged} > 0 && $saves->{acknowledged} == $saves->{found}, 'in the JSON as well';

# ---- a second one of what an app asked for once: the server's fault during the run, somebody else's wish afterwards
sub twin {
    my ($id, $made) = @_;
    $stack->sql("INSERT INTO files SELECT (jsonb_populate_record(f, jsonb_build_object('id', '$id', 'path', '$id', 'created_at', $made,"
        . " 'name', regexp_replace(name, '(\\.[^.]*)?\$', ' (77)\\1')))).* FROM files f WHERE id ="
        . " (SELECT c.data->>'id' FROM changes c JOIN files u ON u.id = c.data->>'id' WHERE c.type = 'file.uploaded' AND c.seq > $before"
        . " AND u.name = c.data->>'name' AND u.parent_id = c.data->>'parentId' AND u.deleted_at IS NULL ORDER BY c.seq LIMIT 1)"); # as it was asked for
    my $c = $stack->sim([qw(check --run kept --only changes)]);
    $stack->sql("DELETE FROM files WHERE id = '$id'");
    return $c;
}
my $during = twin('twinDuringTheRun', "(SELECT max(at) FROM changes)");
is $during->{status}, 1, 'a twin made during the run' or diag $during->{out}, $during->{err};
like $during->{out}, qr/file twinDuringTheRun \(.* \(77\)/, 'is found';
my $after = twin('twinAfterTheRun1', "now() + interval '5 s'");
is $after->{status}, 0, 'and one made since is none of its business' or diag $after->{out}, $after->{err};

# ---- a ledger that lost its end, or something in the middle
sub damaged {
    my ($name, $how) = @_;
    mkdir "$dir/$name";
    File::Copy::copy("$dir/kept/$_", "$dir/$name/$_") or die $! for qw(run.json ledger.bin);
    my $bytes = slurp("$dir/$name/ledger.bin");
    spew("$dir/$name/ledger.bin", $how->($bytes));
    return $stack->sim(['check', '--run', $name, '--json', "$name.json"]);
}
$r = damaged('torn', sub { substr $_[0], 0, length($_[0]) - 30 });
is $r->{status}, 3, 'a ledger cut short: status 3';
like $r->{err}, qr/the ledger is cut short: it ends within a record/, 'said plainly';
is checks('torn.json')->{ledger}{status}, 'ok', 'what is left was judged';
$r = damaged('middle', sub { my $b = $_[0]; substr($b, length($b) / 2, 1) ^= "\x40"; $b });
is $r->{status}, 3, 'a flipped bit in the middle: status 3';
like $r->{err}, qr/the ledger is damaged: records are missing from its middle/, 'said plainly';
is checks('middle.json')->{ledger}{status}, 'not_run', 'nothing is judged by it';
$r = damaged('piece', sub { my $b = $_[0]; substr($b, 2000, 1000) = ''; $b });
is $r->{status}, 3, 'a piece is missing: status 3';
spew("$dir/piece/run.json", '{"logins": ["ow');
$r = $stack->sim([qw(check --run piece)]);
is $r->{status}, 3, 'the settings of the run are damaged: status 3';
like $r->{err}, qr/run\.json cannot be read/, 'and named';

# ---- the simulator is killed: up to the last flush all is there
my $h = $stack->start([qw(run 6 10 240 60 --mix mix --run-dir killed)]);
ok in_window($h), 'at work';
ok wait_until(sub { -s "$dir/killed/ledger.bin" > 6000 }), 'something was flushed';
kill 'KILL', $h->{pid};
sim_finish($h);
$r = $stack->sim([qw(check --run killed --json killed.json)]);
is $r->{status}, 0, 'killed: what was flushed is judged' or diag $r->{out}, $r->{err};
my $k = checks('killed.json')->{ledger};
cmp_ok $k->{examined}, '>', 0, 'and it is something';
like $k->{summary}, qr/cut short: its last moments are missing/, 'that its end is missing is said';

# ---- the disk of the run folder is full
my @small = (wrap => ['sh', '-c', 'trap "" XFSZ; ulimit -f 8; exec "$@"', 'sh']);
$r = $stack->sim([@RUN, qw(--run-dir full)], @small);
is $r->{status}, 3, 'no room for the ledger: status 3' or diag $r->{out}, $r->{err};
like $r->{err}, qr{cannot write the ledger full/ledger\.bin: File too large}, 'said plainly';
$r = $stack->sim([qw(check --run full)]);
is $r->{status}, 3, 'nor can it be judged later on as if it were whole';
like $r->{err}, qr/cut short/, 'for that reason';

# ---- what was named and cannot be had
my %blind = (TMA_LOAD_S3_ENDPOINT => 'http://127.0.0.1:9');
$r = $stack->sim([qw(check --only objects)], env => \%blind);
is $r->{status}, 3, 'a store that does not answer: status 3';
like $r->{err}, qr/the bucket of TMA_LOAD_S3_\* was given and is not to be had: .*refused/, 'said plainly, before any check';
$r = $stack->sim([qw(check)], env => \%blind);
is $r->{status}, 3, 'also among checks that hold';
(my $other = $stack->env->{DATABASE_URL}) =~ s{/[^/?]+(\?|$)}{/template1$1};
$r = $stack->sim([qw(check)], env => { DATABASE_URL => $other });
is $r->{status}, 3, 'another database: status 3' or diag $r->{out}, $r->{err};
$r = $stack->sim([qw(check)], env => { DATABASE_URL => 'postgresql://nobody@127.0.0.1:9/x' });
is $r->{status}, 3, 'a database that does not answer: status 3' or diag $r->{out}, $r->{err};
like $r->{err}, qr/refused|cannot connect|database/i, 'said plainly';
$r = $stack->sim([@RUN], env => \%blind);
is $r->{status}, 3, 'a run that cannot be judged whole: status 3';

# ---- others have worked in the same accounts since: what they changed is no fault of the server, and is said
$r = $stack->sim([qw(check --run kept --json since.json)]);
is $r->{status}, 0, 'others worked in the accounts since: no alarm' or diag $r->{out}, $r->{err};
my $since = checks('since.json');
like "$since->{ledger}{summary} $since->{changes}{summary}", qr/; not judged, as somebody else changed them too: \d+ items?/, 'but said';
my $lost = $stack->sql("SELECT data->>'id' FROM changes c WHERE type = 'folder.created' AND seq > $before"
    . " AND NOT EXISTS (SELECT FROM changes d WHERE d.data->>'id' = c.data->>'id' AND d.seq > c.seq) ORDER BY seq LIMIT 1");
$stack->sql("UPDATE files SET name = 'planted' WHERE id = '$lost'");
$r = $stack->sim([qw(check --run kept --only ledger)]);
is $r->{status}, 1, 'what no change explains is still found';
like $r->{out}, qr/folder \Q$lost\E: app \d+ was told/, 'and named';

# ---- the server is filled anew: a ledger of the accounts that were there tells nothing of these
is $stack->sim([qw(clean --yes -q)])->{status}, 0, 'cleaned';
is $stack->sim([qw(seed 1 0.01 -q)])->{status}, 0, 'and filled anew';
$r = $stack->sim([qw(check --run kept --json anew.json)]);
is $r->{status}, 3, 'a run of accounts that are gone: status 3' or diag $r->{out};
like $r->{err}, qr/the accounts of that run are not here: its owner\@load\.test was \w+, this one is \w+/, 'said plainly';
is_deeply [grep { $_->{status} eq 'violated' } values %{ checks('anew.json') }], [], 'and no alarm';
$r = $stack->sim(['check', '--run', '']);
is $r->{status}, 2, 'a run without a name: status 2';

# ---- the login limiter asks for a quarter of an hour: an interruption does not wait for it
$stack->stack(qw(stop server));
is $stack->stack(qw(start server), '--server-args=--login-budget 1')->{status}, 0, 'a server that lets one in';
eval { Drive->enter($stack->env->{TMA_URL}, 'login', { email => 'owner@load.test', password => 'load-test-password' }) }; # spends it, unless it is spent
for my $command ([qw(refusals --tries 1 --background 0 --fresh-sign-in)], [qw(reads -n 1 --background 0 --fresh-sign-in)], [qw(clean --dry-run)]) {
    my $h = $stack->start($command);
    ok sim_await($h, sub { $_[0]{err} =~ /sign-in limited by the server: waiting 1\d min/ }), "$command->[0]: says how long it waits";
    kill 'INT', $h->{pid};
    is sim_finish($h)->{status}, 130, "$command->[0]: ends when it is interrupted";
}

done_testing;
