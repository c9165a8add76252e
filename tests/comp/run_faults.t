# sim run against a scripted server that misbehaves: what counts as failed, as a conflict, as waiting; what the server
# lacks; how apps come back. Cases L19, S05, E11, E13, K11, drive-api.md 9.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Test::More;
use lib 'tests/lib';
use FakeDrive;
use Sim;

my $dir = tempdir(CLEANUP => 1);
my $n = 0;

sub start_run { my ($d, @args) = @_; my $json = "$dir/" . ++$n . '.json'; my $h = sim_start(['run', @args, '--json', $json], env => { TMA_URL => $d->url }, dir => $dir); $h->{json_name} = $json; return $h }
sub done_run { my ($h, $timeout) = @_; sim_finish($h, $timeout // 60); $h->{json} = json_file($h->{json_name}); return $h }
sub run_sim { return done_run(start_run(@_)) }
sub in_window { my ($h) = @_; return sim_read($h, 20, sub { $_[0]{out} =~ /measured window begins/ }) }
sub ops { my ($h, $op) = @_; return $h->{json}{operations}{$op} // { ok => 0, failed => 0, outcomes => {} } }
sub mix { my ($text) = @_; spew("$dir/mix", $text); return ('--mix', 'mix') }

# ---- 429 is waited out: neither latency nor failure
{
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 10);
    my $h = start_run($d, qw(4 4 60 5));
    in_window($h);
    $d->rule(path => qr{/(download|lock)$}, status => 429, times => 4, headers => { 'Retry-After' => 1 }, body => { error => 'Too many requests' });
    done_run($h);
    is $h->{status}, 0, 'a spent budget is no failure' or diag $h->{out};
    is $h->{json}{throttled}, 4, 'each answer is counted';
    cmp_ok $h->{json}{waited_seconds}, '>=', 4, 'the wait is reported';
    for my $op (qw(download lock save)) {
        cmp_ok ops($h, $op)->{max_ms} // 0, '<', 900, "and is in no latency of $op";
        cmp_ok ops($h, $op)->{from_due}{max_ms} // 0, '<', 900, "nor in $op\'s from the due time" if $op ne 'lock';
    }
}

# ---- L19: tokens expire in mid-run
{
    my $d = FakeDrive->new(sub_users => 2, folders => 4, files => 10, token_ttl => 2);
    my $h = run_sim($d, qw(9 4 60 7));
    is $h->{status}, 0, 'expired tokens are renewed' or diag $h->{out};
    is $h->{json}{failed}, 0, 'without a failure';
    my ($expired) = grep { $_->{reason} =~ /401 expired/ } @{ $h->{json}{failures} };
    ok $expired, 'a reason of its own';
    my %logins;
    $logins{ $_->{login} }++ for grep { $_->{path} eq '/api/login' && $_->{login} } @{ $d->log };
    ok !(grep { $_ > 6 } values %logins), 'each login signs in again once a lifetime, whatever the number of its apps' or diag explain \%logins;
}

# ---- a session that tells its life is renewed before that, each login at a time of its own
{
    my $d = FakeDrive->new(sub_users => 3, folders => 4, files => 10, token_ttl => 3, jwt => 1);
    my $h = run_sim($d, qw(12 4 60 7));
    is $h->{status}, 0, 'early renewal' or diag $h->{out};
    is scalar(grep { $_->{status} == 401 && $_->{login} } @{ $d->log }), 0, 'nobody ever met an expired session';
    my @again = map { $_->{t} } grep { $_->{path} eq '/api/login' && $_->{login} } @{ $d->log };
    cmp_ok scalar(@again), '>=', 4 + 4, 'each login signed in again';
    cmp_ok scalar(@again), '<=', 4 + 4 * 3 + 4, 'once a lifetime';
}

# ---- S05: the login limiter is waited out at the start
{
    my $d = FakeDrive->new(sub_users => 3, folders => 2);
    $d->rule(method => 'POST', path => qr{/api/login}, after => 3, times => 2, status => 429, headers => { 'Retry-After' => 1 }, body => { error => 'Too many logins' });
    my $h = run_sim($d, qw(4 2 1 1s));
    is $h->{status}, 0, 'limited sign-ins are waited out' or diag $h->{out}, $h->{err};
    like $h->{err}, qr/sign-in limited: waiting 1\.\d s/, 'and announced';
    is $h->{json}{failed}, 0, 'no app failed for it';
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
}

# ---- "not found" is believed only when the listing agrees
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
    my $h = start_run($d, qw(6 2 120 4), mix("download 6\ntrash 3\n"));
    done_run($h);
    is $h->{status}, 0, 'files trashed by others: conflicts at most' or diag $h->{out};
    my $lie = FakeDrive->new(sub_users => 1, folders => 2, files => 30);
    $h = start_run($lie, qw(2 2 60 3), mix("download 1\n"));
    in_window($h);
    $lie->rule(path => qr{/download}, status => 404, times => 2, body => { message => 'File not found' });
    done_run($h);
    is $h->{status}, 1, 'a listed file that is not found: a failure';
    is ops($h, 'download')->{failed}, 2, 'each';
    like $h->{out}, qr/^ +2  download: 404 not found, yet its folder lists it/m, 'and named';
}

# ---- bytes are verified
{
    my $d = FakeDrive->new(sub_users => 1, folders => 2, files => 3, file_bytes => 5000);
    my $h = run_sim($d, qw(2 2 60 3), mix("download 1\n"));
    is $h->{status}, 1, 'content that nobody wrote';
    like $h->{out}, qr/download: 200 the content is none that was ever written here/, 'is named';
    my $short = FakeDrive->new(sub_users => 1, folders => 2, files => 3);
    $h = start_run($short, qw(2 2 60 3), mix("download 1\n"));
    in_window($h);
    $short->rule(path => qr{/download}, status => 200, body => 'short', headers => { ETag => '"v1"' }, times => 1);
    done_run($h);
    like $h->{out}, qr/download: 200 # bytes came, # are listed for this version/, 'so is a body of another length';
    is ops($h, 'download')->{outcomes}{wrong_content}, 1, 'an outcome of its own';
    # what the apps saved and uploaded comes back whole
    my $own = FakeDrive->new(sub_users => 1, folders => 2, files => 2, file_bytes => 100);
    $h = run_sim($own, qw(4 2 240 4), mix("save 1\nupload 1\n"));
    is $h->{status}, 0, 'saves and uploads' or diag $h->{out};
    cmp_ok $own->state->{uploads}, '>', 3, 'were made';
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

# ---- the server goes away and comes back: told, and no stampede of sign-ins
{
    my $d = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $h = start_run($d, qw(9 4 60 9 --report-every 3));
    in_window($h);
    $d->outage(2);
    done_run($h);
    like $h->{out}, qr/^server unreachable from \d\d:\d\d:\d\dZ for [1-3]\.\d s$/m, 'the outage is shown' or diag $h->{out};
    is $h->{json}{outages}{count}, 1, 'counted';
    is $h->{json}{apps}{streams_up}, 9, 'every stream is back';
    is $h->{json}{reconnects}, 9, 'as a reconnect';
    is ops($h, 'sign_in')->{ok}, 3, 'nobody signed in again';
    my @back = map { $_->{t} } grep { $_->{path} =~ m{/events} } @{ $d->log };
    my @again = sort { $a <=> $b } @back[ 9 .. $#back ];
    cmp_ok $again[-1] - $again[0], '>', 0.1, 'streams come back spread out';
    cmp_ok ops($h, 'download')->{ok}, '>', 0, 'work goes on';
}

# ---- E11: resync, old cursors, and error events that change nothing
{
    my $d = FakeDrive->new(sub_users => 1, folders => 5, files => 3);
    my $h = start_run($d, qw(2 5 0 6));
    in_window($h);
    my $lists = $d->count(qr{^GET /api/files\?});
    $d->event({ raw => "event: error\ndata: {\"type\":\"error\"}\n\n" });
    $d->event({ type => 'resync' });
    wait_until(3, sub { $d->count(qr{^GET /api/files\?}) >= $lists + 10 });
    is $d->count(qr{^GET /api/files\?}), $lists + 10, 'resync: every app lists all its open folders again';
    $d->set(feed_floor => 1);
    $d->touch({ n => 1 });
    done_run($h);
    is $d->count(qr{^GET /api/files\?}), $lists + 20, 'a cursor too old: likewise';
    is $h->{status}, 0, 'no failure';
    is $h->{json}{operations}{changes}{ok} >= 4, 1, 'the feed was asked';
}

# ---- a burst of events is one question and one listing
{
    my $d = FakeDrive->new(sub_users => 1, folders => 5, files => 3);
    my $h = start_run($d, qw(2 5 0 5));
    in_window($h);
    my ($lists, $asked) = ($d->count(qr{^GET /api/files\?}), $d->count(qr{/changes}));
    $d->touch({ n => 25 });
    done_run($h);
    is $d->count(qr{/changes}) - $asked, 2, 'one question an app';
    is $d->count(qr{^GET /api/files\?}) - $lists, 2, 'one listing an app';
    is $h->{json}{causes}{relist}, 4, 'both counted as re-lists';
}

# ---- what a server lacks is said and worked around
for my $case (
    [ { locks => 0 }, qr/no edit locks: saves by version alone/, sub { is $_[1]->count(qr{/lock$}) <= 3, 1, 'no lock is asked for again' } ],
    [ { versions => 0 }, qr/no versions: saves unconditionally/ ],
    [ { feed => 0 }, qr/no change feed: folders named in events/, sub { cmp_ok $_[0]{json}{causes}{relist}, '>', 0, 'folders named in events are listed' } ],
    [ { events => 0 }, qr/no event stream: minute checks alone/ ],
    [ { sub_users => 0 }, qr/no sub-users: owners alone sign in/ ],
    [ { locks => 0, versions => 0, feed => 0, events => 0, paging => 0, sub_users => 0 }, qr/no edit locks/ ],
) {
    my ($caps, $says, $more) = @$case;
    my $name = 'no ' . join ', ', sort keys %$caps;
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 10, caps => $caps);
    my $h = run_sim($d, qw(3 4 120 4));
    is $h->{status}, 0, "$name: works" or diag $h->{out}, $h->{err};
    is $h->{json}{failed}, 0, "$name: counts no failure";
    like $h->{json}{note} // '', $says, "$name: is said";
    cmp_ok ops($h, 'save')->{ok}, '>', 0, "$name: saves are made";
    $more->($h, $d) if $more;
}

# ---- accounts: all owners are found and used evenly
{
    my $d = FakeDrive->new(accounts => 3, sub_users => 1, folders => 4);
    my $h = run_sim($d, qw(12 3 30 2 --run-dir many));
    is $h->{status}, 0, 'several accounts' or diag $h->{out}, $h->{err};
    my %streams;
    $streams{ $_->{login} }++ for grep { $_->{path} =~ m{/events} } @{ $d->log };
    is_deeply \%streams, { map { $_ => 2 } map { ("$_\@load.test") } 'owner', 'owner-2', 'owner-3', 'user-1', 'owner-2-user-1', 'owner-3-user-1' },
        'two apps each';
}

done_testing;
