# What --trace takes is what has debug lines.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

my $root = dirname(__FILE__) . '/../..';
my %has;
sub text { my ($file) = @_; open my $fh, '<', $file or die "$file: $!"; local $/; return scalar <$fh> }
for my $file (split /\n/, `find $root/src $root/sim $root/seed $root/checks -name '*.c'`) {
    $has{$_} = 1 for text($file) =~ /\bLOGD\("(\w+)"/g;
}
my ($list) = text("$root/sim/usage.c") =~ /\btraced\[\] = \{(.*?)\}/s or die 'usage.c lists no modules';
my @takes = grep { $_ ne 'all' } $list =~ /"(\w+)"/g;
is_deeply [sort @takes], [sort keys %has], '--trace takes the modules that have debug lines';
my ($help) = text("$root/sim/usage.c") =~ /debug lines of these: (.*?) or all/s or die 'no help for --trace';
$help =~ s/\\n|"\s*"//g;
is_deeply [sort $help =~ /(\w+)/g], [sort @takes], 'and its help names them';

done_testing;
