package Sshd;
# OpenSSH's sshd with internal-sftp in a private folder on a free port of the loopback: own host key, own settings, a
# key to sign in with. It serves whoever runs the test. No account of the machine is touched: for signing in by password
# it runs in a mount namespace with a shadow file of its own, where the machine allows that.
#
#     my $sshd = Sshd->new(MaxStartups => '10:30:60');
#     sim(['reads'], env => $sshd->env);
#
# Ended by pid when the object goes.
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Sim ();

sub sshd_path { for (qw(/usr/sbin/sshd /usr/local/sbin/sshd)) { return $_ if -x } return }
sub available { return defined sshd_path() }

sub free_port {
    my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1) or die "no port: $!";
    return $s->sockport;
}

# Settings of sshd_config by name; and sftp => arguments of internal-sftp ('-P posix-rename'), password => sign in by it.
sub new {
    my ($class, %set) = @_;
    my $self = bless { dir => tempdir(), owner => $$, sftp => delete $set{sftp} // '', password => delete $set{password} }, $class;
    my $d = $self->{dir};
    chmod 0755, $d;
    make_path("$d/files", "$d/home");
    make_path('/run/sshd') if $> == 0;
    for my $key (qw(host_key id)) {
        system('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'drivesim test', '-f', "$d/$key") == 0 or die 'ssh-keygen failed';
    }
    $self->{set} = \%set;
    for (1 .. 5) {
        return $self if $self->start;
    }
    die "sshd does not start, see $d/log:\n" . Sim::slurp("$d/log");
}

sub config {
    my ($self) = @_;
    my $d = $self->{dir};
    my %all = (
        Port => $self->{port}, ListenAddress => '127.0.0.1', HostKey => "$d/host_key", PidFile => "$d/pid",
        AuthorizedKeysFile => "$d/id.pub", StrictModes => 'no', UsePAM => 'no', PermitRootLogin => 'yes',
        PasswordAuthentication => $self->{password} ? 'yes' : 'no', KbdInteractiveAuthentication => 'no', UseDNS => 'no',
        LogLevel => 'VERBOSE', Subsystem => "sftp internal-sftp $self->{sftp}", MaxStartups => '200', MaxSessions => 10,
        %{ $self->{set} });
    return join '', map { "$_ $all{$_}\n" } sort keys %all;
}

# The command that runs sshd; with a password in a namespace where it is the shadow file's.
sub command {
    my ($self) = @_;
    my @sshd = (sshd_path(), '-D', '-e', '-f', "$self->{dir}/config");
    return @sshd if !$self->{password};
    my $hash = crypt $self->{password}, '$6$drivesim$';
    Sim::spew("$self->{dir}/shadow", $self->user . ":$hash:19000:0:99999:7:::\n");
    return ('unshare', '--mount', 'sh', '-c', 'mount --bind "$1" /etc/shadow && shift && exec "$@"', 'sh', "$self->{dir}/shadow", @sshd);
}

# Whether a shadow file of our own can be put in place here.
sub can_use_password {
    my $ok = $> == 0 && system('unshare --mount sh -c "mount --bind /etc/hostname /etc/shadow" >/dev/null 2>&1') == 0;
    return $ok;
}

sub start {
    my ($self) = @_;
    my $d = $self->{dir};
    $self->{port} = free_port();
    Sim::spew("$d/config", $self->config);
    my ($type, $key) = split ' ', Sim::slurp("$d/host_key.pub");
    Sim::spew("$d/known_hosts", "[127.0.0.1]:$self->{port} $type $key\n");
    my @command = $self->command;
    Sim::spew("$d/log", '');
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDERR, ">>", "$d/log";
        open STDOUT, '>&', \*STDERR;
        setpgrp; # its connections' processes go with it
        exec @command or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    my $up = Sim::wait_until(sub {
        return 'gone' if waitpid($pid, POSIX::WNOHANG()) == $pid;
        return Sim::slurp("$d/log") =~ /Server listening on/ ? 'up' : 0;
    });
    return 1 if $up eq 'up';
    delete $self->{pid} if $up eq 'gone';
    $self->stop;
    return 0;
}

sub port { return $_[0]{port} }
sub dir { return $_[0]{dir} }
sub user { return scalar getpwuid $> }
sub files { return "$_[0]{dir}/files" } # what sftp:// of url() names
sub url { my ($self) = @_; return "sftp://" . $self->user . "\@127.0.0.1:$self->{port}" . $self->files }
sub log_text { return Sim::slurp("$_[0]{dir}/log") }

# What a user would export to sign in by key.
sub env {
    my ($self) = @_;
    return { TMA_URL => $self->url, TMA_LOAD_SSH_KEY => "$self->{dir}/id", TMA_LOAD_KNOWN_HOSTS => "$self->{dir}/known_hosts", HOME => "$self->{dir}/home" };
}

# A door of its own in front of it: so many connections pass, whoever comes then is let in and hears nothing. Returns its port.
sub door {
    my ($self, $passing) = @_;
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 100) or die "no port: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        eval { $self->_keep_door($listen, $passing) };
        POSIX::_exit(0);
    }
    push @{ $self->{doors} }, $pid;
    my ($type, $key) = split ' ', Sim::slurp("$self->{dir}/host_key.pub");
    Sim::spew("$self->{dir}/known_hosts", Sim::slurp("$self->{dir}/known_hosts") . '[127.0.0.1]:' . $listen->sockport . " $type $key\n");
    return $listen->sockport;
}
sub _keep_door {
    my ($self, $listen, $passing) = @_;
    my ($sel, %other, @held) = (IO::Select->new($listen));
    while (my @ready = $sel->can_read) {
        for my $s (@ready) {
            if ($s == $listen) {
                my $in = $listen->accept or next;
                if ($passing-- <= 0) { push @held, $in; next }
                my $out = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) or die $!;
                @other{ $in, $out } = ($out, $in);
                $sel->add($in, $out);
                next;
            }
            my $to = $other{$s} or next;
            my $n = sysread $s, my $bytes, 65536;
            for (my $at = 0; $n && $at < $n;) { $at += syswrite($to, $bytes, $n - $at, $at) || do { $n = 0; 0 } }
            if (!$n) { $sel->remove($_), delete $other{$_}, close $_ for $s, $to }
        }
    }
    return;
}

# sshd with all of its connections' processes, which have process groups of their own: nothing is answered any more.
sub _family {
    my ($self) = @_;
    my (%children, @all);
    for my $file (glob '/proc/[0-9]*/stat') {
        my ($pid, $parent) = eval { Sim::slurp($file) =~ /\A(\d+) .*\) \S (\d+)/s } or next;
        push @{ $children{$parent} }, $pid;
    }
    for (my @next = $self->{pid}; @next; @next = map { @{ $children{$_} // [] } } @next) { push @all, @next }
    return @all;
}
sub freeze { my ($self) = @_; kill 'STOP', $self->{pid}; kill 'STOP', $self->_family; return }
sub thaw { my ($self) = @_; kill 'CONT', $self->_family; return }

sub stop {
    my ($self) = @_;
    for my $door (splice @{ $self->{doors} // [] }) { kill 'KILL', $door; waitpid $door, 0 }
    my $pid = delete $self->{pid} or return;
    local ($?, $@);
    kill 'TERM', -$pid, $pid;
    Sim::wait_until(sub { return waitpid($pid, POSIX::WNOHANG()) != 0 }, 20) and return;
    kill 'KILL', -$pid, $pid;
    waitpid $pid, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner};
    $self->stop;
    remove_tree($self->{dir});
    return;
}

1;
