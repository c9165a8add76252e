# docs/source-documents.md says where each thing is that a source document asks for: the files it names are there, and the
# commands are ones that the program has.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

my $root = dirname(dirname(dirname(__FILE__)));
sub text { my ($file) = @_; open my $fh, '<', "$root/$file" or die "$file: $!"; local $/; return scalar <$fh> }

my ($list) = text('sim/main.c') =~ /#define COMMANDS\(X\) \\\n(.*?)\n\/\*/s;
my %command = map { $_ => 1 } $list =~ /X\((\w+)\)/g;
my $page = text('docs/source-documents.md');
my @rows = map { [split / \| /, $_] } $page =~ /^\| (.*?) \|$/mg;
my $n = 0;
for (grep { $_->[0] ne 'asked for' } @rows) {
    my ($asked, $how, $where, $test) = @$_;
    my ($name) = $how =~ /^`sim (\w+)/;
    ok $name && $command{$name}, "$asked: $how";
    ok -f "$root/$where", "$asked: $where is there";
    ok -f "$root/$test", "$asked: $test is there";
    $n++;
}
is scalar(() = $page =~ /^## /mg), 5, 'five documents';
cmp_ok $n, '>', 50, 'all of them have rows';

done_testing;
