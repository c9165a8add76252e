# How a run ends before its time: Ctrl-C once and twice, a reader that leaves (X03 X04 X05, K05).
use strict;
use warnings;
use Test::More;
use Time::HiRes ();
use lib 'tests/lib';
use Runs;

my $dir = run_folder();

# ---- X04, X05: reports at once, one Ctrl-C drains, two end
{
    my $s = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $h = start_run($s, qw(6 4 120 60 --grace 3 --report-every 1));
    ok in_window($h), 'the first report is there at once';
    ok sim_read($h, 5, sub { $_[0]{out} =~ /  2 s of 60 s/ }), 'and each interval';
    kill INT => $h->{pid};
    done_run($h, 10);
    is $h->{status}, 130, 'one Ctrl-C: 130';
    like $h->{out}, qr/summary of run: interrupted after \d/, 'a full summary says so';
    is ops($h, 'full_pass')->{ok}, 6, 'with all figures';
    is $h->{json}{failed}, 0, 'what ran was finished';
    is $s->state->{locks}, 0, 'locks are let go';
    is $s->state->{streams_open}, 0, 'streams closed';

    $h = start_run($s, qw(6 4 120 60 --grace 20));
    in_window($h);
    $s->rule(path => qr{/(download|replace)}, hang => 1);
    sim_read($h, 2, sub { 0 });
    kill INT => $h->{pid};
    ok !sim_read($h, 1, sub { $_[0]{out} =~ /summary/ }), 'a hung server holds the drain';
    my $t0 = Time::HiRes::time();
    kill INT => $h->{pid};
    done_run($h, 10);
    is $h->{status}, 130, 'twice: 130';
    cmp_ok Time::HiRes::time() - $t0, '<', 3, 'at once';
    like $h->{out}, qr/summary of run: interrupted after \d/, 'and still tells what there is';
    is $s->state->{locks}, 0, 'locks are let go even then';

    $s->rules_clear;
    $h = start_run($s, qw(6 4 120 60 --grace 3));
    in_window($h);
    kill TERM => $h->{pid};
    is done_run($h, 10)->{status}, 130, 'SIGTERM is as Ctrl-C';
}

# ---- X03: the reader goes away
{
    my $s = FakeDrive->new(sub_users => 2, folders => 6, files => 10);
    my $out = do {
        local $ENV{TMA_URL} = $s->url;
        my $sim = sim_path();
        `cd $dir && bash -c 'set -o pipefail; $sim run 4 4 120 30 --report-every 1 2>err | head -1'`;
    };
    is $? >> 8, 141, 'status 141, as standard tools';
    like $out, qr/\Atarget: /, 'the first line came';
    unlike slurp("$dir/err"), qr/pipe|signal|abort/i, 'no crash text';
    is $s->state->{locks}, 0, 'locks are let go';
}

done_testing;
