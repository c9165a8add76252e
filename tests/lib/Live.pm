package Live;
# Runs a cmocka program that needs a server: its tests become ours, its environment is what the test gives.
#
#   live($ENV{LIVE_WEBDAV}, 'apache', DAV_URL => …);
#   live("$ENV{LIVE_WEBDAV} 'the_trash*'", …);     # some of its tests
#
# Core modules only.
use strict;
use warnings;
use Exporter 'import';
use Test::More;

our @EXPORT = qw(live);

sub live {
    my ($program, $what, %set) = @_;
    defined $program or die "no program for $what: run this by `make sys`\n";
    my $out = do { local %ENV = (%ENV, %set, CMOCKA_MESSAGE_OUTPUT => 'TAP'); `$program 2>&1` };
    my $status = $?;
    for (split /\n/, $out) {
        if (/^(?:not )?ok \d+ # SKIP (.*)/) { diag "$what: $1 is left out" }
        elsif (/^ok \d+ - (.*)/) { pass "$what: $1" }
        elsif (/^not ok \d+ - (.*)/) { fail "$what: $1" }
        else { diag $_ unless /^(?:1\.\.|TAP|#? ?ok)/ }
    }
    is $status, 0, "$what: it ended well";
    return;
}

1;
