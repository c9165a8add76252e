# A run in every form that it can be had in: by its own options and again by `sim report`, of a run that was killed, and
# onto disks that are full.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Serve;
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $server = Serve->new($stack);
my $dir = $stack->{dir};
my %env = (env => { TMA_URL => $server->url });
my @forms = qw(json csv html junit prometheus hdr);
sub files { my ($name) = @_; return map { ("--$_", "$name.$_") } @forms }

my $r = $stack->sim([qw(seed 1 0.01)], %env);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};
$r = $stack->sim(['run', qw(3 5 60 3 --fail-on failed==0), files('run')], %env);
is $r->{status}, 0, 'run' or diag $r->{out}, $r->{err};
my $j = json_file("$dir/run.json");

subtest 'the forms of a run' => sub {
    my $junit = slurp("$dir/run.junit");
    like $junit, qr/<testcase classname="drivesim\.run\.checks" name="$_->{name}" time="0"/, "JUnit: $_->{name}" for @{ $j->{checks} };
    like $junit, qr/name="failed==0" time="0"\/>/, 'JUnit: the threshold';
    my ($cases) = $junit =~ /<testsuites [^>]*tests="(\d+)"/;
    is $cases, scalar(() = $junit =~ /<testcase /g), 'JUnit: as many cases as it says';
    my $prometheus = slurp("$dir/run.prometheus");
    like $prometheus, qr/^drivesim_exit_status 0$/m, 'Prometheus: the exit status';
    like $prometheus, qr/^drivesim_operations_total\{operation="download",outcome="ok"\} $j->{operations}{download}{ok}$/m, 'Prometheus: downloads';
    unlike $prometheus, qr/^(?!#|drivesim_\w+(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? [-+.e\d]+$)/m, 'Prometheus: every line is well-formed';
    my $html = slurp("$dir/run.html");
    like $html, qr{<h1>sim run: <b>healthy}, 'page: the verdict';
    like $html, qr{<title>$_</title>}, "page: $_" for 'Operations', 'Latency of download', 'Latency by percentile', 'Event streams up', 'Processor';
    unlike $html, qr{<script|<link|src=|url\(}, 'page: complete in itself';
    my $hdr = slurp("$dir/run.hdr");
    like $hdr, qr/^#\[Histogram log format version 1\.3\]$/m, 'HDR: its format';
    like $hdr, qr/^Tag=download,[\d.]+,[\d.]+,[\d.]+,HISTFAAA[A-Za-z0-9+\/=]+$/m, 'HDR: a histogram';
};

subtest 'the same again, without the server' => sub {
    my $again = $stack->sim(['report', files('again')]);
    is $again->{status}, 0, 'status 0' or diag $again->{err};
    my ($summary) = $r->{out} =~ /(^summary of run.*)/ms;
    like $again->{out}, qr/^run of \Q$j->{run_dir}\E$/m, 'of the newest run';
    is index($again->{out}, $summary) >= 0, 1, 'the summary as it was' or diag $again->{out};
    is slurp("$dir/again.$_"), slurp("$dir/run.$_"), "$_: byte for byte" for @forms;
    is $stack->sim(['report', 'run.json', '--junit', 'of-json.xml'])->{status}, 0, 'of a file that --json wrote';
    is slurp("$dir/of-json.xml"), slurp("$dir/run.junit"), 'the same';
    is $stack->sim(['report', $j->{run_dir}, '--fail-on', 'download.max<0.001'])->{status}, judged($r, 1), 'a threshold that it missed';
    for ([['nowhere'], qr/cannot read nowhere/], [['.'], qr/no folder of a run/], [['run.csv'], qr/run\.csv holds no result/], [['run.json'], qr/say what to make of it/]) {
        my $no = $stack->sim(['report', @{ $_->[0] }]);
        is $no->{status}, 2, "report @{ $_->[0] }: status 2";
        like $no->{err}, $_->[1], 'and why';
    }
};

subtest 'a run that was killed' => sub {
    my $h = $stack->start(['run', qw(3 5 60 60 --run-dir killed)], %env);
    my $file = "$dir/killed/intervals.jsonl";
    ok wait_until(60, sub { -s $file && slurp($file) =~ /"phase":"window".*\n/ }), 'it keeps its course while it runs';
    kill 'KILL', $h->{pid};
    sim_finish($h);
    my $killed = $stack->sim([qw(report killed --json killed.json --junit killed.xml)]);
    is $killed->{status}, 0, 'status 0' or diag $killed->{err};
    like $killed->{out}, qr/it did not come to its end/, 'it says so';
    my $k = json_file("$dir/killed.json");
    is $k->{exit}, 130, 'its own status';
    cmp_ok $k->{operations}{full_pass}{ok}, '==', 3, 'what it had done';
    like slurp("$dir/killed.xml"), qr/<error message="it did not come to its end/, 'JUnit: an error';
};

subtest 'a disk that is full' => sub {
    my $full = $stack->sim([qw(report --junit /dev/full --csv csv --prometheus /dev/full)]);
    is $full->{status}, 3, 'status 3';
    like $full->{err}, qr{cannot write /dev/full: No space left on device}, 'and why';
    like $full->{out}, qr/^healthy/m, 'the text is there';
    is slurp("$dir/csv"), slurp("$dir/run.csv"), 'the others are written';
    is $stack->sim([qw(report --junit none/x.xml)])->{status}, 2, 'no such folder: said at once';
};

done_testing;
