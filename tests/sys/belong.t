# Database, Redis and bucket of another server are never judged nor deleted from: not even those of a twin, which has the
# same rows, ids and keys. What cannot be proven is said, and clean then removes nothing.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $own = Sim::Stack->new;
my $r = $own->sim([qw(seed 1 0.01 --bytes-scale 0.01)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
unlike $r->{out}, qr/not proven/, 'all parts are proven as soon as there is an account';
is $own->stack('status')->{status}, 0, 'it runs';
is Sim::sim([qw(fixture save twins)], dir => $own->{dir})->{status}, 0, 'saved';
my $twin = Sim::Stack->new;
is Sim::sim(['fixture', 'load', 'twins', '--dir', "$own->{dir}/.sim/fixtures"], dir => $twin->{dir})->{status}, 0, 'and loaded beside it';
delete $twin->{env};
$twin->up; # its store's key is the fixture's now
is $twin->sim(['check'])->{status}, 0, 'the twin is healthy by itself';

my %parts = (
    DATABASE_URL => ['DATABASE_URL'],
    REDIS_URL => ['REDIS_URL'],
    'the bucket' => [map { "TMA_LOAD_S3_$_" } qw(ENDPOINT BUCKET ACCESS_KEY SECRET_KEY)],
);
sub of_twin { return { map { $_ => $twin->env->{$_} } map { @{ $parts{$_} } } @_ } }
sub state_of {
    my ($stack) = @_;
    my $rows = join ' ', map { $stack->sql("SELECT count(*) FROM $_") } qw(files changes users audit_log);
    return $rows . ' ' . grep { -s } split /\n/, `find '$stack->{dir}/.sim' -type f -name '*_object'`;
}

# Swapped in every combination, at once: they only look. In a folder without a stack, so that nothing else names a part.
my @names = sort keys %parts;
my @swaps = map { my $bits = $_; [map { $names[$_] } grep { $bits >> $_ & 1 } 0 .. 2] } 1 .. 7;
my $before = state_of($twin);
my %at_work;
for my $swap (@swaps) {
    my $what = join ' and ', @$swap;
    $at_work{"$_->[0] with the twin's $what"} = [$swap, $own->start($_, dir => '/', env => of_twin(@$swap))]
        for [qw(clean --yes)], @$swap == 1 ? (['check'], ['doctor'], [qw(baseline --only drive,redis --time 100ms)], [qw(run 1 1 1 1)], [qw(seed 1 0.01 --bytes-scale 0.01)]) : ();
}
for my $what (sort keys %at_work) {
    my ($swap, $h) = @{ $at_work{$what} };
    $r = sim_finish($h);
    is $r->{status}, 3, "$what: status 3" or diag $r->{out}, $r->{err};
    my ($said) = "$r->{out}\n$r->{err}" =~ /^(?:sim \w+: (?:drive: )?|  missing +one server +)(.*?): of another server than \Q@{[$own->env->{TMA_URL}]}\E; \S/m;
    my @knowable = grep { $_ ne 'the bucket' || !grep { /DATABASE/ } @$swap } @$swap; # a row names its objects
    like $said // '', qr/\Q$_\E/, "$what: $_ is named" for @knowable;
    unlike $said // '', qr/\Q$_\E/, "$what: $_ is not" for grep { my $n = $_; !grep { $n eq $_ } @$swap } @names;
}
is state_of($twin), $before, 'nothing of the twin was touched';
is $own->sql("SELECT count(*) FROM files WHERE name LIKE 'drivesim-proof%'"), 0, 'no marker is left on the server';

# Before the first account there is nothing to prove it by; a database with accounts is another server's all the same.
{
    my $empty = Sim::Stack->new('--no-server');
    my $fresh = Serve->new($empty);
    my %of = (%{ $own->env }, TMA_URL => $fresh->url);
    $r = Sim::sim(['check'], dir => '/', env => \%of);
    is $r->{status}, 3, 'an empty server beside a database with accounts' or diag $r->{out}, $r->{err};
    like $r->{err}, qr/^sim check: DATABASE_URL: of another server than/m, 'is named';
    $r = Sim::sim(['check'], dir => '/', env => { %{ $empty->env }, TMA_URL => $fresh->url });
    is $r->{status}, 0, 'beside its own' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/^not proven to be this server's: DATABASE_URL, REDIS_URL, the bucket.*; no account/m, 'what is not proven is said';
}

# The right parts: proven without a trace.
$before = state_of($own);
$r = $own->sim(['check']);
is $r->{status}, 0, 'its own parts' or diag $r->{out}, $r->{err};
unlike $r->{out}, qr/not proven/, 'are proven';
is state_of($own), $before, 'by nothing that stays';
$r = $own->sim([qw(clean --dry-run)]);
is $r->{status}, 0, 'for clean too' or diag $r->{out}, $r->{err};
is $own->sql('SELECT count(*) FROM files'), (split ' ', $before)[0], 'by nothing that stays in the tree';

# A Redis that was given and is not to be had, or is asked for another of its databases.
my ($redis, $number) = $own->env->{REDIS_URL} =~ m{^(.*)/(\d+)$};
my %redis = ('another of its databases' => "$redis/5", TLS => $redis =~ s/^redis/rediss/r, 'a wrong password' => $redis =~ s{//}{//:wrong\@}r, refused => 'redis://127.0.0.1:9/0');
%at_work = ();
for my $why (sort keys %redis) {
    $at_work{"$_->[0], Redis: $why"} = $own->start($_, env => { REDIS_URL => $redis{$why} }) for [qw(clean --yes)], ['check'], [qw(run 1 1 1 1)];
}
for my $what (sort keys %at_work) {
    $r = sim_finish($at_work{$what});
    is $r->{status}, 3, "$what: status 3" or diag $r->{out}, $r->{err};
    like $r->{err}, qr/REDIS_URL/, "$what: named";
}
is $own->sim(['stop'], env => { REDIS_URL => $redis{refused} })->{status}, 3, 'stop too: nobody can say that all have ended';
is $own->sql('SELECT count(*) FROM users'), 2, 'clean removed nothing';

# A server that loses what it took is no other server: what it keeps from being proven is said, and only clean refuses.
$own->stack('stop', 'server');
is $own->stack('start', 'server', '--server-args=--login-budget 0 --fault lost-upload=1')->{status}, 0, 'a server with faults';
$r = $own->sim(['check']);
is $r->{status}, 0, 'faults: check' or diag $r->{out}, $r->{err};
unlike $r->{out}, qr/not proven/, 'its events and settings prove it';
$r = $own->sim([qw(clean --yes)]);
is $r->{status}, 3, 'faults: clean' or diag $r->{out}, $r->{err};
like $r->{err}, qr/nothing was removed, since nothing proves that the bucket .* of this server: the server lost a file/, 'says what is missing';
is $own->sql('SELECT count(*) FROM users'), 2, 'and nothing was removed';
$own->stack('stop', 'server');
is $own->stack('start', 'server', '--server-args=')->{status}, 0, 'and without';

$r = $own->sim([qw(clean --yes)]);
is $r->{status}, 0, 'with its own parts all goes' or diag $r->{out}, $r->{err};
is $own->sql('SELECT count(*) FROM users'), 0, 'nobody is left';
is $twin->sim(['check'])->{status}, 0, 'and the twin is as healthy as before';

done_testing;
