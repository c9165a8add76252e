#!/usr/bin/env perl
# Accounts and what stands before every call: sessions, permissions, budgets.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use FindBin;
use lib "$FindBin::Bin/../lib";
use JSON::PP;
use MIME::Base64 qw(encode_base64url);
use Serve;
use Sim;
use Test::More;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack, '--login-budget', 0);
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my @all = map { "files.$_" } qw(download upload edit share delete trash);

sub said { my ($r) = @_; return "$r->{status} " . ($r->{json}{message} // $r->{json}{error} // '') }
sub sub_user { my ($email, $who, @perms) = @_; return $server->call('POST', '/api/user/sub-users', { email => $email, password => 'password-1', name => $email, permissions => \@perms }, %$who) }

subtest 'the first sign-up' => sub {
    is_deeply $server->call('GET', '/api/signup-status')->{json}, { signupEnabled => $true }, 'open on a fresh server';
    my $r = $server->call('POST', '/api/signup', { email => 'Owner@Load.test', password => 'load-test-password', name => 'Otto' });
    is $r->{status}, 200, 'signs up';
    is $r->{json}{user}{email}, 'owner@load.test', 'email in lower case';
    is_deeply [sort @{ $r->{json}{user}{permissions} }], [sort @all], 'holds all permissions';
    like $r->{headers}{'set-cookie'}, qr/^token=[^;]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/, 'the cookie';
    unlike $r->{body}, qr/token/, 'no token in the body';
    is_deeply $server->call('GET', '/api/signup-status')->{json}, { signupEnabled => $false }, 'closed after it';
    is said($server->call('POST', '/api/signup', { email => 'b@load.test', password => 'password-1' })), '403 Signup is currently disabled', 'a second one is refused';
    is $stack->sql('SELECT first_user_id FROM app_settings'), $r->{json}{user}{id}, 'the first user is the administrator';
};

my %owner = $server->auth($server->token('owner@load.test'));
is $server->call('POST', '/api/user/signup-toggle', { enabled => $true }, %owner)->{status}, 200, 'the administrator opens it again';
my %second = $server->auth($server->token('owner-2@load.test'));
is said($server->call('POST', '/api/signup', { email => 'OWNER@load.test', password => 'password-1' })), '409 Email already in use', 'one account an email, whatever the case';
is said($server->call('POST', '/api/user/signup-toggle', { enabled => $false }, %second)), '403 Only the administrator can do that.', 'not for everybody';

for my $case (
    ['no email', { password => 'password-1' }, 'email'],
    ['no address', { email => 'nobody', password => 'password-1' }, 'email'],
    ['a short password', { email => 'c@load.test', password => '12345' }, 'password'],
    ['a long password', { email => 'c@load.test', password => 'x' x 73 }, 'password'],
    ['a password that is a number', { email => 'c@load.test', password => 123456789 }, 'password'],
    ['a name with a control character', { email => 'c@load.test', password => 'password-1', name => "a\nb" }, 'name'],
    ) {
    my ($what, $body, $field) = @$case;
    my $r = $server->call('POST', '/api/signup', $body);
    is "$r->{status} " . join(',', map { keys %$_ } @{ $r->{json}{details} }), "422 $field", $what;
}

subtest 'signing in' => sub {
    my $r = $server->call('POST', '/api/login', { email => 'OWNER@load.test', password => 'load-test-password' });
    is $r->{status}, 200, 'right';
    ok $r->{headers}{'set-cookie'}, 'with a cookie';
    is said($server->call('POST', '/api/login', { email => 'owner@load.test', password => 'wrong-password' })), '401 Invalid credentials', 'wrong password';
    is said($server->call('POST', '/api/login', { email => 'nobody@load.test', password => 'wrong-password' })), '401 Invalid credentials', 'unknown email, the same answer';
    is said($server->call('POST', '/api/login', { email => 'owner@load.test', password => $_ })), '401 Invalid credentials', 'a password that none may have: ' . length for 'wrong', 'load-test-password' . 'x' x 72;
    is said($server->call('POST', '/api/login', { email => 'nobody', password => 'wrong' })), '401 Invalid credentials', 'an email that is none';
    is $server->call('POST', '/api/login', $_)->{status}, 422, 'half a pair' for { email => 'owner@load.test' }, { password => 'wrong' }, { email => 'owner@load.test', password => '' };
    is $server->call('POST', '/api/login', 'email=owner', 'Content-Type' => 'application/x-www-form-urlencoded')->{status}, 400, 'JSON only';
    is $server->call('POST', '/api/login', '{"email":')->{status}, 400, 'broken JSON';
    is $server->call('POST', '/api/login')->{status}, 400, 'no body';
};

# A token as we would sign it, with changes.
sub forged {
    my ($payload, %opt) = @_;
    my $part = join '.', map { encode_base64url(JSON::PP->new->encode($_)) } { alg => $opt{alg} // 'HS256', typ => 'JWT' }, $payload;
    return $part . '.' . encode_base64url(hmac_sha256($part, $opt{key} // 'a secret that only tests know'));
}

subtest 'tokens' => sub {
    my $user = $server->call('GET', '/api/profile', undef, %owner)->{json};
    my ($session) = map { $_->{id} } grep { $_->{isCurrent} } @{ $server->call('GET', '/api/sessions', undef, %owner)->{json}{sessions} };
    my %good = (id => $user->{id}, sid => $session, v => 1, iat => time, exp => time + 60);
    my $try = sub { said($server->call('GET', '/api/profile', undef, @_)) };
    is $server->call('GET', '/api/profile', undef, Authorization => 'Bearer ' . forged(\%good))->{json}{id}, $user->{id}, 'Authorization: Bearer';
    is $try->(), '401 No token provided', 'none';
    is $try->(Authorization => 'Bearer'), '401 No token provided', 'a scheme alone';
    is $try->(Authorization => 'Bearer a.b.c'), '401 Invalid token', 'nonsense';
    is $try->(Authorization => 'Bearer ' . forged({ %good, exp => time - 1 })), '401 Session expired. Please login again.', 'lapsed';
    is $try->(Authorization => 'Bearer ' . forged(\%good, key => 'another')), '401 Invalid token', 'signed by somebody else';
    is $try->(Authorization => 'Bearer ' . forged({ %good, exp => time - 1 }, key => 'another')), '401 Invalid token', 'lapsed and forged: forged';
    is $try->(Authorization => 'Bearer ' . forged(\%good, alg => 'none')), '401 Invalid token', 'another algorithm';
    is $try->(Authorization => 'Bearer ' . forged(\%good) =~ s/[^.]+$//r), '401 Invalid token', 'no signature';
    is $try->(Authorization => 'Bearer ' . forged({ %good, sid => 'nobodys' })), '401 Session has been revoked. Please login again.', 'no such session';
    is $try->(Authorization => 'Bearer ' . forged({ %good, id => 'somebody' })), '401 Session has been revoked. Please login again.', "another's session";
    is $try->(Authorization => 'Bearer ' . encode_base64url('[' x 2500) . '.' . encode_base64url('[' x 500) . '.x'), '401 Invalid token', 'deeply nested';
    is $try->(Cookie => 'token=bad', Authorization => 'Bearer ' . forged(\%good)), '401 Invalid token', 'the cookie wins';
    is $server->call('GET', '/api/profile', undef, Cookie => 'a=b; token=' . forged(\%good) . '; c=d')->{status}, 200, 'among other cookies';
};

subtest 'another site' => sub {
    is said($server->call('POST', '/api/user/client-heartbeat', { appVersion => '1' }, %owner, 'X-Requested-With' => '')), '403 Forbidden: missing CSRF header', 'a cookie alone does not write';
    is $server->call('POST', '/api/user/client-heartbeat', { appVersion => '1' }, %owner, 'X-Requested-With' => '', 'X-TMA-Desktop-Client' => 'x')->{status}, 403, "nor does it beside the desktop app's header";
    my ($token) = $owner{Cookie} =~ /=(.*)/;
    is $server->call('POST', '/api/user/client-heartbeat', { appVersion => '1' }, Authorization => "Bearer $token", 'X-Requested-With' => '')->{status}, 200, 'a bearer token does';
};

subtest 'sub-users and permissions' => sub {
    my $r = sub_user('user-1@load.test', \%owner, 'files.download', 'files.upload');
    is $r->{status}, 201, 'made';
    my $id = $r->{json}{subUser}{id};
    is_deeply [sort @{ $r->{json}{subUser}{permissions} }], ['files.download', 'files.upload'], 'with their permissions';
    is said(sub_user('user-1@load.test', \%owner)), '409 Email already in use', 'once';
    is sub_user('user-2@load.test', \%owner, 'files.fly')->{status}, 422, 'unknown permission';
    is_deeply [map { $_->{email} } @{ $server->call('GET', '/api/user/sub-users', undef, %owner)->{json}{subUsers} }], ['user-1@load.test'], 'listed';
    is_deeply $server->call('GET', '/api/user/sub-users', undef, %second)->{json}{subUsers}, [], "not among another owner's";

    my %sub = $server->auth($server->token('user-1@load.test', 'password-1'));
    my $profile = $server->call('GET', '/api/profile', undef, %sub)->{json};
    ok $profile->{isSubUser}, 'its profile says what it is';
    is said($server->call('POST', '/api/files/delete', { ids => ['x'] }, %sub)), '403 You do not have permission to do that. Ask the account owner to enable "Delete files".', 'what it may not do';
    is $stack->sql(q{SELECT action, status FROM audit_log ORDER BY id DESC LIMIT 1}), 'account.permission_denied|failure', '… is noted';
    is said(sub_user('user-3@load.test', \%sub)), '403 Only the account owner can do that.', 'it has no sub-users';
    is $server->call('GET', '/api/files', undef, %sub)->{status}, 200, 'it may always look';
    my $f = $server->call('POST', '/api/files/folder', { name => 'By the sub-user' }, %sub);
    is $f->{status}, 201, 'what it may do';
    ok scalar(grep { $_->{name} eq 'By the sub-user' } @{ $server->call('GET', '/api/files', undef, %owner)->{json} }), "… is the owner's";

    my $second_server = Serve->new($stack, '--login-budget', 0);
    is $second_server->call('GET', '/api/profile', undef, %sub)->{status}, 200, 'another process knows it';
    is $server->call('PUT', "/api/user/sub-users/$id", { permissions => ['files.delete'] }, %owner)->{status}, 200, 'its permissions are replaced';
    is $server->call('POST', '/api/files/delete', { ids => ['x'] }, %sub)->{status}, 404, '… at once';
    is $server->call('POST', '/api/files/folder', { name => 'No' }, %sub)->{status}, 403, '… the old ones are gone';
    ok wait_until(sub { $second_server->call('POST', '/api/files/folder', { name => 'No' }, %sub)->{status} == 403 }), '… in the other process too';
    is $server->call('PUT', "/api/user/sub-users/$id", { permissions => [] }, %second)->{status}, 404, "another owner cannot";
    is $server->call('DELETE', "/api/user/sub-users/$id", undef, %owner)->{status}, 200, 'deleted';
    is $server->call('GET', '/api/profile', undef, %sub)->{status}, 401, '… with its sessions';
    is $server->call('DELETE', "/api/user/sub-users/$id", undef, %owner)->{status}, 404, 'once';
};

subtest 'signing out' => sub {
    my %a = $server->auth($server->token('owner@load.test'));
    my %b = $server->auth($server->token('owner@load.test'));
    $server->call('GET', '/api/profile', undef, %a);
    my $r = $server->call('POST', '/api/logout', undef, %a);
    is said($r), '200 Logged out', 'out';
    like $r->{headers}{'set-cookie'}, qr/^token=; Max-Age=0;/, 'the cookie is cleared';
    is said($server->call('GET', '/api/profile', undef, %a)), '401 Session has been revoked. Please login again.', 'gone at once';
    is $server->call('GET', '/api/profile', undef, %b)->{status}, 200, 'others stay';
};

subtest 'storage' => sub {
    is_deeply $server->call('GET', '/api/user/storage', undef, %owner)->{json}, { used => 0, total => undef, free => undef }, 'unlimited';
    my $me = $server->call('GET', '/api/profile', undef, %owner)->{json}{id};
    my $limit = sub { $server->call('PUT', '/api/user/storage-limit', { targetUserId => $me, @_ }, %owner)->{status} };
    is $limit->(storageLimit => 1000), 200, 'limited';
    is_deeply $server->call('GET', '/api/user/storage', undef, %owner)->{json}, { used => 0, total => 1000, free => 1000 }, 'to that';
    is $limit->(storageLimit => $_), 422, "not to $_" for 0, -1, 1.5, 'much';
    is $limit->(storageLimit => undef), 200, 'unlimited again';
    is $server->call('PUT', '/api/user/storage-limit', { targetUserId => 'nobody', storageLimit => 1 }, %owner)->{status}, 404, 'an unknown account';
    is $server->call('PUT', '/api/user/storage-limit', { targetUserId => $me, storageLimit => 1 }, %second)->{status}, 403, 'by the administrator only';
};

subtest 'heartbeat' => sub {
    is $server->call('POST', '/api/user/client-heartbeat', { appVersion => '1.2', platform => 'linux' }, %owner)->{status}, 200, 'taken';
    is $server->call('POST', '/api/user/client-heartbeat', { appVersion => '1.3' }, %owner)->{status}, 200, 'again';
    my ($sid) = map { $_->{id} } grep { $_->{isCurrent} } @{ $server->call('GET', '/api/sessions', undef, %owner)->{json}{sessions} };
    is $stack->sql("SELECT count(*), max(app_version) FROM client_heartbeats WHERE session_id = '$sid'"), '1|1.3', 'one row a session';
    is $server->call('POST', '/api/user/client-heartbeat', { platform => 'linux' }, %owner)->{status}, 400, 'without a version';
};

subtest 'budgets' => sub {
    my $tight = Serve->new($stack, qw(--request-budget 6));
    my %who = $tight->auth($server->token('owner-3@load.test'));
    my $used = 10_000 - $server->call('GET', '/api/profile', undef, %who)->{headers}{'ratelimit-remaining'};
    my @r = map { $tight->call('GET', '/api/profile', undef, %who) } 1 .. 7;
    is scalar(grep { $_->{status} == 200 } @r), 6 - $used, 'so many requests a login';
    my $last = $r[-1];
    is $last->{status}, 429, 'then 429';
    is_deeply [sort keys %{ $last->{json} }], ['error'], '… with the sentence in error alone';
    like $last->{headers}{'retry-after'}, qr/^\d+$/, '… and when to come back';
    is $last->{headers}{'ratelimit-remaining'}, 0, 'nothing left';
    is $last->{headers}{'ratelimit-limit'}, 6, 'of the limit';
    cmp_ok $last->{headers}{'ratelimit-reset'}, '<=', 900, 'within a quarter of an hour';
    is $tight->call('GET', '/health')->{status}, 200, 'health has no budget';
    my $second_process = Serve->new($stack, qw(--request-budget 6));
    is $second_process->call('GET', '/api/profile', undef, %who)->{status}, 429, 'counted across processes';
};

subtest 'S05: the limiter of sign-ins refuses at once, one email alone, and says for how long' => sub {
    my $strict = Serve->new($stack, qw(--login-budget 3));
    my $try = sub { $strict->call('POST', '/api/login', { email => $_[0], password => 'password-1' }) };
    my @logins = map { $try->('x@load.test') } 1 .. 4;
    is_deeply [map { $_->{status} } @logins], [401, 401, 401, 429], 'three, then none';
    like $logins[3]{headers}{'retry-after'}, qr/^[1-9]\d{0,2}$/, 'with the time to wait';
    is $try->('y@load.test')->{status}, 401, 'others behind the same address are not held up';
};

subtest 'a token that nears its end' => sub {
    my ($renewed, $goes_on);
    for my $life (12, 36, 108) { # a machine that was not at it in the last seconds of a session tries a longer one
        my $brief = Serve->new($stack, '--token-lifetime', "${life}s", qw(--login-budget 0 --request-budget 0));
        my $token = $brief->token('owner@load.test');
        my $ended;
        wait_until(sub {
            my $r = $brief->call('GET', '/api/profile', undef, $brief->auth($token));
            ($renewed) = ($r->{headers}{'set-cookie'} // '') =~ /^token=([^;]+)/;
            $ended = said($r) if $r->{status} != 200;
            return $renewed || $ended;
        }, 2 * $life);
        next if !$renewed;
        ok wait_until(sub { my $r = $brief->call('GET', '/api/profile', undef, $brief->auth($token)); $ended = said($r); return $r->{status} == 401 }), 'the old one ends';
        is $ended, '401 Session expired. Please login again.', '… and says so';
        $goes_on = $brief->call('GET', '/api/profile', undef, $brief->auth($renewed))->{status};
        last if $goes_on == 200;
    }
    ok $renewed, 'is replaced while it is used';
    is $goes_on, 200, 'the new one goes on';
};

subtest 'desktop only' => sub {
    my $closed = Serve->new($stack, '--desktop-only');
    is $closed->call('GET', '/api/signup-status')->{json}{error}, 'DESKTOP_ONLY_ACCESS', 'others are refused';
    is $closed->call('GET', '/api/signup-status', undef, 'X-TMA-Desktop-Client' => 'tma-electron-client-v1')->{status}, 200, 'the app is not';
    is $closed->call('GET', '/health')->{status}, 200, 'health is for all';
};

is $stack->sql(q{SELECT count(*) FROM users WHERE password NOT LIKE '$2b$%'}), 0, 'passwords are hashed';
my $end = $server->stop;
is $end->{status}, 0, 'ends well';
unlike $end->{err} . $end->{out}, qr/password-1|load-test-password|only tests know/, 'no secret in its log';
done_testing;
