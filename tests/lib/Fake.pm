package Fake;
# The test's side of a scripted server that runs in a child process: what FakeDrive and FakeDav share. The child serves
# POST /_ctl {what, arg} beside its own calls and answers {result}; a class says by json() how those are written.
use strict;
use warnings;
use IO::Socket::INET;
use POSIX ();

# Runs serve->() in a child; it ends with the object.
sub start {
    my ($class, $port, $serve, %more) = @_;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM);
        $SIG{PIPE} = 'IGNORE';
        eval { $serve->(); 1 } or print STDERR "$class: $@";
        POSIX::_exit(0);
    }
    return bless { %more, pid => $pid, port => $port, owner => $$ }, $class;
}

sub port { return $_[0]{port} }
sub pid { return $_[0]{pid} }

# One control call; its answer decoded.
sub _ctl {
    my ($self, $what, $arg) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) or die ref($self) . " is gone: $!";
    my $body = $self->json->encode({ what => $what, arg => $arg });
    print {$s} "POST /_ctl HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
    my $all = do { local $/; <$s> };
    return $self->json->decode((split /\r\n\r\n/, $all, 2)[1])->{result};
}

sub rule { my ($self, %r) = @_; $r{path} = "$r{path}" if defined $r{path}; return $self->_ctl(rule => \%r) }

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    return;
}
sub DESTROY { my ($self) = @_; local ($?, $@); $self->stop if $self->{owner} == $$; return }

1;
