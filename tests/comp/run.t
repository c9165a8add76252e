# sim run against a scripted server: every figure of a plain run adds up, and a plan that cannot work is refused before
# its start, with the number that would do.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

my $dir = run_folder();

# ---- a plain run: every figure adds up
my $d = FakeDrive->new(sub_users => 3, folders => 12, files => 5);
my $r = run_sim($d, qw(6 5 120 6 --report-every 1));
is $r->{status}, 0, 'a plain run' or diag $r->{out}, $r->{err};
is $r->{json}{failed}, 0, 'without failures';
is $r->{json}{causes}{first_pass}, 30, 'each app lists its folders once at first';
is ops($r, 'full_pass')->{ok}, 6, 'in one full pass an app';
is ops($r, 'first_list')->{ok}, 30, 'counted apart from later listings';
is $r->{json}{apps}{streams_up}, 6, 'all streams are up';
is $r->{json}{seconds}, 6, 'the measured time is the one asked for';
my $sum = 0;
$sum += $_ for values %{ $r->{json}{causes} };
is $sum, $r->{json}{requests}, 'every request has a cause';
my $downloads = $r->{json}{ledger}{files_read} // 0;
$downloads += $_ for values %{ ops($r, 'download')->{outcomes} }; # of a file that another app has trashed: a conflict
is $d->count(qr{^GET \S+/download}), $downloads, 'the server saw as many downloads as are reported, and those of the check';
my @t = tables($r->{out});
cmp_ok scalar(@t), '>=', 6, 'arrival, most of six intervals, summary';
for my $op ('download', 'save', 'list', 'first list', 'changes') {
    my $parts = 0;
    $parts += $_->{$op} ? $_->{$op}[0] : 0 for @t[ 0 .. $#t - 1 ];
    is $parts, $t[-1]{$op} ? $t[-1]{$op}[0] : 0, "$op: the intervals add up to the summary";
}
unlike $r->{out}, qr/[\e\r]/, 'plain text in a pipe';
like $r->{out}, qr/^healthy\b/m, 'healthy';
is $d->state->{locks}, 0, 'no lock is left';
is $d->state->{streams_open}, 0, 'no stream either';
my ($plan) = $r->{out} =~ /^plan: seed 1 \((\w+)\)/m;
ok -s "$dir/$r->{json}{run_dir}/ledger.bin" && -s "$dir/$r->{json}{run_dir}/run.json", 'ledger and settings are kept';
my $settings = json_file("$dir/$r->{json}{run_dir}/run.json");
is $settings->{apps}, 6, 'what was asked for';
is scalar(@{ $settings->{logins} }), 4, 'and who was used';
unlike slurp("$dir/$r->{json}{run_dir}/run.json"), qr/password|token/i, 'no secret';

# ---- the same seed plans the same, another one does not
$r = run_sim($d, qw(6 5 120 1s --no-ledger --seed 2));
unlike $r->{out}, qr/^plan: seed 2 \($plan\)/m, 'another seed, another plan';
is $r->{json}{run_dir}, undef, '--no-ledger keeps nothing';
my $again = FakeDrive->new(sub_users => 3, folders => 12, files => 5);
my $h1 = start_run($again, qw(6 5 120 6 --no-ledger));
$r = done_run($h1);
like $r->{out}, qr/^plan: seed 1 \($plan\)/m, 'the same seed, the same plan';

# ---- refused before the start, with the number that would do
{
    my $few = FakeDrive->new(sub_users => 1, folders => 10);
    my $h = run_sim($few, qw(41 2 1 10));
    is $h->{status}, 3, 'too few logins for the streams';
    like $h->{err}, qr/41 apps would need more than the 2 logins.*2 sub-users would do/, 'how many would do';
    is $few->count(qr{/events}), 0, 'nothing was started';
    $h = run_sim($few, qw(20 8 30 900));
    is $h->{status}, 3, 'too many requests for the budgets';
    like $h->{err}, qr/requests in 15 minutes, 10000 are allowed: \d+ sub-users would do/, 'how many would do';
    $h = run_sim($few, qw(2 2 1 1s --mix /nonexistent));
    is $h->{status}, 2, 'a mix that is not there';
    my $locked = FakeDrive->new(password => 'another');
    $h = run_sim($locked, qw(2 2 1 1s));
    is $h->{status}, 3, 'a server that was not seeded';
    like $h->{err}, qr/owner\@load\.test cannot sign in.*sim seed/, 'one sentence';
    my $empty = FakeDrive->new(folders => 0);
    $h = run_sim($empty, qw(2 2 1 1s));
    is $h->{status}, 3, 'no folders';
    like $h->{err}, qr/no folders to open.*sim seed/, 'one sentence';
    my $taken = FakeDrive->new;
    mkdir "$dir/taken";
    spew("$dir/taken/ledger.bin", '');
    $h = run_sim($taken, qw(2 2 1 1s --run-dir taken));
    is $h->{status}, 3, 'a run folder in use';
    like $h->{err}, qr/ledger\.bin exists already/, 'is not written over';
}

done_testing;
