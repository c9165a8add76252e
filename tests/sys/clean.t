# sim clean: shows, asks, removes what drivesim made and nothing else, and says what it could not remove.
use strict;
use warnings;
use IO::Socket::INET;
use Test::More;
use lib 'tests/lib';
use Drive;
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 3 0.05 --accounts 2)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
$stack->sim([qw(refusals --tries 1 --within 30s --background 0 --only), "over_quota,name_slash"]);

# One Redis command's first line of answer.
my ($redis_port) = $stack->{env}{REDIS_URL} =~ /:(\d+)/;
sub redis {
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $redis_port) or die "redis: $!";
    print {$s} join('', '*' . @_ . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @_);
    chomp(my $line = <$s>);
    return $line =~ s/\r//r;
}
sub objects { return scalar grep { -s } split /\n/, `find '$stack->{dir}/.sim' -type f -name '*_object'` } # an empty one only asks the store for the time
sub json { return json_file("$stack->{dir}/clean.json") }

my ($users, $files) = map { $stack->sql("SELECT count(*) FROM $_") } qw(users files);
is $users, 9, 'two owners with three sub-users each, and the account of refusals';
cmp_ok $files, '>', 1000, 'both have trees';
cmp_ok objects(), '>', 1000, 'and objects';
redis('SET', 'somebody:else', 'stays');
my $owner = $stack->sql("SELECT id FROM users WHERE email = 'owner\@load.test'");
redis('SET', "cache:$owner:files", 'goes');

# ---- it is shown first, and nothing happens without consent
for my $args (['clean'], [qw(clean --dry-run)]) {
    $r = $stack->sim($args);
    is $r->{status}, @$args == 1 ? 2 : 0, "@$args: exit status" or diag $r->{out}, $r->{err};
    like $r->{out}, qr/^  owner\@load\.test with 3 sub-users: [\d,]+ files, \d+ folders, /m, "@$args: the account is shown";
    like $r->{out}, qr/^  owner-2\@load\.test with 3 sub-users/m, "@$args: the second too";
    like $r->{out}, qr/^  refusals\@load\.test/m, "@$args: and that of refusals";
    like $r->{out}, qr/^  [\d,]+ objects$/m, "@$args: objects";
    like $r->{out}, qr/^  \d+ Redis keys$/m, "@$args: keys";
}
like $stack->sim(['clean'])->{err}, qr/--yes/, 'what agrees is said';
is $stack->sql('SELECT count(*) FROM files'), $files, 'nothing was removed';

# ---- an account whose password is not ours is left alone, whatever its name says
my $hash = $stack->sql("SELECT password FROM users WHERE email = 'owner-2\@load.test'");
$stack->sql("UPDATE users SET password = 'x' WHERE email = 'owner-2\@load.test'");
my $theirs = $stack->sql("SELECT count(*) FROM files f JOIN users u ON u.id = f.user_id WHERE u.email = 'owner-2\@load.test'");
$r = $stack->sim([qw(clean --yes --json clean.json)]);
is $r->{status}, 0, 'clean --yes: exit status 0' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^to be left: owner-2\@load\.test: it cannot be signed in/m, 'an account that does not prove to be ours is left, and said';
is $stack->sql('SELECT count(*) FROM files'), $theirs, 'its tree is all that is there';
is $stack->sql('SELECT count(*) FROM users'), 4, 'it and its sub-users are';
is objects(), $stack->sql("SELECT count(*) FROM files WHERE type = 'file'"), 'its objects too, and no others';
is redis('GET', 'somebody:else'), '$5', "somebody else's key stays";
is redis('GET', "cache:$owner:files"), '$-1', 'a key that names our account is gone';
is $stack->sql("SELECT count(*) FROM audit_log WHERE account_owner_id = '$owner' OR user_id = '$owner'"), 0, 'nothing names the account any more';
is json()->{clean}{left}, 0, 'the JSON says that nothing is left';
is json()->{clean}{accounts}, 2, 'of the two accounts';
is $stack->sql("SELECT count(*) FROM sessions s JOIN users u ON u.id = s.user_id WHERE u.email NOT LIKE 'owner-2%'"), 0, 'no session is left';

# ---- the server is as good as new: it can be filled again, and cleaned without a database but for the accounts
$stack->sql("UPDATE users SET password = '$hash' WHERE email = 'owner-2\@load.test'");
is $stack->sim([qw(clean --yes)])->{status}, 0, 'with its password known, the other account goes too';
is objects(), 0, 'no object is left';
$r = $stack->sim([qw(seed 2 0.05)]);
is $r->{status}, 0, 'it is filled again' or diag $r->{out}, $r->{err};
$r = $stack->sim([qw(clean --yes)], env => { DATABASE_URL => '' }, dir => '/');
is $r->{status}, 1, 'without DATABASE_URL: exit status 1' or diag $r->{out}, $r->{err};
like $r->{out}, qr/not removed: the account owner\@load\.test, empty now: DATABASE_URL is needed/, 'since the account stays, and is named';
is $stack->sql('SELECT count(*) FROM files'), 0, 'its tree is gone';
is $stack->sql('SELECT string_agg(email, \',\') FROM users'), 'owner@load.test', 'its sub-users too';
is $stack->sql('SELECT storage_used FROM users'), 0, 'and what it used';

$r = $stack->sim([qw(clean --yes)]);
is $r->{status}, 0, 'with it the account goes too' or diag $r->{out}, $r->{err};
is $stack->sql('SELECT count(*) FROM users'), 0, 'nobody is left';
$r = $stack->sim(['clean']);
is $r->{status}, 0, 'a clean server' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^nothing that drivesim made is there$/m, 'is said to be clean';

done_testing;
