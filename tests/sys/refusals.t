# Refusals on real parts (U01: the reason arrives, also at a client that only writes; U04: no 100 before a 413): every row holds, nothing is stored, what was made for it is gone; and a server that breaks the
# rules is caught by name.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new('--server-args=--lock-min 1s --request-budget 3000');
my $r = $stack->sim([qw(seed 3 0.05)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
my $before = $stack->sql("SELECT count(*), sum(size), count(DISTINCT path) FROM files");

sub report { return json_file("$stack->{dir}/refusals.json") }

# ---- all rows, few tries; the time limit is wide, as this machine may be busy with other tests
$r = $stack->sim([qw(refusals --tries 3 --within 30s --background 4 --before 3s --json refusals.json)]);
is $r->{status}, 0, 'refusals: exit status 0' or diag $r->{out}, $r->{err};
my $j = report();
my %row = %{ $j->{refusals} };
is_deeply [grep { $row{$_}{verdict} ne 'ok' } sort keys %row], [], 'every row holds' or diag $r->{out};
is_deeply [grep { $row{$_}{tries} != 3 || $row{$_}{ok} != 3 } sort keys %row], [], 'in each of the three tries';
is_deeply [grep { $row{$_}{reason} eq '' } sort keys %row], [], 'with a sentence';
cmp_ok scalar keys %row, '>=', 70, 'the table is long';
is $row{over_quota_blind}{ok}, 3, 'U01: the reason arrives at a client that only writes';
is $row{over_quota_no_continue}{ok}, 3, 'U04: no 100 comes before a 413';
is $row{$_}{status}, 413, "$_: 413" for qw(over_quota over_quota_by_one over_quota_chunked over_quota_expect over_quota_300_mib over_quota_copy over_quota_restore over_max);
is $row{"no_$_"}{status}, 403, "no_$_: 403" for qw(download upload edit share delete trash);
my ($check) = grep { $_->{name} eq 'refusals' } @{ $j->{checks} };
is $check->{status}, 'ok', 'the verdict stands among the checks';
is_deeply [grep { $_->{status} eq 'violated' } @{ $j->{checks} }], [], 'and the others hold';
like $r->{out}, qr/^background: p95 ~?[\d.]+ ms of \d+ operations before, ~?[\d.]+ ms of \d+ during/m, 'the background is told about';
cmp_ok $j->{background}{before_operations}, '>', 0, 'and was at work';

is $stack->sql("SELECT count(*) FROM users WHERE email LIKE 'refusals-%'"), 0, 'its sub-users are gone';
is $stack->sql("SELECT count(*) FROM files f JOIN users u ON u.id = f.user_id WHERE u.email = 'refusals\@load.test'"), 0, 'its files too';
is $stack->sql("SELECT count(*) FROM users WHERE storage_limit IS NOT NULL"), 0, 'no quota stays behind';

# ---- again, alone, some rows; the seeded account is as it was
$before = $stack->sql("SELECT count(*), sum(size), count(DISTINCT path) FROM files");
$r = $stack->sim([qw(refusals --tries 2 --within 30s --background 0 --json refusals.json --only), 'name_*,over_quota*,unread_body', '--fail-on', 'over_quota.ok==2', '--fail-on', 'unread_body.max<30s']);
is $r->{status}, 0, 'chosen rows, without a background' or diag $r->{out}, $r->{err};
is_deeply [grep { !/^(name_|over_quota|unread_body)/ } keys %{ report()->{refusals} }], [], 'only those that were asked for';
is $stack->sql("SELECT count(*), sum(size), count(DISTINCT path) FROM files"), $before, 'nothing is stored';

# ---- a quota that does not hold, a name that is let in: the row is named, the exit status is 1
$stack->sql("CREATE FUNCTION unlimited() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.storage_limit := NULL; RETURN NEW; END'");
$stack->sql("CREATE TRIGGER unlimited BEFORE UPDATE OF storage_limit ON users FOR EACH ROW EXECUTE FUNCTION unlimited()");
$r = $stack->sim([qw(refusals --tries 1 --within 30s --background 0 --json refusals.json --only), "over_quota,no_token"]);
is $r->{status}, 1, 'a quota that is not kept: exit status 1' or diag $r->{out}, $r->{err};
is report()->{refusals}{over_quota}{verdict}, 'failed', 'and the row is named';
is report()->{refusals}{no_token}{verdict}, 'ok', 'the other holds';
like $r->{out}, qr/^\s+over_quota: over the quota.*: 200/m, 'with what came instead';
$stack->sql("DROP TRIGGER unlimited ON users");
is $stack->sim(['check'])->{status}, 0, 'what it let in has been removed, everything is exact';

# ---- a server that drops what it refuses: the row fails, with what the client saw. A relay stands in for it: it resets
# connections on which a large file comes, which before the rows none is.
my $relay = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die $!;
my ($port) = $stack->env->{TMA_URL} =~ /:(\d+)/;
my $pid = fork // die $!;
if (!$pid) {
    my ($sel, %to) = (IO::Select->new($relay));
    while (my @ready = $sel->can_read) {
        for my $from (@ready) {
            if ($from == $relay) {
                my $in = $relay->accept or next;
                my $out = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or next;
                @to{ $in, $out } = ([$out, 1], [$in, 0]);
                $sel->add($in, $out);
                next;
            }
            my ($peer, $asks) = @{ $to{$from} // next };
            my $got = sysread $from, my $bytes, 65536;
            my $drop = $got && $asks && $bytes =~ m{^POST /api/files/upload HTTP.*^Content-Length: \d{9,}}ims;
            if (!$got || ($drop && -e "$stack->{dir}/drop")) {
                setsockopt $_, SOL_SOCKET, SO_LINGER, pack 'II', 1, 0 for $drop ? ($from, $peer) : ();
                delete @to{ $from, $peer };
                $sel->remove($from, $peer);
                close $_ for $from, $peer;
                next;
            }
            syswrite $peer, $bytes;
        }
    }
    POSIX::_exit(0);
}
$r = $stack->sim([qw(refusals --tries 2 --within 30s --background 0 --only), 'no_upload_big,no_token'], env => { TMA_URL => 'http://127.0.0.1:' . $relay->sockport });
is $r->{status}, 0, 'through the relay all is well' or diag $r->{out}, $r->{err};
spew("$stack->{dir}/drop", '');
my $h = $stack->sim([qw(refusals --tries 2 --within 30s --background 0 --json refusals.json --only), 'no_upload_big,no_token'], env => { TMA_URL => 'http://127.0.0.1:' . $relay->sockport });
is $h->{status}, 1, 'dropped connections: exit status 1' or diag $h->{out}, $h->{err};
is report()->{refusals}{no_upload_big}{verdict}, 'failed', 'the row fails';
like report()->{refusals}{no_upload_big}{why}, qr/^try 1: no answer: /, 'and says that no answer came';
is report()->{refusals}{no_token}{verdict}, 'ok', 'the other row holds';
kill 'TERM', $pid;
waitpid $pid, 0;

# ---- Ctrl-C: what was made is removed all the same
$h = $stack->start([qw(refusals --tries 1000 --background 2 --before 1s)]);
ok sim_await($h, sub { $_[0]{out} =~ /^ok /m }), 'rows are asked';
kill 'INT', $h->{pid};
sim_finish($h);
is $h->{status}, 130, 'interrupted: exit status 130' or diag $h->{out}, $h->{err};
is $stack->sql("SELECT count(*) FROM users WHERE email LIKE 'refusals-%'"), 0, 'no sub-user is left';
is $stack->sql("SELECT count(*) FROM files f JOIN users u ON u.id = f.user_id WHERE u.email = 'refusals\@load.test'"), 0, 'no file either';
is $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()'), 0, 'nor a lock';

# ---- the command line
$r = $stack->sim([qw(refusals --list)], env => { TMA_URL => '' }, dir => '/');
is $r->{status}, 0, '--list needs no server';
like $r->{out}, qr/^over_quota\s+413\s/m, 'and names rows, statuses and what is asked';
$r = $stack->sim([qw(refusals --only over_quta)]);
is $r->{status}, 2, 'a misspelt row is a usage error';
like $r->{err}, qr/over_quta/, 'and named';

done_testing;
