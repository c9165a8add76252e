#!/usr/bin/env perl
# `sim stop` ends the runs of its target, or of its folder where none is known; --all names what else it ends.
use strict;
use warnings;
use File::Temp 'tempdir';
use FindBin;
use IO::Socket::INET;
use lib "$FindBin::Bin/../lib";
use Sim;
use Test::More;

my $tmp = tempdir(CLEANUP => 1); # where generators register: other tests' are not seen
my %folder = map { $_ => tempdir(CLEANUP => 1) } qw(here there);
# Servers that take a request and never answer: who loads them is at it until it is stopped.
my %silent = map { $_ => IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') // die $! } qw(a b);
my %url = map { $_ => 'http://127.0.0.1:' . $silent{$_}->sockport } keys %silent;

sub env { my ($url) = @_; return { TMPDIR => $tmp, TMA_URL => $url // '', DATABASE_URL => '', REDIS_URL => '' } }
sub registered { return map { slurp($_) } grep { !/\.new$/ } glob("$tmp/drivesim-*/*") }

sub load {
    my ($target, $folder, $path) = @_;
    my $h = sim_start(['http', "$url{$target}$path", '-n', 1000, '-c', 1, '--timeout', '10min'], dir => $folder{$folder}, env => env());
    my $place = 'localhost:' . $silent{$target}->sockport . $path;
    $h->{ready} = wait_until(sub { grep { /^http\n.*\Q$place\E$/ms } registered() });
    return $h;
}
sub stop { my ($folder, $url, @args) = @_; return sim(['stop', @args], dir => $folder{$folder}, env => env($url)) }
sub ended { my ($h) = @_; sim_finish($h); return $h->{status} }
sub lives { my ($h) = @_; return -r "/proc/$h->{pid}/stat" && slurp("/proc/$h->{pid}/stat") !~ /\) Z / }

my %h = (a => load('a', 'here', '/page'), b => load('b', 'here', ''), c => load('b', 'there', '/x'));
ok $_->{ready}, 'a generator is at work' for values %h;

my $r = stop('there', 'http://127.0.0.1:9');
is $r->{status}, 0, 'a target that nobody loads';
like $r->{out}, qr/^no generator runs for localhost:9; 3 generators with other targets: `sim stop --all`/, 'says what else there is';
ok lives($_), 'ends nothing' for values %h;

is stop('there', undef, '--all', 'x')->{status}, 2, 'a run and --all: usage';

$r = stop('there', 'http://LOCALHOST:' . $silent{a}->sockport . '/'); # spelled otherwise, from another folder
is $r->{status}, 0, 'one target';
like $r->{out}, qr/^stopping: sim http, process $h{a}{pid} since \S+, target localhost:\d+\/page, no run folder\n +started in \Q$folder{here}\E$/m, 'says whom it ends';
is ended($h{a}), 130, 'its generator ended';
ok lives($h{$_}), 'not that of another' for qw(b c);

$r = stop('there', undef);
is $r->{status}, 0, 'no target: the folder';
is ended($h{c}), 130, 'its generator ended';
ok lives($h{b}), 'not that of another folder';

$h{d} = load('a', 'there', '');
$r = stop('here', $url{a}, '--all');
is $r->{status}, 0, '--all';
like $r->{out}, qr/process $h{$_}{pid} since/, 'named' for qw(b d);
ok index($r->{out}, "process $h{d}{pid}") < index($r->{out}, 'ended after'), 'before they end';
is ended($h{$_}), 130, 'ended' for qw(b d);
like stop('here', undef, '--all')->{out}, qr/^no generator runs$/m, 'nobody is left';

done_testing;
