# Sign-in: sessions that expire, accounts and logins (L19); connections that break when they are used again (U10).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

subtest 'L19: tokens expire in mid-run' => sub {
    my ($d, $h, $life);
    for (3, 12, 48) { # a machine that is slower than a session lives tries a longer one
        $life = $_;
        $d = FakeDrive->new(sub_users => 2, folders => 4, files => 10, token_ttl => $life);
        $h = run_sim($d, qw(9 4 60), 2 * $life + 2);
        last if $h->{status} eq '0';
    }
    is $h->{status}, 0, 'expired tokens are renewed' or diag $h->{out};
    is $h->{json}{failed}, 0, 'without a failure';
    my ($expired) = grep { $_->{reason} =~ /401 expired/ } @{ $h->{json}{failures} };
    ok $expired, 'a reason of its own';
    my %logins;
    $logins{ $_->{login} }++ for grep { $_->{path} eq '/api/login' && $_->{login} } @{ $d->log };
    my $most = 2 + $h->{seconds} / $life;
    ok !(grep { $_ > $most } values %logins), 'each login signs in again once a lifetime, whatever the number of its apps' or diag explain \%logins;
    is scalar(grep { $_->{status} == 429 } @{ $d->log }), 0, 'no limiter is tripped';
};

# Limiters count sign-ins: the checks go on with the sessions of the run.
subtest 'one sign-in a login, the checks included' => sub {
    my $d = FakeDrive->new(sub_users => 2, folders => 4, files => 10);
    my $h = run_sim($d, qw(6 4 60 3));
    is $h->{status}, 0, 'healthy' or diag $h->{out};
    my %logins;
    $logins{ $_->{login} }++ for grep { $_->{path} eq '/api/login' && $_->{login} } @{ $d->log };
    is_deeply [values %logins], [1, 1, 1], 'each once' or diag explain \%logins;
    like $h->{out}, qr/^  ok +ledger /m, 'though the ledger was judged';
};

subtest 'U10: a kept connection that breaks when it is used again' => sub {
    my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 20);
    my $h = start_run($d, qw(4 4 120 5 --no-ledger), mix("download 3\nrename 1\n"));
    ok in_window($h), 'running';
    $d->set(idle_close => 1);
    done_run($h);
    my $broken = $d->state;
    cmp_ok $broken->{broken_GET} // 0, '>', 5, 'reading calls were broken';
    is ops($h, $_)->{failed}, 0, "$_: each was made once more, on a fresh one" for qw(first_list list download changes);
    cmp_ok $h->{json}{causes}{reconnect}, '>=', $broken->{broken_GET}, 'reported as reconnects';
    cmp_ok ops($h, 'rename')->{failed}, '>', 0, 'so were writing ones';
    is ops($h, 'rename')->{failed} + ops($h, 'heartbeat')->{failed}, $broken->{broken_POST}, 'each failed';
    is $d->count(qr{^POST /api/files/rename}), ops($h, 'rename')->{ok} + ops($h, 'rename')->{outcomes}{conflict}, 'and were not made again';
};

# ---- a session that tells its life is renewed before that, each login at a time of its own. It really lasts longer, so
# that who renews it late on a busy machine does not meet its end; who never does signs in but once.
{
    my $d = FakeDrive->new(sub_users => 3, folders => 4, files => 10, token_ttl => 30, jwt => 3);
    my $h = run_sim($d, qw(12 4 60 9));
    is $h->{status}, 0, 'early renewal' or diag $h->{out};
    is scalar(grep { $_->{status} == 401 && $_->{login} } @{ $d->log }), 0, 'nobody ever met an expired session';
    my @again = map { $_->{t} } grep { $_->{path} eq '/api/login' && $_->{login} } @{ $d->log };
    cmp_ok scalar(@again), '>=', 4 + 4, 'each login signed in again';
    cmp_ok scalar(@again), '<=', 4 + 4 * $h->{seconds} / 2.1, 'once a lifetime, of which seven tenths pass at least';
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

# ---- a server that lets anybody in has one account all the same
{
    my $d = FakeDrive->new(sub_users => 2, folders => 3, anybody => 1);
    my $h = run_sim($d, qw(9 2 30 1));
    is $h->{status}, 0, 'anybody may sign in' or diag $h->{out}, $h->{err};
    like $h->{err}, qr/owner-2\@load\.test has the sub-users of another owner/, 'that is noticed';
    like $h->{out}, qr/^set-up: 3 logins of 1 account /m, 'and the search ends';
}

# ---- --spread-addresses: each app has an address of its own, stream and requests alike
{
    my $d = FakeDrive->new(sub_users => 2, folders => 2);
    my $h = run_sim($d, qw(6 2 30 1 --spread-addresses));
    is $h->{status}, 0, 'addresses of 127.0.0.0/8' or diag $h->{out}, $h->{err};
    my (%streams, %beats);
    for (@{ $d->log }) {
        $streams{ $_->{peer} }++ if $_->{path} =~ m{/events};
        $beats{ $_->{peer} }++ if $_->{path} =~ /heartbeat/;
    }
    is scalar(keys %streams), 6, 'six apps, six addresses';
    is_deeply \%beats, \%streams, 'the same for all that an app does';
    ok !(grep { !/^127\.1\.1\.\d+$/ } keys %streams), 'none of them the usual one';
}

done_testing;
