# A run that is asked to end, or whose reader leaves: nothing is lost, no lock stays, and it ends when told twice
# (cases K05, X03, X04, X05).
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $r = $stack->sim([qw(seed 3 0.02)]);
is $r->{status}, 0, 'seed' or diag $r->{out}, $r->{err};

sub report { return json_file("$stack->{dir}/run.json") }
sub locks { return $stack->sql('SELECT count(*) FROM locks WHERE expires_at > now()') }

# Runs long enough to be interrupted; returns when actions are under way (the first full pass has been reported). No time
# limit of its own ends a request or the drain.
sub started {
    my $h = $stack->start([qw(run 8 10 120 300 --timeout 10min --grace 10min --json run.json)]);
    ok sim_await($h, sub { $_[0]{out} =~ /measured window begins/ }), 'each line of a pipe arrives at once';
    ok wait_until(sub { $stack->sql("SELECT count(*) FROM audit_log WHERE action IN ('file.download', 'file.update')") > 0 }), 'actions are under way';
    return $h;
}

# ---- SIGTERM drains as Ctrl-C does
my $h = started();
kill TERM => $h->{pid};
sim_finish($h);
is $h->{status}, 130, 'SIGTERM: 130' or diag $h->{out}, $h->{err};
like $h->{out}, qr/^summary of run: interrupted after /m, 'the summary says so';
unlike $h->{out}, qr/[\e\r]/, 'no escape codes';
my $j = report();
ok $j->{interrupted}, 'so does the JSON';
cmp_ok $j->{requests}, '>', 0, 'with what was done';
is $j->{failed}, 0, 'draining fails nothing' or diag explain $j->{failures};
is locks(), 0, 'no lock is left';
is $stack->sim(['check'])->{status}, 0, 'everything is exact';

# ---- the reader of a pipe leaves
$h = started();
close $h->{out_fh};
sim_finish($h);
is $h->{status}, 141, 'the reader left: 141' or diag $h->{err};
cmp_ok report()->{seconds}, '<', 300, 'noticed, not run to its end';
unlike $h->{err}, qr/pipe|abort|sanitizer/i, 'no crash text';
is report()->{exit}, 141, 'the JSON is whole';
is locks(), 0, 'no lock is left';

# ---- a server that hangs: the first Ctrl-C waits for it, the second does not
$h = started();
my ($server) = $stack->stack('status')->{out} =~ /^server\s+\S+\s+\S+\s+(\d+)/m;
ok $server, 'the server is found';
kill STOP => $server;
kill INT => $h->{pid};
ok sim_await($h, sub { $_[0]{err} =~ /interrupt again/ }), 'the first Ctrl-C is answered';
my $second = time;
kill INT => $h->{pid};
sim_finish($h);
kill CONT => $server;
is $h->{status}, 130, 'twice: 130';
cmp_ok time - $second, '<', 200, 'not when a time limit is over';
like $h->{out}, qr/^summary of run: interrupted/m, 'what is known is still told';
is report()->{exit}, 130, 'the JSON too';

done_testing;
