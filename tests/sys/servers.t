# Several server processes on one database, Redis and bucket, started and killed while apps work: what one is told the
# others know, and what one leaves behind the others clear away.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use DriveClient;
use File::Temp qw(tempdir);
use Serve ();
use Sim;
use Spread;

my $stack = Sim::Stack->new;
my $dir = tempdir(CLEANUP => 1);
# The keys of the stack's own server, which the others need.
my $first_pid = $stack->sql('SELECT pid FROM servers');
my %keys = map { /^(JWT_SECRET|FILE_ENCRYPTION_KEY)=(.*)/s ? ($1 => $2) : () } split /\0/, slurp("/proc/$first_pid/environ");
my ($second, $third) = map { Serve->new($stack, { %keys }, '--upload-budget', 0) } 1, 2;
my ($first_port) = $stack->env->{TMA_URL} =~ /:(\d+)$/;

subtest 'a bucket connected through one is used by all' => sub {
    is $second->call('GET', '/health')->{status}, 200, 'a server without a bucket is up';
    my $r = $stack->sim([qw(seed 3 0.01)]); # signs up, and connects the bucket, at the first
    is $r->{status}, 0, 'seed' or BAIL_OUT $r->{out} . $r->{err};
    for my $s ($second, $third) {
        my $drive = DriveClient->new(url => $s->url, email => 'owner@load.test');
        my $up = $drive->upload(name => 'at ' . $s->port . '.txt', content => 'x' x 1000);
        is $up->{status}, 200, 'an upload at another one, at once' or diag $up->{body};
    }
};

sub check_of { my ($json) = @_; return map { $_->{name} => $_ } @{ $json->{checks} } }

subtest 'apps at three servers, one of which is killed' => sub {
    my $spread = Spread->new($first_port, $second->port, $third->port);
    my $run = $stack->start([qw(run 12 8 120 10 --json), "$dir/json"], env => { TMA_URL => $spread->url });
    ok sim_await($run, sub { $_[0]{out} =~ /the measured window begins/ }), 'at work' or diag $run->{out};
    my $written = sub { return $stack->sql('SELECT count(*) FROM changes') };
    my $before = $written->();
    ok wait_until(sub { $written->() >= $before + 20 }), 'what they do is told';
    kill 'KILL', $third->pid; # one that the apps use
    my $r = sim_finish($run);
    my %check = check_of(json_file("$dir/json"));
    for my $name (qw(aggregates storage structure objects ledger answers reads versions locks changes events convergence)) {
        is $check{$name}{status}, 'ok', "$name is exact" or diag explain $check{$name};
    }
    my $j = json_file("$dir/json");
    cmp_ok $j->{events}{expected} // 0, '>=', 12 * 20, 'events went between the servers';
    is $j->{events}{lost}, 0, 'and none was lost';
    cmp_ok $j->{causes}{reconnect}, '>', 0, 'streams of the one that was killed came back' or diag $r->{out};
};

subtest 'what a killed one leaves is swept although others live, and what they may be at is not' => sub {
    my $fourth = Serve->new($stack, { %keys });
    my %pid = (first => $first_pid, second => $second->pid, fourth => $fourth->pid);
    my %mark = map { $_ => substr $stack->sql("SELECT id FROM servers WHERE pid = $pid{$_}"), 0, 5 } keys %pid;
    # As if each had put an object a minute ago whose row is still to come.
    my ($account, $victim) = split /\|/, $stack->sql('SELECT user_id, path FROM files WHERE path IS NOT NULL LIMIT 1');
    (my $base = $stack->object_file($victim)) =~ s/_object$//; # the store keeps an object in several files of one beginning
    my %object = map { $_ => $base =~ s{\Q$victim\E}{"$account/$mark{$_}" . 'x' x 11}er } keys %mark;
    for my $to (values %object) {
        for my $file (glob "'$base'*") {
            (my $copy = $file) =~ s/^\Q$base\E/$to/;
            system 'cp', $file, $copy;
            utime time - 60, time - 60, $copy;
        }
    }
    my $there = sub { my @files = glob "'$object{$_[0]}'*"; return scalar @files };
    is scalar(grep { $there->($_) } keys %object), 3, 'three objects without rows';
    $second->stop('KILL');
    ok wait_until(60, sub { !$there->('second') }), 'that of the killed one goes';
    my @left = grep { $there->($_) } qw(first fourth); # either of the living sweeps, and knows what it has itself in flight
    cmp_ok scalar(@left), '>=', 1, 'the other living one is let finish';
    is $stack->sql('SELECT count(*) FROM servers'), 2, 'two are left';
};

done_testing;
