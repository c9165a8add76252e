package Spread;
# One address in front of several servers: each new connection goes to the next of them that listens, bytes pass as they
# come, and what breaks on one side breaks on the other. So apps of one run talk to all servers at once.
#
#   my $s = Spread->new(3201, 3202, 3203);
#   $s->url;
#
# A process of its own; core modules only.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX ();

sub new {
    my ($class, @ports) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 256, ReuseAddr => 1) or die "listen: $!";
    my $port = $listen->sockport;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        $SIG{PIPE} = 'IGNORE';
        eval { pass($listen, @ports); 1 } or print STDERR "Spread: $@";
        POSIX::_exit(0);
    }
    return bless { pid => $pid, owner => $$, port => $port }, $class;
}
sub url { return "http://127.0.0.1:$_[0]{port}" }
sub stop { my ($self) = @_; my $pid = delete $self->{pid} or return; kill 'KILL', $pid; waitpid $pid, 0; return }
sub DESTROY { my ($self) = @_; local ($?, $@); $self->stop if $self->{owner} == $$; return }

sub pass {
    my ($listen, @ports) = @_;
    my $sel = IO::Select->new($listen);
    my (%other, $turn);
    my $drop = sub { for my $s ($_[0], delete $other{ $_[0] }) { $sel->remove($s); delete $other{$s}; close $s } };
    while (1) {
        for my $s ($sel->can_read) {
            if ($s == $listen) {
                my $client = $listen->accept or next;
                my $server;
                for (1 .. @ports) {
                    $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ports[ $turn++ % @ports ]) and last;
                }
                if (!$server) { close $client; next }
                setsockopt $_, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1 for $client, $server;
                @other{ $client, $server } = ($server, $client);
                $sel->add($client, $server);
                next;
            }
            next if !$other{$s}; # its pair broke in this round
            my $n = sysread $s, my $buf, 1 << 18;
            my $to = $other{$s};
            for (my $at = 0; $n && $at < $n;) { $at += syswrite($to, $buf, $n - $at, $at) || do { $n = 0; 0 } }
            $drop->($s) if !$n;
        }
    }
    return;
}

1;
