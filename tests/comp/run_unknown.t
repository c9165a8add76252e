# Requests without an answer: unknown, never failed writes, and settled afterwards by reading.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

my $d = FakeDrive->new(sub_users => 1, folders => 4, files => 200); # few of which two change
my $h = start_run($d, qw(4 4 120 6), mix("download 2\nupload 2\nsave 3\nrename 2\nmove 1\ntrash 1\nnew_folder 1\n"));
in_window($h);
$d->rule(path => qr{/(upload|rename|replace|move|delete|folder)$}, close => 1, times => 6);
done_run($h);
my ($row) = grep { $_->{name} eq 'ledger' } @{ $h->{json}{checks} };
is $row->{status}, 'ok', 'none was done by half' or diag explain $row;
my %sum;
for my $kind (grep { ref eq 'HASH' } values %{ $h->{json}{ledger} }) { $sum{$_} += $kind->{$_} for keys %$kind }
is $sum{unknown}, 6, 'all six are unknown';
is $sum{not_done} + $sum{overtaken}, 6, 'and were not done, as reading shows where nobody changed the item later';
is $sum{done}, 0, 'none of them was';
cmp_ok $sum{not_done}, '>=', 4, 'items that two change are few';
is $sum{found}, $sum{acknowledged}, 'what was acknowledged is there all the same';
like $h->{out}, qr/^ +\w[\w ]*: [\d,]+ acknowledged, [\d,]+ found, \d unknown settled as not done$/m, 'said in words';

done_testing;
