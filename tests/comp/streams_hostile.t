# What answers instead of an event stream, or ends it in all ways, for each command that holds one: told in a sentence,
# and nothing that is over is used again (a matter of `make V=asan comp`).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Runs;

my $head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
my $hello = "data: {\"type\":\"connected\"}\n\n";
my $events = join '', map { "data: $_\n\n" } '{"type":"file.updated"}', '{"type":"file.updated","data":{}}', '{"type":"file.moved","data":{"id":null,"name":7}}',
    '{"type":"file.batch","data":{"events":[{},null,7,{"type":"resync"}]}}', '[]', 'null', '{', "\0\xFF", '{"type":"error","message":"x"}';
my %stream = ( # says: the run
    'ends right after its head' => { text => $head, end => 'close', says => qr/stream connect: 200 it ended before anything came on it: the server closed the stream/ },
    'is reset right after its head' => { text => $head, end => 'reset', says => qr/stream connect: / },
    'ends in mid-head' => { text => substr($head, 0, 30), end => 'close', says => qr/stream connect: / },
    'ends in mid-line' => { text => "${head}data: {\"ty", end => 'close', says => qr/it ended before anything came/ },
    'ends after an event' => { text => $head . $hello, end => 'close' },
    'is one line without end' => { text => "${head}data: ", pad => 3 << 20, end => 'open', says => qr/stream connect: 200 an event of more than # KiB: the stream was given up/ },
    'is one header without end' => { text => "HTTP/1.1 200 OK\r\nX: ", pad => 3 << 20, end => 'open', says => qr/stream connect: / },
    'has headers without end' => { text => "HTTP/1.1 200 OK\r\n" . ("X: y\r\n" x 50_000), end => 'open', says => qr/stream connect: the answer's header is too large/ },
    'is never answered' => { text => '', end => 'open' },
    'is hung up on' => { text => '', end => 'close', says => qr/stream connect: closed without an answer/ },
    'is no HTTP' => { text => "garbage\r\n\r\n", end => 'close', says => qr/stream connect: / },
    'is a page' => { text => "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", end => 'open', says => qr{stream connect: 200 the server answered with text/html instead of an event stream} },
    'is a page without end' => { text => "HTTP/1.1 500 No\r\nContent-Type: text/html\r\n\r\n", pad => 3 << 20, end => 'open', says => qr/stream connect: 500 HTTP # without a reason/ },
    'is nothing' => { text => "HTTP/1.1 204 No Content\r\n\r\n", end => 'close', says => qr/stream connect: 204 the server wants no event stream to be opened again/ },
    'is elsewhere' => { text => "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", end => 'close', says => qr{stream connect: 302 the server redirects to /login, which is not followed} },
    'is full' => { text => "HTTP/1.1 429 Slow\r\nRetry-After: 99999999999\r\nContent-Length: 2\r\n\r\n{}", end => 'close', says => qr/stream connect: 429 the server asked to wait 3,168 years, and 1 h at most is waited/ },
    'tells nonsense' => { text => $head . $hello . $events, end => 'open' },
    'asks for eternity' => { text => "${head}retry: 99999999999999999999\n\n$hello", end => 'close', wait => 0.3 },
);
my @commands = (['doctor'], [qw(run 2 2 60 3 --report-every 1)], [qw(pairs 2 3 --timeout 2s)], [qw(ramp 2 --session apps --arrive 0 --hold 2s --settle 0 --drain 1s)], [qw(refusals --only streams --tries 1 --background 2 --before 1s)]);

# They mostly wait: some servers at a time.
my (%drive, %run);
my @names = sort keys %stream;
while (my @some = splice @names, 0, 6) {
    for my $name (@some) {
        $drive{$name} = FakeDrive->new(sub_users => 1, folders => 2, files => 2, stream => $stream{$name});
        $run{$name} = [ map { sim_start($_, env => { TMA_URL => $drive{$name}->url }, dir => run_folder()) } @commands ];
    }
    for my $name (@some) {
        subtest "an event stream that $name" => sub {
            for my $i (0 .. $#commands) {
                my ($h, $command, $says) = (sim_finish($run{$name}[$i]), $commands[$i][0], $stream{$name}{says});
                ok defined $h->{status} && $h->{status} =~ /^[0134]$/, "$command ends by itself" or diag $h->{status}, $h->{out}, $h->{err};
                like $h->{out}, $says, "$command says why" if $says && $command eq 'run';
                like $h->{err}, qr/wait 292,277 years before they come back \(retry:\): 1 min at most is waited$/m, 'and what is not waited' if $name =~ /eternity/ && $command eq 'run';
                unlike $h->{out} . $h->{err}, qr/runtime error|AddressSanitizer/, "$command is clean";
            }
        };
        delete $drive{$name};
    }
}

done_testing;
