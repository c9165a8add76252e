# The SFTP client and the sftp dialect against a private OpenSSH: the tests are in live_sftp.c and live_sftp_drive.c.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Live;
use Sim;
use Sshd;

plan skip_all => 'no sshd here' if !Sshd::available();
my $sshd = Sshd->new;
my $d = $sshd->dir;

sub key { my ($name, $passphrase) = @_; system('ssh-keygen', '-q', '-t', 'ed25519', '-N', $passphrase, '-f', "$d/$name") == 0 or die 'ssh-keygen'; return "$d/$name" }
my ($other, $locked) = (key('other', ''), key('locked', 'a passphrase of the tests'));
spew("$d/id.pub", slurp("$d/id.pub") . slurp("$locked.pub")); # id.pub is the file of authorized keys
my $place = '[127.0.0.1]:' . $sshd->port;
spew("$d/empty_hosts", "# nobody yet\n\n");
spew("$d/other_hosts", "$place " . slurp("$other.pub"));
# Hashed names, marks and kinds of key that are not known stand in real files too; one line of them is ours.
spew("$d/odd_hosts", '@cert-authority *.example.com ' . slurp("$other.pub") . "nonsense\n127.0.0.1 " . slurp("$other.pub")
        . "$place sk-ssh-ed25519\@openssh.com AAAA\n" . slurp("$d/known_hosts"));
my %env = (SSHD_PORT => $sshd->port, SSHD_USER => $sshd->user, SSHD_KEY => "$d/id", SSHD_KNOWN_HOSTS => "$d/known_hosts",
    SSHD_DIR => $sshd->files, SSHD_OTHER_KEY => $other, SSHD_LOCKED_KEY => $locked, SSHD_EMPTY_HOSTS => "$d/empty_hosts",
    SSHD_OTHER_HOSTS => "$d/other_hosts", SSHD_ODD_HOSTS => "$d/odd_hosts");
live($ENV{LIVE_SFTP}, 'client', %env);
# The same calls by a server that renames atomically, and by one that cannot.
my %key = (SSHD_USER => $sshd->user, SSHD_KEY => "$d/id");
live($ENV{LIVE_SFTP_DRIVE}, 'dialect', %key, SSHD_URL => $sshd->url, SSHD_KNOWN_HOSTS => "$d/known_hosts");
my $plain = Sshd->new(sftp => '-P posix-rename');
live($ENV{LIVE_SFTP_DRIVE}, 'dialect without posix-rename', SSHD_USER => $plain->user, SSHD_KEY => $plain->dir . '/id',
    SSHD_URL => $plain->url, SSHD_KNOWN_HOSTS => $plain->dir . '/known_hosts');
done_testing;
