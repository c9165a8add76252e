# Every planted fault is found by its own check, which says what it is about: the short form of `make judge`, several
# faults in one run where their traces can be told apart. One stack serves all; what leaves objects or wrong rows
# behind comes last.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Judge qw(@FAULTS %FULL fault_of look);
use Sim;

my @ARGS = (8, 20, 300, 5);
my @groups = (
    [ { mix => "save 60\nupload 30\ndownload 10\n", %FULL }, qw(lost-update dropped-413) ],
    [ { mix => "save 90\nupload 10\n" }, qw(deadlock) ],
    [ { mix => "download 100\n", more => [qw(--timeout 3s)] }, qw(hang=0.1 corrupt-download=0.1) ],
    [ { mix => "save 80\nupload 20\n" }, qw(lock-ignored double-lock event-late orphan-object slow-commit=0.3) ],
    [ { mix => "save 30\nupload 30\ncopy 25\ndownload 15\n" }, qw(lost-upload=0.3 stale-listing duplicate-on-retry event-dropped=0.3) ],
    [ { mix => "save 30\nupload 25\ncopy 20\ntrash 15\ndownload 10\n", %FULL },
      qw(feed-gap trash-leak=0.5 truncated-object=0.3 copy-partial=0.5 aggregate-drift=0.2 storage-drift=0.2 quota-overrun) ],
);
my %covered = map { (my $f = $_) =~ s/=.*//; $f => 1 } map { my ($load, @f) = @$_; @f } @groups;
is_deeply [sort keys %covered], [sort map { $_->{fault} } @FAULTS], 'every fault is covered';

my $stack = Sim::Stack->new;
is $stack->sim([qw(seed 1 0.003 -q)])->{status}, 0, 'seed';
my $clean = look($stack, [], { args => \@ARGS }, 1);
is $clean->{status}, 0, 'no fault: healthy' or diag $clean->{out}, $clean->{err};
is_deeply $clean->{found}, {}, 'no fault: nothing is found';
is_deeply [map { $_->{name} } grep { $_->{status} ne 'ok' } @{ $clean->{json}{checks} }], [], 'no fault: every check ran';
my %clean = map { $_->{name} => $_->{summary} } @{ $clean->{json}{checks} };
like $clean{versions}, qr/; a save from a version that has a successor was refused$/, 'what must be refused was tried: a stale save';
like $clean{locks}, qr/; a save and a lock under another login's lock were refused/, 'and what another holds';

my $seed = 1;
for (@groups) {
    my ($load, @faults) = @$_;
    my @planted = map { fault_of(/^([^=]+)/) } @faults;
    my (%found, $r);
    for (1 .. 3) { # whether one strikes is chance, and a slow machine gives it few
        $r = look($stack, \@faults, { args => \@ARGS, %$load }, $seed++);
        note sprintf 'took %.1f s', $r->{seconds};
        is $r->{status}, 1, "@faults: not healthy" or diag $r->{out}, $r->{err};
        for my $f (@planted) { $found{ $f->{fault} } += grep { $_ =~ $f->{says} } @{ $r->{found}{ $f->{check} } // [] } }
        last if !grep { !$found{ $_->{fault} } } @planted;
    }
    ok $found{ $_->{fault} }, "$_->{fault}: found by $_->{check}" or diag $r->{out} for @planted;
}

done_testing;
