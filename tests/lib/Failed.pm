package Failed;
# Below an assertion that failed: what the program said last, and what the server answered last, unless the test shows it
# itself. Whoever runs something for a test hands in what came of it:
#
#   Failed::said("sim run 5 8 60 4: status 1 after 4.2 s", $out, $err);
#   Failed::answered("POST /api/login: 401", $body);
#
# Of long texts the beginning and the end are shown, each text once. In a program that is no test this does nothing.
use strict;
use warnings;

use constant { KEPT => 3, FIRST => 30, LAST => 80, WIDTH => 400 };

my (@said, $answer, $failed, $diag);
my $main = $$;

sub said {
    my ($what, @texts) = @_;
    push @said, { what => $what, texts => [ grep { defined && length } @texts ] };
    shift @said while @said > KEPT;
    return;
}

# Of answers the last one only: a test may have thousands.
sub answered { my ($what, $body) = @_; $answer = { what => $what, texts => [ grep { defined && length } $body ] }; return }

sub cut {
    my ($text) = @_;
    my @lines = map { length > WIDTH ? substr($_, 0, WIDTH) . ' […]' : $_ } split /\n/, $text;
    splice @lines, FIRST, @lines - FIRST - LAST, '[…]' if @lines > FIRST + LAST + 1;
    return @lines;
}

sub show {
    $failed = 0;
    for my $s ($answer // (), reverse splice @said) { # the latest first
        my @texts = grep { index($diag, s{\s+\z}{}r) < 0 } @{ $s->{texts} };
        next if @{ $s->{texts} } && !@texts;
        print STDERR map { "# $_\n" } "--- $s->{what}", map { cut($_) } @texts;
    }
    $answer = undef;
    return;
}

# Called for all that happens in the test: its own words about a failure come right behind it, ours behind those.
sub happened {
    my (undef, $event) = @_;
    my $f = $event->facet_data;
    if ($failed && $f->{info} && !$f->{assert}) { $diag .= join "\n", map { $_->{details} // '' } @{ $f->{info} }; return }
    show() if $failed;
    return if !$f->{assert} || $f->{parent} || $f->{assert}{pass} || @{ $f->{amnesty} // [] };
    ($failed, $diag) = (1, '');
    return;
}

{
    no warnings 'void'; # a program that loads this while it runs is no test
    INIT { Test2::API::test2_stack()->top->listen(\&happened, inherit => 1) if $INC{'Test/More.pm'} }
}
# A test that died says why by itself, but not what led to it.
END { if ($$ == $main && $INC{'Test/More.pm'} && ($failed || $?)) { local $?; $diag //= ''; show() } }

1;
