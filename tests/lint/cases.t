# tests/cases.txt names the test of each shared case that is handled: ID FILE NAME, FILE below tests/. No case is missing
# and each test is there under its name, in a file that speaks of the case.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

my $tests = dirname(dirname(__FILE__));
my @HANDLED = (
    (map { "L$_" } qw(02 04 05 07 08 09 10 13 14 15 16 17 18 19 20)), (map { "E$_" } qw(01 02 03 06 07 08 09 11 12 13 14 15)),
    (map { "U$_" } qw(01 04 06 07 08 10 11 12 13)), (map { "K$_" } qw(03 04 05 07 08 09 10 11 12)), (map { "S$_" } qw(02 03 05 06 07 08 09 10)), (map { "C$_" } qw(04 05 06 07 08 09 10 11 13 14)),
    (map { "X$_" } qw(01 03 04 05 06 07 08 09 10 11 12 13 14)),
);

sub text { my ($file) = @_; open my $fh, '<', "$tests/$file" or return; local $/; return scalar <$fh> }

my %listed;
for (split /\n/, text('cases.txt')) {
    my ($id, $file, $name) = /^([A-Z]\d\d) (\S+\.[ct]) (\S.*)$/;
    ok $id, "a line is ID FILE NAME: $_" or next;
    ok !$listed{$id}{$file}++, "$id: one test in a file";
    my $text = text($file) // '';
    my $there = $file =~ /c$/ ? qr/^static void \Q$name\E\(void \*\*state\)$(?=.*\b(?:CASE|cmocka_unit_test)\(\Q$name\E\))/ms : qr/(['"])\Q$name\E\1/;
    like $text, $there, "$id: $name is in $file";
    like $text, qr/\b$id\b/, "$id: $file speaks of it";
}
is_deeply [sort keys %listed], [sort @HANDLED], 'the cases that are handled';

# X14: access that a test takes away by a file mode is still there for root, and the test would prove nothing.
for my $file (glob "$tests/{unit,comp,sys,lib}/*") {
    (my $name = $file) =~ s{.*/(\w+/)}{$1};
    my @modes = text($name) =~ /\bchmod\b[^;\n]*?\b(0[0-7]{3})\b/g;
    is_deeply [grep { !/^0[67]/ } @modes], [], "$name takes nothing away from its owner" if @modes;
}

done_testing;
