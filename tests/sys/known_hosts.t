# Host keys: for each file of known hosts the program decides as ssh itself does, on a server with keys of three types.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Sim;
use Sshd;

plan skip_all => 'no sshd here' if !Sshd::available();
my $keys = File::Temp::tempdir(CLEANUP => 1);
sub key { my ($name, $type) = @_; system('ssh-keygen', '-q', '-t', $type, '-N', '', '-C', 'test', '-f', "$keys/$name") == 0 or die 'ssh-keygen'; return join ' ', (split ' ', slurp("$keys/$name.pub"))[0, 1] }
my ($ed, $ecdsa, $rsa, $other, $other_ecdsa) = map { key(@$_) } ['ed', 'ed25519'], ['ecdsa', 'ecdsa'], ['rsa', 'rsa'], ['other', 'ed25519'], ['other_ecdsa', 'ecdsa'];
my $sshd = Sshd->new(HostKey => join "\nHostKey ", map { "$keys/$_" } qw(rsa ecdsa ed));
my $port = $sshd->port;
my $at = "[127.0.0.1]:$port";
my $file = "$keys/hosts";

sub hashed {
    my ($name) = @_;
    spew("$keys/h", "$name $ed\n");
    system("ssh-keygen -q -H -f $keys/h >/dev/null 2>&1") == 0 or die 'ssh-keygen -H';
    return (split ' ', slurp("$keys/h"))[0];
}
sub by_ssh {
    my ($host) = @_;
    my @ssh = ('ssh', '-Fnone', (map { "-o$_" } 'StrictHostKeyChecking=yes', "UserKnownHostsFile=$file", 'GlobalKnownHostsFile=/dev/null', 'BatchMode=yes', 'LogLevel=QUIET'),
        '-i', $sshd->dir . '/id', '-l', $sshd->user, '-p', $port, $host, 'true');
    return system("@ssh </dev/null >/dev/null 2>&1") == 0;
}
sub by_sim { my ($host) = @_; return sim(['clean', '--dry-run'], env => { %{ $sshd->env }, TMA_URL => $sshd->url =~ s/127\.0\.0\.1/$host/r, TMA_LOAD_KNOWN_HOSTS => $file }) }

# what, the file, what the program says where it does not connect; whether ssh connects nevertheless.
my $unknown = qr/^sim clean: the host key of \Q$at\E \(SHA256:\S+\) is not in \Q$file\E: if it is right, ssh-keyscan -p $port 127\.0\.0\.1 >> FILE, and give --known-hosts FILE$/m;
my $changed = qr/\Q$at\E \(SHA256:\S+\) is not the one in \Q$file\E line \d+: another server answers there/;
my $revoked = qr/\Q$at\E \(SHA256:\S+\) is marked \@revoked in \Q$file\E line \d+: ask/;
my $authority = qr/\Q$at\E is known by a \@cert-authority alone \(\Q$file\E line 1\), which libssh2 cannot check; it shows SHA256:\S+: if that is right, ssh-keyscan/;
my $rsa_alone = qr/\Q$at\E is known by its ssh-rsa key \(\Q$file\E line 1\), which libssh2 cannot ask for here; it shows SHA256:\S+: if that is right, ssh-keyscan/;
my $hash = hashed($at);
my @rows = (
    ['nothing', "# nobody\n\n", $unknown],
    ['the key', "$at $ed\n"],
    ['the second type', "$at $ecdsa\n"],
    ['an unusable type', "$at $rsa\n", $rsa_alone, 'ssh'],
    ['another key', "$at $other\n", $changed],
    ['another key of the second type', "$at $other_ecdsa\n", $changed],
    ['one of two', "$at $other\n$at $ed\n"],
    ['the first type decides', "$at $other\n$at $ecdsa\n", $changed],
    ['without port', "127.0.0.1 $ed\n"],
    ['without port, the second type', "127.0.0.1 $ecdsa\n", qr/is known by its ecdsa-sha2-nistp256 key/],
    ['without port, another key with it', "$at $other\n127.0.0.1 $ed\n", $changed],
    ['revoked', "\@revoked $at $ed\n$at $ed\n", $revoked],
    ['revoked below', "$at $ed\n\@revoked $at $ed\n", $revoked],
    ['revoked by wildcard', "$at $ed\n\@revoked * $ed\n", $revoked],
    ['revoked by hash', "$at $ed\n\@revoked $hash $ed\n", $revoked],
    ['revoked alone', "\@revoked $at $ed\n", $revoked],
    ['revoked, and known without port', "\@revoked $at $ed\n127.0.0.1 $ed\n", $revoked],
    ['revoked without port', "\@revoked 127.0.0.1 $ed\n$at $ed\n"],
    ['revoked without port, known so', "\@revoked 127.0.0.1 $ed\n127.0.0.1 $ed\n", qr/is marked \@revoked/],
    ['revoked elsewhere', "\@revoked elsewhere $ed\n$at $ed\n"],
    ['another one revoked', "\@revoked * $other\n$at $ed\n"],
    ['revoked, of two types', "\@revoked $at $ed\n$at $ed\n$at $ecdsa\n"],
    ['an authority', "\@cert-authority $at $other\n", $authority],
    ['an authority with the key', "\@cert-authority * $ed\n", $authority],
    ['an authority and the key', "\@cert-authority * $other\n$at $ed\n"],
    ['an unknown mark', "\@trusted $at $ed\n", $unknown],
    ['a wildcard', "* $ed\n"],
    ['wildcards', "[127.*.?.1]:* $ed\n"],
    ['a wildcard without port', "127.0.0.* $ed\n"],
    ['a negation', "*,!$at,!127.0.0.1 $ed\n", $unknown],
    ['a negation first', "!$at,!127.0.0.?,* $ed\n", $unknown],
    ['a negation with its port', "*,!$at $ed\n"],
    ['a negation of another', "!elsewhere,$at $ed\n"],
    ['a negation alone', "!elsewhere $ed\n", $unknown],
    ['a list', "elsewhere,$at,10.0.0.1 $ed comment\n"],
    ['a hash', "$hash $ed\n"],
    ['a hash without port', hashed('127.0.0.1') . " $ed\n"],
    ['a hash of another', hashed("[127.0.0.2]:$port") . " $ed\n", $unknown],
    ['a hash in a list', "$hash,$at $ed\n", $unknown],
    ['another port', "[127.0.0.1]:22 $ed\n", $unknown],
    ['CRLF', "# Windows\r\n$at $ed\r\n"],
    ['no line feed', "$at $ed"],
    ['tabs', "\t $at\t\t$ed\t\n"],
    ['NUL', "$at $ed\0\n\0$at $other\n"],
    ['a long comment', "$at $ed " . 'x' x 200_000 . "\n"],
    ['many names', 'a.example,' x 20_000 . "$at $ed\n"],
    ['a long name', 'a' x 1100 . ",$at $ed\n", $unknown],
    ['cut base64', "$at " . substr($ed, 0, -8) . "\n127.0.0.1 $ed\n"],
    ['padded base64', "$at $ed=\n", $unknown],
    ['another type', "$at " . $ed =~ s/ssh-ed25519/ecdsa-sha2-nistp256/r . "\n", $unknown],
    ['an unknown type', "$at ssh-new $ed\n$at $ed\n"],
    ['RSA by its other name', "$at " . $rsa =~ s/ssh-rsa/rsa-sha2-512/r . "\n", qr/is known by its rsa-sha2-512 key/, 'ssh'],
    ['quoted', "\"$at\" $ed\n", $unknown],
    ['in its case', "LOCALHOST $ed\n", undef, undef, 'LocalHost'],
);
for (@rows) {
    my ($what, $text, $says, $but_ssh, $host) = @$_;
    spew($file, $text);
    $host //= '127.0.0.1';
    my $r = by_sim($host);
    is $r->{status}, $says ? 3 : 0, "$what: " . ($says ? 'refused' : 'connects') or diag $r->{err};
    like $r->{err}, $says, "$what: says why" if $says;
    is !!by_ssh($host), !$says || !!$but_ssh, "$what: so does ssh" . ($but_ssh ? ' not' : '');
}

# A tab after a mark makes ssh overlook the line, and trust what somebody revoked; here it is a mark.
spew($file, "\@revoked\t$at\t$ed\n$at $ed\n");
like by_sim('127.0.0.1')->{err}, $revoked, 'a tab after a mark';

# Which files: that one alone when one is named, else ssh's own.
my $home = $sshd->dir . '/home';
my $default = sub { return sim(['clean', '--dry-run'], env => { %{ $sshd->env }, TMA_LOAD_KNOWN_HOSTS => '' }) };
mkdir "$home/.ssh";
spew("$home/.ssh/known_hosts2", "$at $ed\n");
is $default->()->{status}, 0, 'the second file of the home' or diag $default->()->{err};
spew("$home/.ssh/known_hosts", "\@revoked * $ed\n");
like $default->()->{err}, qr{\@revoked in \Q$home\E/\.ssh/known_hosts line 1}, 'a mark of the first file counts for the second';
spew($file, "$at $ed\n");
is by_sim('127.0.0.1')->{status}, 0, 'a file that is named stands alone';
for (["$keys/none", 'none there'], [$keys, 'a folder']) {
    my $r = sim(['clean', '--dry-run'], env => { %{ $sshd->env }, TMA_LOAD_KNOWN_HOSTS => $_->[0] });
    is $r->{status}, 3, "$_->[1]: refused";
    like $r->{err}, qr/\Q$_->[0]\E/, "$_->[1]: named";
}
is sim(['clean', '--dry-run', '--insecure'], env => { %{ $sshd->env }, TMA_LOAD_KNOWN_HOSTS => "$keys/none" })->{status}, 0, '--insecure asks no file';

# A server with nothing that libssh2 can take.
my $old = Sshd->new(HostKey => "$keys/rsa");
like sim(['clean', '--dry-run'], env => $old->env)->{err}, qr/key exchange: the server offers nothing that libssh2 can take; where its host key is an RSA one, `ssh-keygen -A`/, 'RSA alone';
done_testing;
