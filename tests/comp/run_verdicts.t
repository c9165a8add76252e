# What counts as failed, as a conflict, as waiting, as wrong content (K11 X11).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

# ---- 429 is waited out: neither latency nor failure
{
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 10);
    my $h = start_run($d, qw(4 4 60 5));
    in_window($h);
    $d->rule(path => qr{/(download|lock)$}, status => 429, times => 4, headers => { 'Retry-After' => 8 }, body => { error => 'Too many requests' });
    done_run($h);
    is $h->{status}, 0, 'a spent budget is no failure' or diag $h->{out};
    is $h->{json}{throttled}, 4, 'each answer is counted';
    cmp_ok $h->{json}{waited_seconds}, '>=', 32, 'the wait is reported';
    for my $op (qw(download lock save)) {
        cmp_ok ops($h, $op)->{max_ms} // 0, '<', 7900, "and is in no latency of $op";
        cmp_ok ops($h, $op)->{from_due}{max_ms} // 0, '<', 7900, "nor in $op\'s from the due time" if $op ne 'lock';
    }
    # A check that uses no session of the run has to sign in.
    $d->rule(path => qr{/api/login$}, status => 429, times => 1, headers => { 'Retry-After' => 3 }, body => { error => 'Too many logins' });
    my $c = sim(['check', '--fresh-sign-in', '--run', $h->{json}{run_dir}], dir => run_folder(), env => { TMA_URL => $d->url });
    like $c->{err}, qr/budget is spent: waiting 3\.0 s/, 'the checks say that they wait to sign in';
    is $c->{status}, 0, 'and do' or diag $c->{out};
}

# ---- a server that cannot now is asked again for the folder of the big files
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 3);
    my $h = start_run($d, qw(2 2 10 4 --bigfiles 1x0.1@0.5));
    in_window($h);
    $d->rule(path => qr{/api/files/folder$}, method => 'POST', status => 503, times => 1, body => { message => 'away', error => 'DATABASE_UNAVAILABLE' });
    done_run($h);
    is ops($h, 'big_upload')->{ok}, 1, 'big files outlast a 503 before them' or diag $h->{out}, $h->{err};
}

# ---- conflicts are the server working as designed; the app learns better
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 3);
    my $h = start_run($d, qw(8 2 120 5), mix("save 1\n"));
    in_window($h);
    $d->rule(path => qr{/lock$}, method => 'POST', status => 423, times => 5, body => { message => 'held', error => 'LOCKED' });
    done_run($h);
    is $h->{status}, 0, 'locks held by others and stale versions: no failure' or diag $h->{out};
    cmp_ok ops($h, 'save')->{outcomes}{conflict}, '>=', 5, 'but conflicts';
    is $d->state->{locks}, 0, 'each lock was let go';
    cmp_ok $d->count(qr{^DELETE .*/lock$}), '==', ops($h, 'lock')->{ok}, 'as many as were taken';
    cmp_ok $h->{json}{actions}{conflicts}, '>=', 5, 'counted as actions too';
    cmp_ok $h->{json}{causes}{relist}, '>', 0, 'after which the folder is listed again';
    # A server that cannot get at its store tells nothing of a file: neither that it is there nor that it is lost.
    $d->rule(path => qr{/download$}, status => 503, body => { message => 'The store is away', error => 'STORAGE_UNAVAILABLE' });
    my $c = sim(['check', '--only', 'ledger', '--run', $h->{json}{run_dir}], dir => run_folder(), env => { TMA_URL => $d->url });
    is $c->{status}, 3, 'a server without its store: the ledger cannot be judged' or diag $c->{out};
    like $c->{err}, qr/'ledger' could not run: the server could not be asked for file \S+: .*The store is away/, 'which is said';
    unlike $c->{out}, qr/VIOLATED/, 'and is no violation';
}

# ---- a file without a version among others that have one (K11): nothing is saved over it blindly
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 10, unversioned => qr/[02468]\b/);
    my $h = run_sim($d, qw(4 2 240 4), mix("save 1\n"));
    is $h->{status}, 0, 'K11: a file whose version is not listed' or diag $h->{out};
    cmp_ok ops($h, 'save')->{ok}, '>', 0, 'others are saved';
    like $h->{out}, qr/ save: no version is listed for the file: not saved blindly/, 'that it is not saved is said';
    cmp_ok $h->{json}{actions}{nothing_to_act_on}, '>', 0, 'and counted';
    my %name = map { $_->{id} => $_->{name} } @{ $d->nodes };
    my @saved = map { $_->{path} =~ m{/files/(\w+)/replace} ? $name{$1} : () } @{ $d->log };
    is_deeply [grep { /[02468]\b/ } @saved], [], 'none of them was written to';
}

# ---- "not found" is believed only when the listing agrees
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
    my $h = start_run($d, qw(6 2 120 4), mix("download 6\ntrash 3\n"));
    done_run($h);
    is $h->{status}, 0, 'files trashed by others: conflicts at most' or diag $h->{out};
    my $lie = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
    $h = start_run($lie, qw(2 2 240 3), mix("download 1\n"));
    in_window($h);
    $lie->rule(path => qr{/download}, status => 404, times => 2, body => { message => 'File not found' });
    done_run($h);
    is $h->{status}, 1, 'a listed file that is not found: a failure';
    is ops($h, 'download')->{failed}, 2, 'each';
    like $h->{out}, qr/^ +2  download: 404 not found, yet its folder lists it/m, 'and named';
}

# ---- bytes are verified
{
    # files that seed did not make cannot prove themselves: said, and no failure
    my $foreign = FakeDrive->new(sub_users => 1, folders => 2, files => 3, file_bytes => 5000);
    my $h = run_sim($foreign, qw(2 2 60 3), mix("download 1\n"));
    is $h->{status}, 0, 'foreign files' or diag $h->{out};
    like $h->{json}{note}, qr/files that seed did not make: downloads are checked by length alone/, 'are said to be such';
    cmp_ok ops($h, 'download')->{ok}, '>', 0, 'and downloaded';
    # what the apps wrote does prove itself, and then everything has to
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 1, file_bytes => 60);
    $h = run_sim($d, qw(4 2 120 3), mix("upload 1\nsave 1\n"));
    is $h->{status}, 0, 'uploads and saves' or diag $h->{out};
    $d->set(corrupt => 1);
    $h = run_sim($d, qw(2 2 120 3), mix("download 1\n"));
    is $h->{status}, 1, 'altered bytes';
    cmp_ok ops($h, 'download')->{outcomes}{wrong_content}, '>', 0, 'are wrong content';
    like $h->{out}, qr/download: 200 wrong byte at # of #/, 'named';
    my $short = FakeDrive->new(sub_users => 1, folders => 2, files => 3);
    $h = start_run($short, qw(2 2 240 3), mix("download 1\n"));
    in_window($h);
    $short->rule(path => qr{/download}, status => 200, body => 'short', headers => { ETag => '"v1"' }, times => 1);
    done_run($h);
    like $h->{out}, qr/download: 200 # bytes came, # are listed for this version/, 'so is a body of another length';
    is ops($h, 'download')->{outcomes}{wrong_content}, 1, 'an outcome of its own';
}

# ---- server errors and cut connections are failures with their reason
{
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 10);
    my $h = start_run($d, qw(4 4 120 4), mix("download 2\nupload 1\n"));
    in_window($h);
    $d->rule(path => qr{/download}, status => 500, times => 2, body => { message => "boom\e[2J" });
    $d->rule(path => qr{/upload}, close => 1, times => 1);
    done_run($h);
    is ops($h, 'download')->{outcomes}{server_error}, 2, 'server errors';
    is ops($h, 'upload')->{outcomes}{unknown}, 1, 'a write without an answer is unknown';
    like $h->{out}, qr/2  download: 500 boom\\x1b\[#J/, 'hostile text is escaped';
    unlike $h->{out}, qr/\e/, 'everywhere';
    is $h->{status}, 1, 'status 1';
}

done_testing;
