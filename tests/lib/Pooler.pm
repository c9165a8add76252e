package Pooler;
# pgbouncer in front of a Sim::Stack's database, on a port of its own; gone with the object. undef where it is not
# installed.
#
#   my $pooler = Pooler->new($stack, 'transaction') or plan skip_all => 'pgbouncer is not installed';
#   $pooler->url                                  # for DATABASE_URL
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Sim;

my ($program) = grep { -x } map { "$_/pgbouncer" } qw(/usr/sbin /usr/bin /usr/local/sbin /usr/local/bin);

# It runs as nobody who is root: then an account that owns nothing else does.
my @as = $> == 0 ? ('setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups') : ();

sub new {
    my ($class, $stack, $mode) = @_;
    return if !$program;
    my ($user, $password, $port, $name) = $stack->env->{DATABASE_URL} =~ m{//(\w+):(\w+)\@127\.0\.0\.1:(\d+)/(\w+)$} or die 'no database';
    my $dir = tempdir(CLEANUP => 1);
    my $own = do { my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!; $s->sockport };
    spew("$dir/ini", <<"END");
[databases]
$name = host=127.0.0.1 port=$port user=$user password=$password
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $own
unix_socket_dir =
auth_type = any
pool_mode = $mode
default_pool_size = 3
END
    chmod 0755, $dir;
    my $self = bless { url => "postgresql://$user\@127.0.0.1:$own/$name", owner => $$ }, $class;
    $self->{pid} = fork // die $!;
    if (!$self->{pid}) {
        open STDOUT, '>', "$dir/log" or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        exec @as, $program, "$dir/ini" or POSIX::_exit(127);
    }
    wait_until(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $own) }) or die 'pgbouncer does not listen: ' . slurp("$dir/log");
    return $self;
}

sub url { return $_[0]{url} }

sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner};
    local ($?, $@);
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
