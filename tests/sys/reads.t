# Reads on real parts: every row is timed in both parts and true; and an answer that is not is caught by name.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 3 0.05)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};

sub report { return json_file("$stack->{dir}/reads.json") }

$r = $stack->sim([qw(reads --times 3 --background 4 --json reads.json)]);
is $r->{status}, 0, 'reads: exit status 0' or diag $r->{out}, $r->{err};
my $j = report();
my %row = %{ $j->{reads} };
cmp_ok scalar keys %row, '>=', 30, 'the table is long';
is_deeply [grep { $row{$_}{answer} ne 'true' && $_ ne 'changes_now' } sort keys %row], [], 'every answer is true' or diag $r->{out};
is $row{changes_now}{answer}, 'not_compared', 'what has no truth says so';
for my $part (qw(alone load)) {
    is_deeply [grep { $row{$_}{$part}{ok} != 3 || $row{$_}{$part}{failed} } sort keys %row], [], "$part: three of three each";
    is_deeply [grep { my $t = $row{$_}{$part}; !($t->{p50_ms} <= $t->{p95_ms} && $t->{p95_ms} <= $t->{max_ms}) } sort keys %row], [], "$part: percentiles in order";
}
cmp_ok $row{$_}{rows}, '>', 0, "$_: rows came" for qw(list_hot list_root list_small search_1 search_2 search_3 search_many recent starred trash changes_hour);
is $row{search_none}{rows}, 0, 'no hit: no rows';
my ($check) = grep { $_->{name} eq 'truth' } @{ $j->{checks} };
is $check->{status}, 'ok', 'the verdict stands among the checks';
cmp_ok $j->{operations}{first_list}{ok}, '>', 0, 'the background was at work';
is $stack->sql("SELECT count(*) FROM files WHERE starred OR deleted_at IS NOT NULL AND name LIKE 'read%'"), 0, 'what was starred and trashed for it is gone';

# ---- % and _ stand for themselves, whatever way the search takes
my $owner = $stack->sql("SELECT id FROM users WHERE email = 'owner\@load.test'");
# Both counts in one statement: a copy that an app of the background asked for may come about in between.
for my $q ('%', '_', 'e', '.p', 'a_b', '100%', 'the', 'report') {
    my ($found, $there) = split /\|/, $stack->sql("SELECT (SELECT count(*) FROM drive_search('$owner', '$q', 100000)), (SELECT count(*) FROM files WHERE deleted_at IS NULL AND position(lower('$q') IN lower(name)) > 0)");
    is $found, $there, "search '$q': each hit and no other";
}
my ($page, $first) = split /\|/, $stack->sql("SELECT (SELECT string_agg(name, '/' ORDER BY name, id) FROM drive_search('$owner', 'e', 7)),"
    . " (SELECT string_agg(name, '/' ORDER BY name, id) FROM (SELECT name, id FROM files WHERE deleted_at IS NULL AND position('e' IN lower(name)) > 0 ORDER BY name, id LIMIT 7) f)");
is $page, $first, 'the first ones by name';

# ---- a wrong answer: totals that are off, an item that a listing hides
my ($hot) = split /\n/, $stack->sql("SELECT parent_id FROM files WHERE type = 'file' AND deleted_at IS NULL AND parent_id IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1");
$stack->sql("UPDATE files SET aggregate_file_count = aggregate_file_count + 1 WHERE id = '$hot'");
$r = $stack->sim([qw(reads --times 1 --background 0 --json reads.json)]);
is $r->{status}, 1, 'a wrong total: exit status 1' or diag $r->{out}, $r->{err};
is report()->{reads}{info_folder}{answer}, 'wrong', 'and the read is named';
like $r->{out}, qr/info_folder: .*fileCount is \d+, the rows say \d+/, 'with both figures';
$stack->sql("UPDATE files SET aggregate_file_count = aggregate_file_count - 1 WHERE id = '$hot'");
$r = $stack->sim([qw(reads --times 1 --background 0 --fail-on), 'list_hot.p95<1us', '--fail-on', 'search_none.rows==0']);
is $r->{status}, 3, 'a p95 of one sample can be judged by nobody: exit status 3';
like $r->{out}, qr/^  unknown +list_hot\.p95<1us \(could not be judged: 1 sample, it needs 20\)$/m, 'and it says why';
like $r->{out}, qr/^not judged: 1 threshold could not be judged \(list_hot\.p95<1us\)(,|$)/m, 'in the last line too';
is $stack->sim([qw(reads --times 19 --p95 1us)])->{status}, 2, 'nor is it asked for with --p95';
$r = $stack->sim([qw(reads --times 20 --background 0 --fail-on), 'list_hot.p95<1us', '--fail-on', 'search_none.rows==0']);
is $r->{status}, judged($r, 1), 'a threshold of a single row: exit status 1';
like $r->{out}, limited($r) ? qr/^  unknown +list_hot\.p95<1us \(could not be judged: the generator/m : qr/^  MISSED +list_hot\.p95<1us \([\d.]+\)$/m, 'and it is named';
like $r->{out}, qr/^  ok +search_none\.rows==0 \(0\)$/m, 'another one is met';
$r = $stack->sim([qw(reads --times 20 --background 0 --p95 1us)]);
is $r->{status}, judged($r, 1), 'a p95 above the limit: exit status 1';
like $r->{out}, limited($r) ? qr/^  unknown +list_hot\.p95<=1us \(could not be judged: the generator/m : qr/list_hot: .* above/, 'and the read is named';
like $r->{out}, limited($r) ? qr/^  ok +truth .* 0 wrong$/m : qr/^  VIOLATED truth .* 0 wrong, \d+ slower than /m, 'slow is not called wrong';

# ---- without a database: timed, not compared, and said so
$r = $stack->sim([qw(reads --times 1 --background 0)], env => { DATABASE_URL => '' }, dir => '/');
is $r->{status}, 0, 'without DATABASE_URL: exit status 0' or diag $r->{out}, $r->{err};
like $r->{out}, qr/ 1 compared with the database: DATABASE_URL is not set/, 'what is not compared is said';

# ---- interrupted: what was not come to is called not tried
my $h = $stack->start([qw(reads --times 1000 --background 0 --json cut.json)]);
ok sim_await($h, sub { $_[0]{out} =~ /^reading:/m }), 'at work';
kill 'INT', $h->{pid};
is sim_finish($h)->{status}, 130, 'interrupted: status 130';
my @untried = grep { $_->{answer} eq 'not_tried' } values %{ json_file("$stack->{dir}/cut.json")->{reads} };
cmp_ok scalar @untried, '>', 0, 'the rows after it were not tried';
like $h->{out}, qr/, ${\scalar @untried} not tried,/, 'and are counted so';

done_testing;
