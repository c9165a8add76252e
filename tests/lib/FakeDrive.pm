package FakeDrive;
# A scripted drive server in one child process: the Drive API as far as apps use it, kept in memory, with every answer
# open to scripting. A test changes its behaviour while it runs and reads the log of all requests afterwards:
#
#   my $d = FakeDrive->new(sub_users => 3, folders => 20, files => 5);
#   $d->rule(path => qr{/download}, delay => 2);         # seconds before the answer; times => N, after => N requests
#   $d->rule(method => 'POST', path => qr{/lock}, status => 423, body => {message => 'held', error => 'LOCKED'});
#   $d->rule(path => qr{^/api/files\?}, hang => 1);       # never answers; close => 1 cuts, reset => 1 sends RST
#   $d->rule(path => qr{/upload}, lost => 1);             # does it, and cuts instead of answering
#   $d->rules_clear; $d->outage(3);                       # deaf for 3 s: connections cut, port closed
#   $d->set(token_ttl => 20);                             # jwt => SECONDS: what tokens say of that
#   $d->set(event_faults => ['drop', 'twice', 'swap']);   # what one of the streams gets of the next changes; 'late': 6 s
#   replay => 1: Last-Event-ID is honoured, else answered by a resync; retry => MS: told to streams; backlog => BYTES:
#   a stream that has so much unread is ended; idle_close => 1: each kept connection breaks when it is used again
#   $d->set(stream => { text => BYTES, end => 'close' });  # what each event stream is, head and all; end 'reset' or
#   'open' (never), pad => N bytes more, wait => SECONDS before the end
#   $d->log; $d->count(qr{...}); $d->url; $d->state; $d->stop;
#
# Bodies of the initial files are shorter than any content header, so that they need not describe themselves; what is
# uploaded is given back byte for byte. Core modules only.
use strict;
use warnings;
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
use IO::Socket::INET;
use JSON::PP;
use Socket qw(SOL_SOCKET SO_LINGER SO_SNDBUF IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);
use parent 'Fake';

my $J = JSON::PP->new->utf8->canonical;
my %DEFAULT = (
    accounts => 1, sub_users => 1, folders => 10, files => 4, file_bytes => 12, password => undef, port => 0,
    caps => { map { $_ => 1 } qw(locks versions feed paging events sub_users) },
    keepalive => 30, streams_per_login => 20, token_ttl => 0, list_limit => 200, quota => 0,
);

# ---- the test's side ------------------------------------------------------------------------------------------------

sub new {
    my ($class, %conf) = @_;
    my $caps = delete $conf{caps} // {};
    my $c = { %DEFAULT, %conf, caps => { %{ $DEFAULT{caps} }, %$caps } };
    my $listen = _listen($c->{port});
    $c->{port} = $listen->sockport;
    my $self = $class->start($c->{port}, sub { ($c->{server} // 'FakeDrive::Server')->new($c, $listen)->serve });
    close $listen;
    return $self;
}

sub _listen {
    my ($port) = @_;
    return IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 4096, ReuseAddr => 1, Blocking => 0)
        // die "listen: $!";
}

sub url { return "http://127.0.0.1:$_[0]{port}" }
sub json { return $J }
sub rules_clear { return $_[0]->_ctl('rules_clear') }
sub outage { return $_[0]->_ctl(outage => $_[1]) }
sub cut_streams { return $_[0]->_ctl('cut_streams') }
# {account => 0, type => …, data => {…}} to every stream; raw => TEXT as it is, and so many bytes more: pad => N
sub event { return $_[0]->_ctl(event => $_[1]) }
sub touch { return $_[0]->_ctl(touch => $_[1] // {}) }      # {account => 0, n => 1}: a write by nobody, with its event
sub set { my ($self, %v) = @_; return $self->_ctl(set => \%v) }
sub log { return $_[0]->_ctl('log') }       # [{t, method, path, status, login, ms, bytes, expect}] in order of arrival
sub state { return $_[0]->_ctl('state') }   # {files, folders, trashed, locks, streams, connections_max, uploads, replaced}
sub nodes { return $_[0]->_ctl('nodes') }   # [{id, name, type, parent, trashed, account, size}] of all there is
sub count { my ($self, $re) = @_; return $self->_ctl(count => "$re") } # without sending the whole log each time

# ---- the child ------------------------------------------------------------------------------------------------------

package FakeDrive::Server;
use strict;
use warnings;
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
use List::Util qw(max);
use MIME::Base64 qw(encode_base64url);
use POSIX qw(strftime);
use Socket qw(SOL_SOCKET SO_LINGER SO_SNDBUF IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

my @ROUTES;    # [method, pattern, function, needs token]

sub new {
    my ($class, $c, $listen) = @_;
    my $self = bless {
        c => $c, listen => $listen, conns => {}, timers => [], rules => [], log => [], nodes => {}, logins => {},
        tokens => {}, accounts => [], locks => {}, jobs => {}, next_id => 0, start => time, seen => {},
    }, $class;
    $self->make_account($_) for 0 .. $c->{accounts} - 1;
    return $self;
}

sub new_id { my ($self, $kind) = @_; return sprintf '%s%014d', $kind, ++$self->{next_id} }

sub make_account {
    my ($self, $k) = @_;
    my $c = $self->{c};
    my $owner = $k ? 'owner-' . ($k + 1) : 'owner';
    my $user = $k ? "$owner-user" : 'user';
    my $a = { n => $k, seq => 0, feed => [], subs => [], streams => {} };
    $self->{accounts}[$k] = $a;
    $self->{logins}{"$owner\@load.test"} = { email => "$owner\@load.test", account => $a, owner => 1, id => $self->new_id('us') };
    for my $i (1 .. $c->{sub_users}) {
        my $l = { email => "$user-$i\@load.test", account => $a, id => $self->new_id('us'), name => "User $i" };
        push @{ $a->{subs} }, $l;
        $self->{logins}{ $l->{email} } = $l;
    }
    my @folders = (undef);
    for my $i (1 .. $c->{folders}) {
        my $f = $self->add($a, 'folder', $folders[ int(($i - 1) / 4) ], "Folder $i");
        push @folders, $f->{id};
        $self->add($a, 'file', $f->{id}, "file $_.txt", 'x' x $c->{file_bytes}) for 1 .. $c->{files};
    }
    $a->{seq} = 0;
    $a->{feed} = [];
    $a->{frames} = [];
    return;
}

sub add {
    my ($self, $a, $type, $parent, $name, $body) = @_;
    my $n = { id => $self->new_id($type eq 'folder' ? 'fo' : 'fi'), type => $type, parent => $parent, name => $self->free_name($a, $parent, $name),
              account => $a, version => 1, body => $body, modified => time };
    $self->{nodes}{ $n->{id} } = $n;
    $self->link_node($n);
    return $n;
}
sub kids { my ($self, $a, $parent) = @_; return defined $parent ? ($self->{nodes}{$parent}{kids} //= {}) : ($a->{kids} //= {}) }
sub link_node { my ($self, $n) = @_; $self->kids($n->{account}, $n->{parent})->{ $n->{id} } = $n; return }
sub unlink_node { my ($self, $n) = @_; delete $self->kids($n->{account}, $n->{parent})->{ $n->{id} }; return }

sub free_name {
    my ($self, $a, $parent, $name) = @_;
    my %taken = map { $_->{name} => 1 } values %{ $self->kids($a, $parent) };
    my ($stem, $ext) = $name =~ /^(.+?)(\.[^.]*)?$/s;
    for (my $i = 0, my $try = $name;; $i++, $try = "$stem ($i)" . ($ext // '')) { return $try if !$taken{$try} }
}

sub stamp { my ($t) = @_; return strftime('%Y-%m-%dT%H:%M:%S', gmtime $t) . sprintf('.%03dZ', ($t - int $t) * 1000) }

sub object {
    my ($self, $n) = @_;
    my $o = { id => $n->{id}, name => $n->{name}, type => $n->{type}, parentId => $n->{parent}, starred => JSON::PP::false,
              shared => JSON::PP::false, modified => stamp($n->{modified}), mimeType => undef,
              size => $n->{type} eq 'file' ? length $n->{body} : undef };
    my $unversioned = $self->{c}{unversioned}; # files of these names are listed without one
    $o->{version} = "v$n->{version}" if $self->{c}{caps}{versions} && $n->{type} eq 'file' && !($unversioned && $n->{name} =~ $unversioned);
    return $o;
}

# A change: into the feed, and to every stream of the account.
sub changed {
    my ($self, $a, $type, $data, @folders) = @_;
    $a->{seq}++;
    push @{ $a->{feed} }, [ $a->{seq}, [ map { $_ // 'root' } @folders ] ];
    my $cursor = "fake-$a->{seq}";
    my $text = "id: $cursor\ndata: " . $J->encode({ type => $type, timestamp => stamp(time), cursor => $cursor, data => $data }) . "\n\n";
    push @{ $a->{frames} }, $text;
    my $one = max keys %{ $a->{streams} };
    my $fault = defined $one ? shift @{ $self->{c}{event_faults} // [] } : undef;
    my $hit = $fault ? delete $a->{streams}{$one} : undef;
    $self->push_event($a, $text);
    return if !$hit;
    $a->{streams}{$one} = $hit;
    if ($fault eq 'swap') { $hit->{kept} = $text }
    elsif ($fault eq 'late') { $self->after(6, sub { $self->send_raw($hit, $text, 1) }) }
    elsif ($fault eq 'twice') { $self->send_raw($hit, "$text$text", 1) }
    return;
}
sub push_event {
    my ($self, $a, $text) = @_;
    for my $c (my @all = values %{ $a->{streams} }) {
        $self->send_raw($c, $text . (delete $c->{kept} // ''), 1);
        next if !$self->{c}{backlog} || length($c->{out}) <= $self->{c}{backlog};
        $self->{seen}{slow_ended}++;
        $self->drop($c);
    }
    return;
}

# ---- sockets --------------------------------------------------------------------------------------------------------

sub serve {
    my ($self) = @_;
    while (1) {
        my ($r, $w, $now) = ('', '', time); # timers first: they change what is listened to
        while (@{ $self->{timers} } && $self->{timers}[0][0] <= $now) { (shift @{ $self->{timers} })->[1]->() }
        vec($r, fileno $self->{listen}, 1) = 1 if $self->{listen};
        for my $c (values %{ $self->{conns} }) {
            vec($r, $c->{fd}, 1) = 1;
            vec($w, $c->{fd}, 1) = 1 if length $c->{out};
        }
        my $wait = @{ $self->{timers} } ? $self->{timers}[0][0] - time : undef;
        $wait = 0 if defined $wait && $wait < 0;
        next if 0 >= select $r, $w, undef, $wait;
        $self->accept_all if $self->{listen} && vec $r, fileno $self->{listen}, 1;
        for my $c (my @all = values %{ $self->{conns} }) {
            next if $c->{gone};
            $self->flush($c) if vec $w, $c->{fd}, 1;
            $self->readable($c) if $self->{conns}{ $c->{fd} } && vec $r, $c->{fd}, 1;
        }
    }
    return;
}

sub after {
    my ($self, $seconds, $fn) = @_;
    my ($t, $q, $i) = (time + $seconds, $self->{timers}, 0);
    $i = @$q;
    $i-- while $i && $q->[ $i - 1 ][0] > $t;
    splice @$q, $i, 0, [ $t, $fn ];
    return;
}

sub accept_all {
    my ($self) = @_;
    while (my $s = $self->{listen}->accept) {
        $s->blocking(0);
        setsockopt $s, IPPROTO_TCP, TCP_NODELAY, 1;
        $self->{conns}{ fileno $s } = { s => $s, fd => fileno $s, peer => $s->peerhost, in => '', out => '', since => time };
        my $n = keys %{ $self->{conns} };
        $self->{seen}{connections}++;
        $self->{seen}{connections_max} = $n if $n > ($self->{seen}{connections_max} // 0);
    }
    return;
}

sub drop {
    my ($self, $c, $reset) = @_;
    return if $c->{gone}++; # its number may be another connection's by now
    setsockopt $c->{s}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $reset;
    delete $self->{conns}{ $c->{fd} };
    delete $c->{stream}{account}{streams}{ $c->{fd} } if $c->{stream};
    close $c->{s};
    return;
}

sub readable {
    my ($self, $c) = @_;
    my $n = sysread $c->{s}, $c->{in}, 1 << 18, length $c->{in};
    return if !defined $n && ($! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR);
    return $self->drop($c) if !$n;
    $self->next_request($c) if !$c->{busy};
    return;
}

sub send_raw {
    my ($self, $c, $text, $keep) = @_;
    return if $c->{gone};
    $c->{out} .= $text;
    $c->{end} = 1 if !$keep;
    return $self->flush($c);
}

sub flush {
    my ($self, $c) = @_;
    while (length $c->{out}) {
        my $n = syswrite $c->{s}, $c->{out}, 1 << 18;
        return if !defined $n && ($! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR);
        return $self->drop($c) if !defined $n;
        substr $c->{out}, 0, $n, '';
    }
    $self->drop($c) if $c->{end};
    return;
}

# ---- HTTP -----------------------------------------------------------------------------------------------------------

sub next_request {
    my ($self, $c) = @_;
    my $at = index $c->{in}, "\r\n\r\n";
    return if $at < 0;
    my ($line, @lines) = split /\r\n/, substr $c->{in}, 0, $at;
    my %h = map { /^([^:]+):\s*(.*)$/s ? (lc $1 => $2) : () } @lines;
    my ($body, $used);
    if (lc($h{'transfer-encoding'} // '') eq 'chunked') {
        ($body, $used) = _chunked(substr $c->{in}, $at + 4);
        return if !defined $body;
    } else {
        $used = $h{'content-length'} // 0;
        return if length($c->{in}) < $at + 4 + $used;
        $body = substr $c->{in}, $at + 4, $used;
    }
    substr $c->{in}, 0, $at + 4 + $used, '';
    my ($method, $path) = split / /, $line;
    $c->{busy} = 1;
    my $q = { c => $c, method => $method, path => $path, h => \%h, body => $body, t => time };
    $self->request($q);
    return;
}

sub _chunked {
    my ($in) = @_;
    my ($body, $pos) = ('', 0);
    while (substr($in, $pos) =~ /^([0-9a-fA-F]+)[^\r\n]*\r\n/) {
        my ($len, $head) = (hex $1, length $&);
        return if length($in) < $pos + $head + $len + 2;
        $body .= substr $in, $pos + $head, $len;
        $pos += $head + $len + 2;
        return ($body, $pos) if !$len;
    }
    return;
}

sub reply {
    my ($self, $q, $status, $body, %h) = @_;
    return if $q->{answered}++;
    return $self->drop($q->{c}) if $q->{lost};
    my $text = ref $body ? $J->encode($body) : $body // '';
    $q->{log}{status} = $status if $q->{log};
    $q->{log}{ms} = int 1000 * (time - $q->{t}) if $q->{log};
    my $close = lc($q->{h}{connection} // '') eq 'close';
    my $head = "HTTP/1.1 $status X\r\nContent-Type: " . (delete $h{type} // 'application/json') . "\r\n";
    $head .= "$_: $h{$_}\r\n" for sort keys %h;
    $head .= 'Content-Length: ' . length($text) . "\r\n" if $status != 204 && $status != 304;
    my $c = $q->{c};
    $c->{busy} = 0;
    $self->send_raw($c, "$head\r\n" . ($q->{method} eq 'HEAD' ? '' : $text), !$close);
    $self->next_request($c) if !$c->{gone} && length $c->{in};
    return;
}
sub fail { my ($self, $q, $status, $message, $code, %more) = @_; return $self->reply($q, $status, { message => $message, ($code ? (error => $code) : ()), %more }) }

sub request {
    my ($self, $q) = @_;
    my $method = $q->{method};
    return $self->control($q) if $q->{path} eq '/_ctl';
    my $token = ($q->{h}{authorization} // '') =~ /(\S+)$/ ? $1 : ($q->{h}{cookie} // '') =~ /\btoken=([^;\s]+)/ ? $1 : '';
    $q->{session} = $self->{tokens}{$token};
    $q->{login} = $q->{session} && $q->{session}{login};
    if ($q->{c}{used}++ && $self->{c}{idle_close}) {
        $self->{seen}{"broken_$method"}++;
        return $self->drop($q->{c}, 1);
    }
    $q->{log} = { t => $q->{t}, method => $q->{method}, path => $q->{path}, login => $q->{login} && $q->{login}{email}, bytes => length $q->{body}, peer => $q->{c}{peer},
        (defined $q->{h}{'last-event-id'} ? (last_id => $q->{h}{'last-event-id'}) : ()),
        (defined $q->{h}{expect} ? (expect => $q->{h}{expect}) : ()) };
    push @{ $self->{log} }, $q->{log};
    for my $r (@{ $self->{rules} }) {
        next if defined $r->{method} && $r->{method} ne $q->{method} or defined $r->{path} && $q->{path} !~ $r->{path};
        next if defined $r->{login} && ($q->{login} ? $q->{login}{email} : '') ne $r->{login};
        next if ($r->{seen}++) < ($r->{after} // 0);
        next if defined $r->{times} && $r->{seen} > ($r->{after} // 0) + $r->{times};
        return if $r->{hang};
        return $self->drop($q->{c}, $r->{reset}) if $r->{close} || $r->{reset};
        $q->{lost} = $r->{lost};
        my $act = sub {
            return if $q->{c}{gone};
            return $self->route($q) if !$r->{status};
            return $self->reply($q, $r->{status}, $r->{body} // { message => "scripted $r->{status}" }, %{ $r->{headers} // {} });
        };
        return $r->{delay} ? $self->after($r->{delay}, $act) : $act->();
    }
    return $self->route($q);
}

sub route {
    my ($self, $q) = @_;
    my ($path, $query) = split /\?/, $q->{path}, 2;
    $q->{q} = { map { /^([^=]*)=?(.*)$/ ? ($1 => _unescape($2)) : () } split /&/, $query // '' };
    for my $r (@ROUTES) {
        my ($method, $pattern, $fn, $auth) = @$r;
        next if $method ne $q->{method};
        my @m = $path =~ $pattern or next;
        if ($auth) {
            return $self->fail($q, 401, 'No token provided') if !$q->{login};
            my $ttl = $self->{c}{token_ttl};
            return $self->fail($q, 401, 'Session expired. Please login again.') if $ttl && time > $q->{session}{born} + $ttl;
            $q->{a} = $q->{login}{account};
        }
        if (($q->{h}{'content-type'} // '') =~ m{^application/json} && length $q->{body}) {
            $q->{json} = eval { $J->decode($q->{body}) } or return $self->fail($q, 400, 'bad JSON');
        }
        return $fn->($self, $q, $pattern =~ /\(/ ? @m : ());
    }
    return $self->fail($q, 404, "no route $q->{method} $path");
}
sub _unescape { my ($s) = @_; $s =~ tr/+/ /; $s =~ s/%([0-9a-fA-F]{2})/chr hex $1/ge; return $s }

# A node of the caller's account, not trashed; undef after a 404.
sub node {
    my ($self, $q, $id) = @_;
    my $n = $self->{nodes}{ $id // '' };
    return $n if $n && $n->{account} == $q->{a} && !$n->{trashed};
    $self->fail($q, 404, 'File not found');
    return;
}
sub parent_ok {
    my ($self, $q, $id) = @_;
    return 1 if !defined $id || $id eq '' || $id eq 'root';
    my $n = $self->node($q, $id) or return 0;
    return 1 if $n->{type} eq 'folder';
    $self->fail($q, 404, 'no folder');
    return 0;
}
sub pid_of { my ($id) = @_; return defined $id && $id ne '' && $id ne 'root' ? $id : undef }

# ---- routes ---------------------------------------------------------------------------------------------------------

sub on { my ($method, $pattern, $fn, $auth) = @_; push @ROUTES, [ $method, $pattern, $fn, $auth // 1 ]; return }

on GET => qr{^/health$}, sub { my ($s, $q) = @_; $s->reply($q, 200, { status => 'ok', uptime => int(time - $s->{start}) }) }, 0;
on GET => qr{^/api/signup-status$}, sub { my ($s, $q) = @_; $s->reply($q, 200, { signupEnabled => JSON::PP::false }) }, 0;
on POST => qr{^/api/login$}, sub {
    my ($s, $q) = @_;
    my $l = $s->{logins}{ $q->{json}{email} // '' } // ($s->{c}{anybody} ? $s->{logins}{'owner@load.test'} : undef);
    my $pw = $s->{c}{password};
    return $s->fail($q, 401, 'Invalid credentials') if !$l || defined $pw && $pw ne ($q->{json}{password} // '');
    $q->{log}{login} = $l->{email};
    my $life = $s->{c}{jwt} ? encode_base64url($J->encode({ iat => 1000, exp => 1000 + $s->{c}{jwt} })) : $l->{id};
    my $token = sprintf 'fake.%s.%d', $life, ++$s->{next_id};
    $s->{tokens}{$token} = { login => $l, born => time };
    $s->reply($q, 200, { user => { id => $l->{id}, email => $l->{email}, isSubUser => $l->{owner} ? JSON::PP::false : JSON::PP::true } },
        'Set-Cookie' => "token=$token; Path=/; HttpOnly; SameSite=Lax");
}, 0;
on POST => qr{^/api/logout$}, sub { my ($s, $q) = @_; $s->reply($q, 200, { message => 'Logged out' }) };
on GET => qr{^/api/profile$}, sub { my ($s, $q) = @_; $s->reply($q, 200, { id => $q->{login}{id}, email => $q->{login}{email} }) };
on GET => qr{^/api/user/sub-users$}, sub {
    my ($s, $q) = @_;
    return $s->fail($q, 404, 'no sub-users here') if !$s->{c}{caps}{sub_users};
    return $s->fail($q, 403, 'owner only') if !$q->{login}{owner};
    my @all = qw(files.download files.upload files.edit files.share files.delete files.trash);
    $s->reply($q, 200, { subUsers => [ map { { id => $_->{id}, email => $_->{email}, name => $_->{name}, permissions => \@all } } @{ $q->{a}{subs} } ] });
};
on GET => qr{^/api/user/storage$}, sub {
    my ($s, $q) = @_;
    my $used = 0;
    $used += length $_->{body} for grep { $_->{account} == $q->{a} && $_->{type} eq 'file' } values %{ $s->{nodes} };
    $s->reply($q, 200, { used => $used, total => undef, free => undef });
};
on POST => qr{^/api/user/client-heartbeat$}, sub { my ($s, $q) = @_; $s->reply($q, 200, { ok => JSON::PP::true }) };

on GET => qr{^/api/files$}, sub {
    my ($s, $q) = @_;
    my $parent = pid_of($q->{q}{parentId});
    return if !$s->parent_ok($q, $parent);
    my @all = sort { ($b->{type} eq 'folder') <=> ($a->{type} eq 'folder') || $a->{name} cmp $b->{name} } values %{ $s->kids($q->{a}, $parent) };
    my $limit = $q->{q}{limit} // $s->{c}{list_limit};
    my $from = ($q->{q}{cursor} // '') =~ /^p(\d+)$/ ? $1 : 0;
    my $paged = $s->{c}{caps}{paging} && @all > $from + $limit;
    my @page = $s->{c}{caps}{paging} ? splice(@all, $from, $limit) : @all;
    $s->reply($q, 200, [ map { $s->object($_) } @page ], $paged ? ('X-Next-Cursor' => 'p' . ($from + $limit)) : ());
};
on GET => qr{^/api/files/([^/]+)/info$}, sub { my ($s, $q, $id) = @_; my $n = $s->node($q, $id) or return; $s->reply($q, 200, $s->object($n)) };
on GET => qr{^/api/files/([^/]+)/download$}, sub {
    my ($s, $q, $id) = @_;
    my $n = $s->node($q, $id) or return;
    my $body = $n->{body};
    substr($body, -1) = chr(255 - ord substr $body, -1) if $s->{c}{corrupt} && length $body > 66;
    $s->reply($q, 200, $body, type => 'application/octet-stream', ETag => "\"v$n->{version}\"", 'Accept-Ranges' => 'none');
};
on POST => qr{^/api/files/folder$}, sub {
    my ($s, $q) = @_;
    my $parent = pid_of($q->{json}{parentId});
    return if !$s->parent_ok($q, $parent);
    my ($taken) = grep { $_->{name} eq $q->{json}{name} } values %{ $s->kids($q->{a}, $parent) };
    return $s->fail($q, 409, 'A folder of that name is there already', 'NAME_TAKEN') if $taken;
    my $n = $s->add($q->{a}, 'folder', $parent, $q->{json}{name});
    $s->changed($q->{a}, 'folder.created', { id => $n->{id}, parentId => $parent, name => $n->{name} }, $parent);
    $s->reply($q, 201, $s->object($n));
};

# The parts of a multipart body: {name, filename, value}.
sub parts {
    my ($q) = @_;
    my ($b) = ($q->{h}{'content-type'} // '') =~ /boundary="?([^";]+)/ or return;
    my @parts;
    for my $p (split /(?:\r\n)?--\Q$b\E(?:--)?(?:\r\n)?/, $q->{body}) {
        my ($head, $value) = split /\r\n\r\n/, $p, 2;
        next if !defined $value;
        my ($name) = $head =~ /\bname="([^"]*)"/;
        my ($file) = $head =~ /\bfilename="([^"]*)"/;
        if (defined $file) { $file =~ s/%22/"/g; utf8::decode($file) }
        push @parts, { name => $name, filename => $file, value => $value };
    }
    return @parts;
}
on POST => qr{^/api/files/upload$}, sub {
    my ($s, $q) = @_;
    my %p = map { $_->{name} => $_ } parts($q);
    return $s->fail($q, 400, 'No file uploaded') if !$p{file};
    my $parent = pid_of($p{parentId} && $p{parentId}{value});
    return if !$s->parent_ok($q, $parent);
    my $n = $s->add($q->{a}, 'file', $parent, $p{file}{filename}, $p{file}{value});
    $s->{seen}{uploads}++;
    $s->changed($q->{a}, 'file.uploaded', { id => $n->{id}, parentId => $parent, name => $n->{name} }, $parent);
    $s->reply($q, 200, $s->object($n));
};
on POST => qr{^/api/files/([^/]+)/replace$}, sub {
    my ($s, $q, $id) = @_;
    my $n = $s->node($q, $id) or return;
    my $lock = $s->lock_of($id);
    return $s->fail($q, 423, 'locked by another', 'LOCKED') if $lock && $lock->{id} ne ($q->{h}{'x-lock-id'} // '');
    my ($want) = ($q->{h}{'if-match'} // '') =~ /"([^"]*)"/;
    return $s->fail($q, 412, 'a newer version is there', 'VERSION_CONFLICT', currentVersion => "v$n->{version}")
        if defined $want && $want ne "v$n->{version}";
    my ($part) = grep { $_->{name} eq 'file' } parts($q) or return $s->fail($q, 400, 'No file');
    $n->{body} = $part->{value};
    $n->{version} = ++$s->{next_id};
    $n->{modified} = time;
    $s->{seen}{replaced}++;
    $s->changed($q->{a}, 'file.updated', { id => $n->{id}, parentId => $n->{parent}, name => $n->{name} }, $n->{parent});
    $s->reply($q, 200, $s->object($n));
};

sub lock_of { my ($s, $id) = @_; my $l = $s->{locks}{$id}; delete $s->{locks}{$id}, return if $l && $l->{until} < time; return $l }
on POST => qr{^/api/files/([^/]+)/lock$}, sub {
    my ($s, $q, $id) = @_;
    return $s->fail($q, 404, 'Cannot POST') if !$s->{c}{caps}{locks};
    my $n = $s->node($q, $id) or return;
    my $l = $s->lock_of($id);
    return $s->fail($q, 423, 'locked by another', 'LOCKED', lockedBy => { name => $l->{by} }, expiresAt => stamp($l->{until}))
        if $l && $l->{id} ne ($q->{h}{'x-lock-id'} // '');
    $l //= { id => $s->new_id('lk'), by => $q->{login}{email} };
    $l->{until} = time + (($q->{json} // {})->{ttlSeconds} // 120);
    $s->{locks}{$id} = $l;
    $s->reply($q, 200, { lockId => $l->{id}, fileId => $id, version => "v$n->{version}", expiresAt => stamp($l->{until}) });
};
on DELETE => qr{^/api/files/([^/]+)/lock$}, sub {
    my ($s, $q, $id) = @_;
    my $l = $s->lock_of($id);
    return $s->fail($q, 409, 'the lock has lapsed', 'LOCK_LOST') if !$l || $l->{id} ne ($q->{h}{'x-lock-id'} // '');
    delete $s->{locks}{$id};
    $s->reply($q, 204);
};
on POST => qr{^/api/files/rename$}, sub {
    my ($s, $q) = @_;
    my $n = $s->node($q, $q->{json}{id}) or return;
    my ($taken) = grep { $_ != $n && $_->{name} eq $q->{json}{name} } values %{ $s->kids($q->{a}, $n->{parent}) };
    return $s->fail($q, 409, 'That name is taken', 'NAME_TAKEN') if $taken;
    $n->{name} = $q->{json}{name};
    $s->changed($q->{a}, 'file.renamed', { id => $n->{id}, parentId => $n->{parent}, name => $n->{name} }, $n->{parent});
    $s->reply($q, 200, $s->object($n));
};
on POST => qr{^/api/files/move$}, sub {
    my ($s, $q) = @_;
    my $to = pid_of($q->{json}{parentId});
    return if !$s->parent_ok($q, $to);
    my @n;
    for my $id (@{ $q->{json}{ids} }) { push @n, $s->node($q, $id) // return }
    for my $n (@n) {
        my $from = $n->{parent};
        $s->unlink_node($n);
        $n->{name} = $s->free_name($q->{a}, $to, $n->{name});
        $n->{parent} = $to;
        $s->link_node($n);
        $s->changed($q->{a}, 'file.moved', { id => $n->{id}, parentId => $to, oldParentId => $from, name => $n->{name} }, $from, $to);
    }
    $s->reply($q, 200, { message => 'Files moved successfully.' });
};
on POST => qr{^/api/files/copy$}, sub {
    my ($s, $q) = @_;
    my $to = pid_of($q->{json}{parentId});
    return if !$s->parent_ok($q, $to);
    my @n;
    for my $id (@{ $q->{json}{ids} }) { push @n, $s->node($q, $id) // return }
    my $job = { id => $s->new_id('jb'), account => $q->{a}, ids => [] };
    $s->{jobs}{ $job->{id} } = $job;
    $s->after($s->{c}{job_seconds} // 0.05, sub {
        for my $n (@n) {
            my $copy = $s->add($q->{a}, $n->{type}, $to, $n->{name}, $n->{body});
            push @{ $job->{ids} }, $copy->{id};
            $s->changed($q->{a}, 'file.copied', { id => $copy->{id}, parentId => $to, name => $copy->{name} }, $to);
        }
        $job->{done} = 1;
    });
    $s->reply($q, 202, { message => 'Copy queued.', queued => JSON::PP::true, jobId => $job->{id} });
};
on GET => qr{^/api/files/jobs/([^/]+)$}, sub {
    my ($s, $q, $id) = @_;
    my $job = $s->{jobs}{$id};
    return $s->fail($q, 404, 'no such job') if !$job || $job->{account} != $q->{a};
    return $s->reply($q, 202, { jobId => $id, status => 'active' }) if !$job->{done};
    $s->reply($q, 200, { jobId => $id, status => 'completed', result => { count => scalar @{ $job->{ids} }, ids => $job->{ids} } });
};
on POST => qr{^/api/files/delete$}, sub {
    my ($s, $q) = @_;
    my @n;
    for my $id (@{ $q->{json}{ids} }) { push @n, $s->node($q, $id) // return }
    for my $n (@n) {
        $s->unlink_node($n);
        $n->{trashed} = 1;
        $s->changed($q->{a}, 'file.deleted', { id => $n->{id}, parentId => $n->{parent}, name => $n->{name} }, $n->{parent});
    }
    $s->reply($q, 200, { message => 'Files moved to trash.' });
};
on GET => qr{^/api/files/changes$}, sub {
    my ($s, $q) = @_;
    return $s->fail($q, 404, 'Cannot GET') if !$s->{c}{caps}{feed};
    my ($a, $c) = ($q->{a}, $q->{q}{cursor});
    my $now = "fake-$a->{seq}";
    return $s->reply($q, 200, { cursor => $now, resync => JSON::PP::false, folders => [], hasMore => JSON::PP::false }) if !defined $c;
    my ($at) = $c =~ /^fake-(\d+)$/;
    return $s->reply($q, 200, { cursor => $now, resync => JSON::PP::true, folders => [], hasMore => JSON::PP::false })
        if !defined $at || $at > $a->{seq} || $at < ($s->{c}{feed_floor} // 0);
    my (%seen, @f);
    for (my $i = $at; $i < $a->{seq}; $i++) { push @f, grep { !$seen{$_}++ } @{ $a->{feed}[$i][1] } }
    $s->reply($q, 200, { cursor => $now, resync => JSON::PP::false, folders => \@f, hasMore => JSON::PP::false });
};
on GET => qr{^/api/files/events$}, sub {
    my ($s, $q) = @_;
    return $s->fail($q, 404, 'Cannot GET') if !$s->{c}{caps}{events};
    my ($c, $a) = ($q->{c}, $q->{a});
    my $mine = grep { $_->{stream}{login} == $q->{login} } values %{ $a->{streams} };
    return $s->reply($q, 429, { error => 'Too many active connections.' }) if $mine >= $s->{c}{streams_per_login};
    if (my $own = $s->{c}{stream}) {
        $s->send_raw($c, $own->{text} . 'x' x ($own->{pad} // 0), 1);
        $s->after($own->{wait} // 0, sub { $s->drop($c, $own->{end} eq 'reset') if !$c->{gone} }) if $own->{end} ne 'open';
        return;
    }
    $q->{log}{status} = 200;
    $c->{stream} = { account => $a, login => $q->{login} };
    $a->{streams}{ $c->{fd} } = $c;
    $s->{seen}{streams}++;
    setsockopt $c->{s}, SOL_SOCKET, SO_SNDBUF, 4096 if $s->{c}{backlog};
    my $hello = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: keep-alive\r\n\r\n"
        . ($s->{c}{retry} ? "retry: $s->{c}{retry}\n\n" : '') . ($s->{c}{deaf} ? '' : "data: {\"type\":\"connected\",\"message\":\"hello\"}\n\n");
    $s->send_raw($c, $hello, 1);
    if (defined(my $last = $q->{h}{'last-event-id'})) {
        my ($at) = $last =~ /^fake-(\d+)$/;
        if ($s->{c}{replay} && defined $at) { $s->send_raw($c, join('', @{ $a->{frames} // [] }[ $at .. $a->{seq} - 1 ]), 1) }
        elsif (!defined $at || $at != $a->{seq}) { $s->send_raw($c, "data: {\"type\":\"resync\"}\n\n", 1) }
    }
    my $beat;
    $beat = sub { return if $c->{gone}; $s->send_raw($c, ": keepalive\n\n", 1); $s->after($s->{c}{keepalive}, $beat) };
    $s->after($s->{c}{keepalive}, $beat);
};

# ---- control --------------------------------------------------------------------------------------------------------

my %CONTROL = (
    rule => sub { my ($s, $r) = @_; $r->{path} = qr/$r->{path}/ if defined $r->{path}; unshift @{ $s->{rules} }, $r; 1 },
    rules_clear => sub { my ($s) = @_; $s->{rules} = []; 1 },
    set => sub { my ($s, $v) = @_; $s->{c}{$_} = $v->{$_} for keys %$v; 1 },
    log => sub { my ($s) = @_; $s->{log} },
    count => sub { my ($s, $re) = @_; return scalar grep { "$_->{method} $_->{path}" =~ $re } @{ $s->{log} } },
    event => sub {
        my ($s, $e) = @_;
        my $raw = $e->{raw} // 'data: ' . $J->encode({ type => $e->{type}, timestamp => stamp(time), data => $e->{data} // {} }) . "\n\n";
        $raw .= 'x' x $e->{pad} if $e->{pad};
        $s->push_event($s->{accounts}[ $e->{account} // 0 ], $raw);
        1;
    },
    touch => sub {
        my ($s, $e) = @_;
        my $account = $s->{accounts}[ $e->{account} // 0 ];
        my $nodes = $s->{nodes};
        my ($f) = map { $nodes->{$_} }
            sort grep { my $n = $nodes->{$_}; $n->{account} == $account && $n->{type} eq 'file' && !$n->{trashed} } keys %$nodes;
        for (1 .. $e->{n} // 1) {
            $f->{version} = ++$s->{next_id};
            $s->changed($account, 'file.updated', { id => $f->{id}, parentId => $f->{parent}, name => $f->{name} }, $f->{parent});
        }
        return $f->{parent};
    },
    cut_streams => sub { my ($s) = @_; $s->drop($_) for grep { $_->{stream} } values %{ $s->{conns} }; 1 },
    outage => sub {
        my ($s, $seconds) = @_;
        my $port = $s->{listen}->sockport;
        $s->after(0, sub {
            close $s->{listen};
            $s->{listen} = undef;
            $s->drop($_, 1) for values %{ $s->{conns} };
            $s->after($seconds, sub { $s->{listen} = FakeDrive::_listen($port) });
        });
        1;
    },
    nodes => sub {
        my ($s) = @_;
        return [ map { { id => $_->{id}, name => $_->{name}, type => $_->{type}, parent => $_->{parent}, trashed => $_->{trashed}, account => $_->{account}{id},
            size => $_->{type} eq 'file' ? length $_->{body} : undef } } values %{ $s->{nodes} } ];
    },
    state => sub {
        my ($s) = @_;
        my @n = values %{ $s->{nodes} };
        my $streams = 0;
        $streams += keys %{ $_->{streams} } for @{ $s->{accounts} };
        return { files => scalar(grep { $_->{type} eq 'file' && !$_->{trashed} } @n), folders => scalar(grep { $_->{type} eq 'folder' } @n),
                 trashed => scalar(grep { $_->{trashed} } @n), locks => scalar(keys %{ $s->{locks} }), streams_open => $streams, %{ $s->{seen} } };
    },
);

sub control {
    my ($self, $q) = @_;
    my $m = $J->decode($q->{body});
    my $fn = $CONTROL{ $m->{what} } or return $self->fail($q, 400, "no control $m->{what}");
    return $self->reply($q, 200, { result => $fn->($self, $m->{arg}) });
}

1;
