# Time zones, daylight saving and a clock that is elsewhere (case X13), a decimal comma (X01): what is printed carries
# its offset, the 15 s rhythm and every duration stay as they are.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/lib';
use Sim;

# Not there, or not to be had together with a sanitizer, which wants to be the first library.
my $faketime = (grep { -x "$_/faketime" } split /:/, $ENV{PATH}) && sim(['--version'], wrap => ['faketime', '2026-11-01 01:59:50'])->{status} eq '0';
my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 2 0.01)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
my @run = qw(run 3 3 60 17 --json run.json);

SKIP: {
    skip 'faketime does not work here', 6 unless $faketime;
    # The last night of summer time in New York: at 06:00 UTC the clocks there go back from 2:00 to 1:00.
    $r = $stack->sim(\@run, env => { TZ => 'America/New_York' }, wrap => ['faketime', '2026-11-01 01:59:50']);
    is $r->{status}, 0, 'across the change of daylight saving time' or diag $r->{out}, $r->{err};
    my @stamps = $r->{out} =~ /^(\d{4}-\d\d-\d\dT\S+)  /mg;
    cmp_ok scalar(@stamps), '>=', 3, 'reports are stamped';
    is_deeply [grep { !/Z$/ } @stamps], [], 'in UTC, and say so';
    is_deeply [sort @stamps], \@stamps, 'never backwards';
    like $r->{out}, qr/^interval 15\.\d s: /m, 'the 15 s rhythm stands';
    my $j = json_file("$stack->{dir}/run.json");
    cmp_ok abs($j->{seconds} - 17), '<', 5, 'and the duration';
}

my $dir = tempdir(CLEANUP => 1);
SKIP: {
    my $made = system("localedef -i de_DE -f UTF-8 $dir/de_DE.UTF-8 >/dev/null 2>&1") == 0;
    skip 'no locale with a decimal comma can be made', 4 unless $made;
    my %german = (LC_ALL => 'de_DE.UTF-8', LOCPATH => $dir, ASAN_OPTIONS => 'detect_leaks=0'); # the C library leaks a LOCPATH
    $r = $stack->sim([@run, '--csv', 'run.csv', '--fail-on', 'save.p99<9999.5'], env => \%german);
    is $r->{status}, 0, 'a run under a decimal comma' or diag $r->{out}, $r->{err};
    my $j = json_file("$stack->{dir}/run.json");
    like $j->{operations}{download}{p50_ms}, qr/^\d+(?:\.\d+)?$/, 'its JSON is JSON';
    unlike $r->{out}, qr/\d,\d(?!\d\d)/, 'a comma separates thousands only';
    my ($head, @rows) = split /\n/, slurp("$stack->{dir}/run.csv");
    my $columns = () = $head =~ /,/g;
    is_deeply [grep { my $n = () = /,/g; $n != $columns } @rows], [], 'its CSV has the same columns in every line';
}

done_testing;
