# A run judged again by another process that knows the server's API alone: what a later run changed is not held against
# the server, what nobody changed is, and a session that is over is renewed.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

# One file, so that whoever changes anything changes that.
my $d = FakeDrive->new(sub_users => 1, folders => 1, files => 1);
my @mix = mix("save 1\nrename 1\n");
sub check { return sim(['check', '--only', 'ledger', '--run', @_], dir => run_folder(), env => { TMA_URL => $d->url }) }

# A run that ends once it has saved and renamed.
sub changes {
    my (@args) = @_;
    my @done = (qr{^POST .*/replace}, qr{^POST .*/rename});
    my @before = map { $d->count($_) } @done;
    my $h = start_run($d, qw(2 1 600 60 --run-dir), @args, @mix);
    ok in_window($h), "$args[0]: at work" or diag $h->{out}, $h->{err};
    ok wait_until(sub { !grep { $d->count($done[$_]) < $before[$_] + 3 } 0 .. $#done }), "$args[0]: has changed the file";
    end_run($h);
    is $h->{status}, 130, "$args[0]: is over" or diag $h->{out}, $h->{err};
}

changes('first');
my $c = check('first', '--fail-on', 'ledger.items>0', '--fail-on', 'renames.found>0');
is $c->{status}, 0, 'it is judged, with thresholds on figures of its ledger' or diag $c->{out}, $c->{err};

subtest 'sessions that end' => sub {
    $d->rule(path => qr{/download$}, status => 401, times => 3, body => { message => 'Session expired. Please login again.' });
    my $r = check('first', '--fresh-sign-in');
    is $r->{status}, 0, 'are renewed, also when the new one ends at once' or diag $r->{out}, $r->{err};
    $d->rule(path => qr{/download$}, status => 401, body => { message => 'Session expired. Please login again.' });
    $r = check('first', '--fresh-sign-in');
    $d->rules_clear;
    is $r->{status}, 3, 'a server that takes none cannot be asked' or diag $r->{out}, $r->{err};
    like $r->{err}, qr/'ledger' could not run: the server could not be asked for file/, 'which is said';
    unlike $r->{out}, qr/the server answers 401/, 'and held against no file';
};

changes('second', qw(--seed 2));
$c = check('first');
is $c->{status}, 0, 'is no fault of the first' or diag $c->{out}, $c->{err};
like $c->{out}, qr/not judged, as somebody else changed them too: \d+ items?/, 'and what it changed is counted' or diag $c->{out};
rename run_folder() . '/second', run_folder() . '/first/second' or die $!;
$c = check('first');
is $c->{status}, 1, 'were nothing known of it, that would be a fault' or diag $c->{out}, $c->{err};
like $c->{out}, qr/without the database it is not known what others changed/, 'with the doubt said' or diag $c->{out};

my $run = run_sim($d, qw(1 1 60 1 --run-dir alone), @mix, '--fail-on', 'ledger.records>=0');
is $run->{status}, 0, 'a run can be given such a threshold too' or diag $run->{out}, $run->{err};

done_testing;
