package Dav;
# Real WebDAV servers, each started privately: a folder of its own, a free port on loopback, a user that is not root.
#
#   my $d = Dav->apache(users => { ann => 'secret' });   # mod_dav with mod_dav_lock, Basic
#   my $d = Dav->lighttpd(users => { … });               # mod_webdav with locks in SQLite, Digest
#   $d->url; $d->url('ann'); $d->files; $d->log; $d->stop;
#
# Ended when the object goes, when the test dies, and by a signal. Core modules only.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Digest::SHA qw(sha1_base64);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX ();
use Scalar::Util qw(refaddr weaken);
use Sim;

my %live;
my $main = $$;
$SIG{$_} //= sub { $$ == $main ? exit 1 : POSIX::_exit(1) } for qw(INT TERM HUP);
END { local $?; $_ && $_->stop for values %live }

my $MODULES = '/usr/lib/apache2/modules';

sub has_apache { return -x '/usr/sbin/apache2' && -e "$MODULES/mod_dav_lock.so" }
sub has_lighttpd { return -x '/usr/sbin/lighttpd' && -e '/usr/lib/lighttpd/mod_webdav.so' }

sub _new {
    my ($class, %opt) = @_;
    my $self = bless { users => { ann => 'secret word' }, prefix => '/dav', %opt, owner => $$, dir => tempdir() }, $class;
    weaken($live{ refaddr $self } = $self);
    make_path(map { "$self->{dir}/$_" } "files$self->{prefix}", qw(lock tmp));
    my $probe = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1, ReuseAddr => 1) or die "port: $!";
    $self->{port} = $probe->sockport;
    return $self;
}

# A process of its own; root becomes nobody first, since neither server should have more rights than that.
sub _start {
    my ($self, @cmd) = @_;
    if ($> == 0) {
        my ($uid, $gid) = (getpwnam 'nobody')[ 2, 3 ];
        system('chown', '-R', "$uid:$gid", $self->{dir}) == 0 or die 'chown';
        @{$self}{qw(uid gid)} = ($uid, $gid);
    }
    $self->{pid} = fork // die "fork: $!";
    if (!$self->{pid}) {
        open STDOUT, '>>', "$self->{dir}/out.log" or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        if ($self->{uid}) { POSIX::setgid($self->{gid}); $) = "$self->{gid} $self->{gid}"; POSIX::setuid($self->{uid}) }
        exec @cmd or POSIX::_exit(127);
    }
    my $up = wait_until(sub {
        waitpid($self->{pid}, POSIX::WNOHANG()) == 0 or die "$cmd[0] ended:\n" . $self->log;
        IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 1);
    });
    die "$cmd[0] does not listen:\n" . $self->log unless $up;
    return $self;
}

sub apache {
    my ($class, %opt) = @_;
    my $self = $class->_new(%opt);
    my $dir = $self->{dir};
    spew("$dir/users", join '', map { "$_:{SHA}" . sha1_base64($self->{users}{$_}) . "=\n" } sort keys %{ $self->{users} });
    my $modules = join '', map { "LoadModule ${_}_module $MODULES/mod_$_.so\n" }
        qw(mpm_event authn_core authn_file authz_core authz_user auth_basic dav dav_fs dav_lock);
    my $tls = '';
    if ($self->{tls}) { # with a certificate of its own that nobody trusts: $d->cafile
        system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
            . " -keyout $dir/key.pem -out $dir/cert.pem 2>/dev/null") == 0 or die 'openssl';
        $modules .= "LoadModule ssl_module $MODULES/mod_ssl.so\nLoadModule socache_shmcb_module $MODULES/mod_socache_shmcb.so\n";
        $tls = "SSLEngine on\nSSLCertificateFile $dir/cert.pem\nSSLCertificateKeyFile $dir/key.pem";
    }
    my $auth = %{ $self->{users} } ? "AuthType Basic\nAuthName files\nAuthUserFile $dir/users\nRequire valid-user" : 'Require all granted';
    spew("$dir/httpd.conf", <<"END");
ServerRoot $dir
ServerName 127.0.0.1
Listen 127.0.0.1:$self->{port}
PidFile $dir/httpd.pid
ErrorLog $dir/error.log
DefaultRuntimeDir $dir
${modules}StartServers 1
ServerLimit 2
ThreadsPerChild 64
MaxRequestWorkers 128
MaxKeepAliveRequests 0
KeepAliveTimeout 60
DocumentRoot $dir/files
DavLockDB $dir/lock/db
DavDepthInfinity on
$tls
<Directory $dir/files>
Dav On
$auth
</Directory>
END
    return $self->_start('/usr/sbin/apache2', '-f', "$dir/httpd.conf", '-D', 'FOREGROUND');
}

sub lighttpd {
    my ($class, %opt) = @_;
    my $self = $class->_new(%opt);
    my $dir = $self->{dir};
    spew("$dir/users", join '', map { "$_:files:" . md5_hex("$_:files:$self->{users}{$_}") . "\n" } sort keys %{ $self->{users} });
    spew("$dir/lighttpd.conf", <<"END");
server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
server.document-root = "$dir/files"
server.bind = "127.0.0.1"
server.port = $self->{port}
server.errorlog = "$dir/error.log"
server.upload-dirs = ("$dir/tmp")
server.max-fds = 1024
server.max-keep-alive-requests = 100000
webdav.activate = "enable"
webdav.is-readonly = "disable"
webdav.sqlite-db-name = "$dir/lock/webdav.db"
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "$dir/users"
auth.require = ("/" => ("method" => "digest", "realm" => "files", "require" => "valid-user"))
END
    return $self->_start('/usr/sbin/lighttpd', '-D', '-f', "$dir/lighttpd.conf");
}

# TMA_URL as the user sets it; without a name the first user's, with '' nobody's.
sub url {
    my ($self, $user) = @_;
    ($user) = sort keys %{ $self->{users} } unless defined $user;
    my $who = '';
    if (defined $user && length $user) {
        my $password = $self->{users}{$user};
        s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ge for $user, $password;
        $who = "$user:$password\@";
    }
    my $scheme = $self->{tls} ? 'webdavs' : 'webdav';
    return "$scheme://${who}127.0.0.1:$self->{port}$self->{prefix}";
}
sub cafile { return "$_[0]{dir}/cert.pem" }
sub http_url { return "http://127.0.0.1:$_[0]{port}$_[0]{prefix}" }
sub port { return $_[0]{port} }
# The folder that the URL names, as the file system has it.
sub files { return "$_[0]{dir}/files$_[0]{prefix}" }
sub users_file {
    my ($self) = @_;
    my $file = "$self->{dir}/logins";
    spew($file, join '', "# user:password\n", map { "$_:$self->{users}{$_}\n" } sort keys %{ $self->{users} });
    return $file;
}
sub log {
    my ($self) = @_;
    return join '', map { -e "$self->{dir}/$_" ? slurp("$self->{dir}/$_") : '' } qw(out.log error.log);
}

sub stop {
    my ($self) = @_;
    return if $$ != $self->{owner};
    local ($?, $@);
    my $pid = delete $self->{pid};
    if ($pid) {
        kill 'TERM', $pid;
        wait_until(sub { waitpid($pid, POSIX::WNOHANG()) != 0 }, 20) or do { kill 'KILL', $pid; waitpid $pid, 0 };
    }
    remove_tree(delete $self->{dir}) if $self->{dir};
    delete $live{ refaddr $self };
    return;
}
sub DESTROY { $_[0]->stop; return }

1;
