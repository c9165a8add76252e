# TMA Cloud as it is: the public v2 and late v3. What a server lacks is asked for first, told at the head of each report
# with what takes its place, and is never a failure; what it answers otherwise is understood.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use FakeTma;
use Runs;

my $dir = run_folder();
my $n = 0;

# Another command against a server; {json} is its result.
sub command {
    my ($d, @args) = @_;
    my $json = "$dir/tma" . ++$n . '.json';
    my $r = sim([@args, '--json', $json], env => { TMA_URL => $d->url }, dir => $dir);
    $r->{json} = json_file($json) if -s $json;
    return $r;
}
sub well {
    my ($r, $what) = @_;
    is $r->{status}, 0, "$what: ends well" or diag $r->{out}, $r->{err};
    is $r->{json}{failed}, 0, "$what: nothing failed" if $r->{json};
    return $r;
}
# Accounts cannot be removed by any call, and without a database they stay; but nothing is in them any more.
sub emptied {
    my ($d) = @_;
    my $r = command($d, qw(clean --yes));
    is_deeply [ grep { !/^the account \S+\@load\.test, empty now: DATABASE_URL is needed for it$/ } map { s/^not removed: //r } @{ check_of($r, 'clean')->{detail} // ['not run'] } ],
        [], 'clean: only empty accounts are left' or diag $r->{out}, $r->{err};
    is $d->state->{files}, 0, 'clean: no file is left';
    return;
}
sub check_of { my ($r, $name) = @_; return (grep { $_->{name} eq $name } @{ $r->{json}{checks} })[0] // {} }

# ---- v2 --------------------------------------------------------------------------------------------------------------

my @LACKS = ('edit locks', 'versions', 'change feed', 'paged listings', 'sub-users', 'storage configuration', 'jobs', 'recent files');
my $v2 = FakeTma->new;

subtest 'v2: seeded' => sub {
    like command($v2, 'doctor')->{out}, qr/^  note +capabilities +not known before `sim seed`/m, 'nothing is known of a fresh server';
    my $r = well(command($v2, qw(seed 3 0.01 --bytes-scale 0.01)), 'seed');
    is $v2->count(qr{^POST /api/signup$}), 4, 'each login signs up: there are no sub-users';
    is $v2->count(qr{^POST /api/user/signup-toggle$}), 3, 'signing up was off after the first, is switched on for them, and off again';
    is $v2->state->{folders} . '/' . $v2->state->{files}, '22/168', 'the whole tree';
    for my $lack (grep { $_ ne 'paged listings' && $_ ne 'versions' } @LACKS) { # of an empty account listings tell nothing
        like $r->{out}, qr/^server: no \Q$lack\E: \w.*\n(?:.*\n)*folders/m, "no $lack: told before the work, with what takes its place";
    }
    my $uploads = $v2->count(qr{^POST /api/files/upload});
    well(command($v2, qw(seed 3 0.01 --bytes-scale 0.01)), 'seed again');
    is $v2->count(qr{^POST /api/files/upload/bulk}) + $v2->count(qr{^POST /api/files/upload$}), $uploads + 1, 'nothing is made twice: sizes are strings, and there are no times';
};

subtest 'v2: doctor' => sub {
    my $r = command($v2, 'doctor');
    like $r->{out}, qr/^  ok +it has +bulk upload, event stream, trash(?:,|$)/m, 'what it has' or diag $r->{out};
    like $r->{out}, qr/^  note +it lacks +\Q$_\E: \w/m, "no $_: with what takes its place" for @LACKS, 'download ranges';
    unlike $r->{out}, qr/^  missing +(?:server|capabilities)/m, 'nothing of it is missing';
};

subtest 'v2: a run' => sub {
    my $before = @{ $v2->log };
    my $r = done_run(start_run($v2, qw(6 8 120 6), mix("download 20\nsave 30\nupload 10\ntrash 15\nrename 5\ncopy 10\nnew_folder 5\nmove 10\n")));
    well($r, 'run');
    my @requests = map { "$_->{method} $_->{path}" } splice @{ $v2->log }, $before;
    is scalar(grep { m{/lock$} } @requests), 1, 'whether there are locks is asked once';
    is scalar(grep { m{/changes} } @requests), 1, 'and so is a change feed';
    cmp_ok ops($r, 'save')->{ok}, '>', 0, 'saves are made';
    like $r->{out}, qr/^server: no edit locks: saves without either, the last one stays$/m, 'the head of the report tells how';
    like $r->{json}{note}, qr/no edit locks: .*no sub-users: owners alone|no sub-users: owners alone.*no edit locks: /, 'the note of the result too';
    is_deeply $r->{json}{capabilities}{lacks}, \@LACKS, 'and its capabilities';
    is_deeply [ @{ $r->{json}{capabilities}{has} }[ 0 .. 3 ] ], [ 'bulk upload', 'download ranges', 'event stream', 'trash' ], 'those that it has too';
    is check_of($r, 'ledger')->{status}, 'ok', 'acknowledged writes are there: of two that crossed each other any may be the last'
        or diag explain check_of($r, 'ledger');
    is check_of($r, 'versions')->{summary}, 'not offered: the server reports no versions', 'versions are not judged';
    is check_of($r, 'events')->{status}, 'ok', 'events are judged' or diag explain check_of($r, 'events');
    like check_of($r, 'events')->{summary}, qr/not announced by this server: trash/, 'but for those that never come';
    cmp_ok $r->{json}{causes}{relist}, '>', 0, 'folders named in events are listed';
};

subtest 'v2: a budget by address' => sub {
    $v2->rule(path => qr{^/api/files\?}, status => 429, after => 30, times => 3, headers => { 'Retry-After' => 1 }, body => { error => 'Too many requests from this IP, please try again later.' });
    my $r = well(done_run(start_run($v2, qw(3 8 30 3 --spread-addresses --no-ledger))), 'waited out');
    $v2->rules_clear;
    like $r->{out}, qr/^budgets +3 answers 429, /m, 'counted as waiting';
    my %from = map { $_->{peer} => 1 } grep { $_->{path} eq '/api/files/events' } @{ $v2->log };
    is scalar(grep { /^127\.1\.1\.[123]$/ } keys %from), 3, 'an address an app';
    my $h = sim([qw(run 50 8 1 5)], env => { TMA_URL => $v2->url }, dir => $dir);
    like $h->{err}, qr/no sub-users, 3 accounts would do: sim seed 0 SCALE --accounts 3/, 'more apps than streams: what would do' or diag $h->{out}, $h->{err};
};

subtest 'v2: a copy that brings deleted files back is told in plain words' => sub {
    my $d = FakeTma->new(revives => 1);
    well(command($d, qw(seed 0 0.01 --bytes-scale 0.01)), 'seed');
    spew("$dir/trashes", "trash 1\n");
    command($d, qw(run 1 8 240 3 --mix), "$dir/trashes"); # whatever comes of it
    my $r = command($d, 'bulk');
    is $r->{status}, 1, 'bulk finds it';
    like $r->{out}, qr/the copy \S+ holds \d+ files in \d+ folders, .*, its source \S+ \d+ files in \d+ folders, .*: deleted files are live again in the copy/, 'with both ids, and what it means'
        or diag $r->{out}, $r->{err};
};

subtest 'v2: the other commands' => sub {
    like well(command($v2, qw(bigfiles 2 1)), 'bigfiles')->{out}, qr/^server: no /m, 'bigfiles: told at the head';
    well(command($v2, 'bulk'), 'bulk');
    my $reads = well(command($v2, qw(reads --times 2 --background 0)), 'reads');
    is $reads->{json}{reads}{recent}{answer}, 'not_tried', 'reads: a call that is not there is not tried';
    my $r = well(command($v2, qw(refusals --tries 2 --within 30s --background 0 --only), 'no_*,unread_body,streams,wrong_password,locked*,stale*,name_empty,name_colon,name_taken,bad_token,file_name_*'), 'refusals');
    my $rows = $r->{json}{refusals};
    is $rows->{$_}{verdict}, 'not_tried', "refusals: $_ has nothing to stand on" for qw(no_upload unread_body streams locked_save stale_version);
    is $rows->{name_taken}{verdict}, 'allowed', 'refusals: a name twice is the server\'s own policy';
    is "$rows->{name_empty}{status} $rows->{name_empty}{reason}", '422 Validation failed: Name must be between 1 and 100 characters',
        'refusals: the reason is read although its field is called undefined';
    # This server really would: a folder moved into itself, and copies of it without an end.
    $v2->rule(path => qr{^/api/files/move$}, status => 200, body => { message => 'Files moved successfully.' });
    $rows = command($v2, qw(refusals --tries 1 --within 30s --background 0 --only), 'move_into_itself,copy_into_itself')->{json}{refusals};
    $v2->rules_clear;
    is $rows->{move_into_itself}{verdict}, 'failed', 'refusals: a folder moved into itself is found';
    is $rows->{copy_into_itself}{verdict}, 'not_tried', 'refusals: and is not copied into itself then';
    emptied($v2);
};

# ---- late v3 ---------------------------------------------------------------------------------------------------------

my $v3 = FakeTma->new(flavour => 'v3', page_most => 7, queue_above => 3);

subtest 'late v3' => sub {
    well(command($v3, qw(seed 2 0.01 --bytes-scale 0.01)), 'seed');
    is $v3->count(qr{^POST /api/user/sub-users}), 2, 'sub-users are made';
    cmp_ok $v3->count(qr{^GET /api/files\?.*cursor=p7}), '>', 0, 'pages are followed';
    my $r = command($v3, 'doctor');
    like $r->{out}, qr/^  ok +it has +paged listings, sub-users, storage configuration, jobs, bulk upload, download ranges, event stream, trash, recent files(?:,|$)/m, 'what it has'
        or diag $r->{out};
    like $r->{out}, qr/^  note +it lacks +$_: \w/m, "no $_" for 'edit locks', 'versions', 'change feed';
    $r = well(done_run(start_run($v3, qw(6 8 120 5), mix("download 30\nsave 20\nupload 10\ntrash 20\ncopy 10\nmove 10\n"))), 'run');
    cmp_ok ops($r, 'copy')->{ok}, '>', 0, 'copies are made';
    cmp_ok ops($r, 'job status')->{ok} // 0, '>', 0, 'their jobs are asked for' if $r->{json}{operations}{'job status'};
    is check_of($r, 'events')->{status}, 'ok', 'batches are taken apart' or diag explain check_of($r, 'events');
    is check_of($r, 'ledger')->{status}, 'ok', 'weak ETags are no versions' or diag explain check_of($r, 'ledger');
    $r = well(command($v3, 'bulk'), 'bulk');
    cmp_ok $v3->count(qr{^GET /api/files/jobs/}), '>', 3, 'queued work is waited for';
    emptied($v3);
};

done_testing;
