package Runs;
# sim run against a scripted server, for the component tests: start, wait, and what its JSON and its tables say.
use strict;
use warnings;
use Exporter 'import';
use File::Temp qw(tempdir);
use FakeDrive;
use Sim;
use Time::HiRes qw(stat);

our @EXPORT = (qw(start_run done_run run_sim end_run in_window ops tables mix run_folder), @Sim::EXPORT);

my $dir = tempdir(CLEANUP => 1);
my $n = 0;

sub run_folder { return $dir }

# Starts sim run @args against a FakeDrive or URL, or with options of sim_start; done_run waits for its end and reads its
# JSON into {json}; {seconds} then tells when that was written, so that runs side by side may be looked at in any order.
sub start_run {
    my ($server, @args) = @_;
    my $json = "$dir/" . ++$n . '.json';
    my %opt = ref $server eq 'HASH' ? %$server : (env => { TMA_URL => ref $server ? $server->url : $server });
    my $h = sim_start(['run', @args, '--json', $json], %opt, dir => $dir);
    $h->{json_name} = $json;
    return $h;
}

sub done_run {
    my ($h) = @_;
    sim_finish($h);
    return $h if !$h->{json_name};
    $h->{json} = json_file($h->{json_name});
    $h->{seconds} = (stat $h->{json_name})[9] - $h->{started};
    return $h;
}

sub run_sim { return done_run(start_run(@_)) }

# Ends a run that was to go on until something had happened: as by Ctrl-C, so that its status is 130.
sub end_run { my ($h) = @_; kill INT => $h->{pid}; return done_run($h) }
sub in_window { my ($h) = @_; return sim_await($h, sub { $_[0]{out} =~ /measured window begins/ }) }
sub ops { my ($h, $op) = @_; return $h->{json}{operations}{$op} // { ok => 0, failed => 0, outcomes => {} } }

# The arguments for a mix of its own.
sub mix { my ($text) = @_; my $file = 'mix' . ++$n; spew("$dir/$file", $text); return ('--mix', $file) }

# The tables of a report: [{op => [ok, failed, p50, p95, p99, slowest]}, …], the last is the summary's.
sub tables {
    my ($text) = @_;
    my @t;
    for (split /\n/, $text) {
        if (/^operation +ok +failed/) { push @t, {} }
        elsif (@t && /^([a-z][a-z ]+?) {2,}(\d+) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)/) { $t[-1]{$1} = [ $2, $3, $4, $5, $6, $7 ] }
    }
    return @t;
}

1;
