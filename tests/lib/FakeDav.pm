package FakeDav;
# A scripted WebDAV server in one child process, its tree kept in memory: what real servers can do and the two of
# Dav.pm do not. A test reads the log of all requests and the tree afterwards.
#
#   my $d = FakeDav->new(users => { ann => 'pw' });
#   $d->rule(method => 'DELETE', path => qr{/x$}, status => 207, body => $xml, times => 1);   # instead of what it does
#   $d->rule(method => 'LOCK', drop => 1, times => 1);   # done, but the connection ends without an answer
#   $d->lock($path, 'carol', 5);   # somebody's lock, which lapses 5 s after its end was first told
#   etags => 'weak' | 'gzip' | 'none' | 'fresh'   # W/"x" for ever; "x-gzip" listed, "x" compared; none; weak for a second
#   hrefs => 'raw' | 'absolute'                   # not encoded; with scheme and host
#   cloud => 1                                    # as Nextcloud: status.php, files of each user, OCS accounts, oc:fileid,
#                                                 # oc:size, checksums, trash-bin; a folder's ETag changes with all below it
#   cloud => 1, trash => 0, frozen => 1           # … without a trash-bin; … with ETags of folders that never change
#   cloud => 1, checksum => 'refuse' | 'SHA1:…'   # … that refuses every checksum; … that tells this one of every file
#   app => { ann => 'token' }                     # app passwords: the account's own is refused
#   empty => 1                                    # every upload is stored as nothing
#   strangers => ['carol'], redirect => $url, locks => 0, slash => 1 (a folder without its slash is redirected)
#   strict => 1                                   # … or cannot be deleted, moved, copied; a lock's token comes without brackets
#   $d->log; $d->tree; $d->url; $d->stop;
#
# Core modules only.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;
use Time::HiRes qw(time);
use parent 'Fake';

my $J = JSON::PP->new->latin1->canonical;

sub new {
    my ($class, %conf) = @_;
    my $c = { users => { ann => 'pw' }, prefix => '/dav', etags => 'strong', hrefs => 'encoded', locks => 1, %conf };
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 128, ReuseAddr => 1) or die "listen: $!";
    $c->{port} = $listen->sockport;
    my $server = bless { c => $c, tree => {}, bins => {}, log => [], rules => [], n => 0, locks => {} }, 'FakeDav::Server';
    return $class->start($c->{port}, sub { $server->serve($listen) }, %$c);
}
sub json { return $J }
sub url { my ($s, $user) = @_; $user //= 'ann'; return "webdav://$user:$s->{users}{$user}\@127.0.0.1:$s->{port}$s->{prefix}" }
sub origin { return "http://127.0.0.1:$_[0]{port}" }
# Only what is new is fetched: a test may look again and again.
sub log { my ($self) = @_; push @{ $self->{seen} }, @{ $self->_ctl(log => scalar @{ $self->{seen} //= [] }) }; return $self->{seen} }      # [{method, path, status, headers => {lower-case name => value}, body => of a PROPFIND}]
sub tree { return $_[0]->_ctl('tree') }    # {path => size, or -1 of a folder}; of all users
sub logins { return $_[0]->_ctl('logins') }
sub bin { return $_[0]->_ctl('bin') }      # {item => where it was}, of all users
sub resize { my ($self, $path, $by) = @_; return $self->_ctl(resize => [ $path, $by ]) }    # what oc:size tells of a folder
sub lock { my ($self, @a) = @_; return $self->_ctl(lock => \@a) }
sub locks { return $_[0]->_ctl('locks') }    # {path => owner}
sub put { my ($self, $path, $data) = @_; return $self->_ctl(put => [ $path, $data ]) }    # data undef: a folder
sub count { my ($self, $re) = @_; return scalar grep { "$_->{method} $_->{path}" =~ $re } @{ $self->log } }

package FakeDav::Server;
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use MIME::Base64;
use Time::HiRes qw(time);

sub serve {
    my ($self, $listen) = @_;
    my $sel = IO::Select->new($listen);
    my %in;
    while (1) {
        for my $fh ($sel->can_read) {
            if ($fh == $listen) { my $new = $listen->accept or next; $sel->add($new); $in{$new} = ''; next }
            my $n = sysread $fh, $in{$fh}, 1 << 20, length $in{$fh};
            if (!$n) { $sel->remove($fh); delete $in{$fh}; close $fh; next }
            while (defined $in{$fh} && $in{$fh} =~ /\A(.*?)\r\n\r\n/s) {
                my $head = $1;
                my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
                last if length($in{$fh}) < length($head) + 4 + ($length // 0);
                my $body = substr $in{$fh}, length($head) + 4, $length // 0;
                substr $in{$fh}, 0, length($head) + 4 + ($length // 0), '';
                my $answer = $self->answer($head, $body);
                my $last = !defined $answer || $answer =~ /^Connection: close\r/m;
                $answer //= '';
                while (length $answer) { my $w = syswrite $fh, $answer; last if !$w; substr $answer, 0, $w, '' }
                next if !$last;
                $sel->remove($fh);
                delete $in{$fh};
                close $fh;
                last;
            }
        }
    }
    return;
}

sub answer {
    my ($self, $head, $body) = @_;
    my ($method, $target) = $head =~ /\A(\S+) (\S+)/;
    my %h = map { /^([^:\s]+):\s*(.*?)\s*$/ ? (lc $1 => $2) : () } split /\r\n/, $head;
    if ($target eq '/_ctl') {
        my $c = $J->decode($body);
        my $result = $self->can("ctl_$c->{what}")->($self, $c->{arg});
        my $json = $J->encode({ result => $result });
        return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($json) . "\r\n\r\n$json";
    }
    my ($status, $type, $text, @more) = $self->handle($method, $target, \%h, $body);
    my $drop = delete $self->{drop};
    push @{ $self->{log} }, { method => $method, path => $target, status => $status, headers => \%h, $method eq 'PROPFIND' ? (body => $body) : () };
    return if $drop;
    $text = '' if $method eq 'HEAD';
    return join "\r\n", "HTTP/1.1 $status X", 'Content-Type: ' . ($type // 'text/html'), 'Content-Length: ' . length($text // ''),
        @more, '', $text // '';
}

sub ctl_rule { my ($self, $r) = @_; push @{ $self->{rules} }, $r; return 1 }
sub ctl_log { my ($self, $from) = @_; return [ @{ $self->{log} }[ $from .. $#{ $self->{log} } ] ] }
sub ctl_tree { my ($self) = @_; return { map { $_ => $self->{tree}{$_}{dir} ? -1 : length $self->{tree}{$_}{data} } keys %{ $self->{tree} } } }
sub ctl_logins { return [ sort keys %{ $_[0]{c}{users} } ] }
sub ctl_bin { my ($self) = @_; return { map { my $b = $_; map { $_ => $b->{$_}{from} } keys %$b } values %{ $self->{bins} } } }
sub ctl_resize { my ($self, $a) = @_; $self->{resized}{ $a->[0] } = $a->[1]; return 1 }
sub ctl_lock { my ($self, $a) = @_; $self->{locks}{ $a->[0] } = { token => 'urn:uuid:' . ++$self->{n}, owner => $a->[1], lasts => $a->[2] }; return 1 }
sub ctl_locks { my ($self) = @_; return { map { $self->held($_) ? ($_ => $self->{locks}{$_}{owner}) : () } keys %{ $self->{locks} } } }
sub ctl_put { my ($self, $a) = @_; $self->store($a->[0], $a->[1]); return 1 }

sub store {
    my ($self, $path, $data) = @_;
    my $old = $self->{tree}{$path};
    $self->{tree}{$path} = { dir => !defined $data, data => $data, rev => ++$self->{n}, id => $old ? $old->{id} : ++$self->{n}, at => time };
    $self->touched($path);
    return;
}
# What is above it changes with it, in a cloud; elsewhere only the folder itself does.
sub touched {
    my ($self, $path) = @_;
    return if $self->{c}{frozen};
    while (length $path) {
        $path = up($path);
        $self->{tree}{$path}{rev} = ++$self->{n} if $self->{tree}{$path};
        return if !$self->{c}{cloud};
    }
    return;
}

sub handle {
    my ($self, $method, $target, $h, $body) = @_;
    my $c = $self->{c};
    return (301, undef, '', "Location: $c->{redirect}$target") if $c->{redirect};
    for my $r (@{ $self->{rules} }) {
        next if defined $r->{method} && $r->{method} ne $method;
        next if defined $r->{path} && $target !~ /$r->{path}/;
        next if defined $r->{times} && $r->{times}-- <= 0;
        if ($r->{drop}) { $self->{drop} = 1; next }
        return ($r->{status}, 'application/xml', $r->{body} // '', @{ $r->{headers} // [] });
    }
    if ($c->{cloud} && $target eq '/status.php') { return (200, 'application/json', '{"installed":true,"versionstring":"29.0.4","productname":"Nextcloud"}') }
    my ($user, $password) = split /:/, decode_base64(($h->{authorization} // '') =~ /^Basic (\S+)/ ? $1 : ''), 2;
    return (401, undef, '', 'WWW-Authenticate: Basic realm="x"')
        if %{ $c->{users} } && (!defined $user || !exists $c->{users}{$user} || ($c->{app}{$user} // $c->{users}{$user}) ne $password);
    return (412, undef, '') if $target =~ m{^/ocs/} && ($h->{'ocs-apirequest'} // '') ne 'true';
    return $self->accounts($method, $body, $user, $target) if $c->{cloud} && $target =~ m{^/ocs/v2\.php/cloud/users};
    my $path = $target =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    my $slash = $path =~ s{/\z}{};
    my $root = $c->{cloud} ? "/remote.php/dav/files/$user" : $c->{prefix};
    return $self->trashbin($method, $path =~ s{^/remote\.php/dav/trashbin/\Q$user\E/}{}r, $h, $user)
        if $c->{cloud} && ($c->{trash} // 1) && $path =~ m{^/remote\.php/dav/trashbin/\Q$user\E/};
    return (404, undef, '<title>404 Not Found</title>') if index($path, $root) != 0;
    $path = substr $path, length $root;
    return (301, undef, '', "Location: $target/") if $c->{slash} && !$slash && $self->{tree}{$path} && $self->{tree}{$path}{dir};
    return (409, undef, '') if $c->{strict} && !$slash && $method =~ /^(?:DELETE|MOVE|COPY)$/ && $self->{tree}{$path} && $self->{tree}{$path}{dir};
    $self->{tree}{''} //= { dir => 1, rev => 0, id => 0, at => 0 };
    my $code = $self->can("do_$method") or return (405, undef, '');
    return $code->($self, $path, $h, $body, $root);
}

sub accounts {
    my ($self, $method, $body, $user, $target) = @_;
    my $c = $self->{c};
    return (403, undef, '') if $user ne 'ann';
    if ($method eq 'DELETE') { # with its files, which all users of this fake share, and its bin
        my ($gone) = map { s/%(..)/chr hex $1/ger } $target =~ m{/users/([^?]+)};
        my $known = delete $c->{users}{$gone};
        delete $self->{bins}{$gone};
        %{ $self->{tree} } = () if $known;
        return (200, 'application/json', $J->encode({ ocs => { meta => { statuscode => $known ? 200 : 101, message => $known ? 'OK' : 'no such user' } } }));
    }
    return (200, 'application/json', $J->encode({ ocs => { meta => { statuscode => 200 }, data => { users => [ sort(keys %{ $c->{users} }), @{ $c->{strangers} // [] } ] } } }))
        if $method eq 'GET';
    my %f = map { map { s/%(..)/chr hex $1/ger } split /=/, $_, 2 } split /&/, $body;
    my $code = exists $c->{users}{ $f{userid} } ? 102 : 200;
    $c->{users}{ $f{userid} } = $f{password} if $code == 200;
    return (200, 'application/json', $J->encode({ ocs => { meta => { statuscode => $code, message => 'User already exists' } } }));
}

sub up { return $_[0] =~ m{^(.*)/[^/]*$} ? $1 : '' }
sub parent_ok { my ($self, $path) = @_; my $p = $self->{tree}{ up($path) }; return $p && $p->{dir} }
sub tag {
    my ($self, $n) = @_;
    my $e = $self->{c}{etags};
    return '' if $e eq 'none';
    return "\"$n->{rev}-gzip\"" if $e eq 'gzip';
    return ($e eq 'weak' || ($e eq 'fresh' && time - $n->{at} < 1) ? 'W/' : '') . "\"$n->{rev}\"";
}
# Strong comparison with what the tag is on the inside.
sub matches {
    my ($self, $h, $n) = @_;
    my $want = $h->{'if-match'} // return 1;
    return defined $n if $want eq '*';
    return 0 if !$n || $self->{c}{etags} eq 'weak' || ($self->{c}{etags} eq 'fresh' && time - $n->{at} < 1);
    return $want eq "\"$n->{rev}\"";
}

sub do_OPTIONS { my ($self) = @_; return (200, undef, '', 'DAV: 1' . ($self->{c}{locks} ? ',2' : ''), 'DAV: <http://example.org/more>') }
sub do_MKCOL {
    my ($self, $path) = @_;
    return (405, undef, '') if $self->{tree}{$path};
    return (409, undef, '') if !$self->parent_ok($path);
    $self->store($path, undef);
    return (201);
}
sub do_PUT {
    my ($self, $path, $h, $body) = @_;
    my $n = $self->{tree}{$path};
    return (412, undef, '') if ($h->{'if-none-match'} // '') eq '*' && $n || !$self->matches($h, $n);
    return (400, 'application/xml', '<d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:message>The computed checksum does not match the one received from the client.</s:message></d:error>')
        if ($self->{c}{checksum} // '') eq 'refuse' && $path !~ /made-by/ || ($h->{'oc-checksum'} // '') =~ /^SHA1:(.*)/ && sha1_hex($body) ne $1;
    return (409, undef, '') if !$self->parent_ok($path);
    return (500, 'application/xml', '<d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:message>Error while copying file to target location</s:message></d:error>')
        if $self->{c}{cloud} && length(($path =~ m{([^/]*)$})[0]) > 227; # it writes to a longer name first
    $self->store($path, $self->{c}{empty} && $path !~ /made-by/ ? '' : $body);
    $self->{tree}{$path}{sum} = $h->{'oc-checksum'};
    return ($n ? 204 : 201);
}
sub do_GET {
    my ($self, $path) = @_;
    my $n = $self->{tree}{$path};
    return $n && !$n->{dir} ? (200, 'application/octet-stream', $n->{data}, 'ETag: ' . $self->tag($n)) : (404, undef, '');
}
sub do_DELETE {
    my ($self, $path, $h, undef, $root) = @_;
    return (404, undef, '') if !$self->{tree}{$path};
    return (423, undef, '') if $self->held($path) && ($h->{if} // '') !~ /\Q$self->{locks}{$path}{token}\E/;
    return (424, undef, '') if grep { index($_, "$path/") == 0 && $self->held($_) } keys %{ $self->{locks} };
    my %gone = map { substr($_, length $path) => delete $self->{tree}{$_} } grep { $_ eq $path || index($_, "$path/") == 0 } keys %{ $self->{tree} };
    $self->touched($path);
    my ($user) = $root =~ m{/files/(.*)};
    $self->{bins}{$user}{ ($path =~ m{([^/]*)$})[0] . '.d' . ++$self->{n} } = { from => substr($path, 1), all => \%gone } if defined $user && ($self->{c}{trash} // 1);
    return (204);
}
# /trashbin/USER/trash, /trash/ITEM, a MOVE to /restore/anything
sub trashbin {
    my ($self, $method, $below, $h, $user) = @_;
    my $bin = $self->{bins}{$user} //= {};
    my ($item) = $below =~ m{^trash/(.+)};
    if ($method eq 'PROPFIND') {
        my $base = "/remote.php/dav/trashbin/$user/trash/" =~ s/@/%40/r;
        return (207, 'application/xml; charset=utf-8', '<d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns" xmlns:nc="http://nextcloud.org/ns">'
            . join('', map { "<d:response><d:href>$base" . ($_->[0] =~ s{([^A-Za-z0-9._~-])}{sprintf '%%%02X', ord $1}ger) . "</d:href><d:propstat><d:prop>$_->[1]</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>" }
                [ '', '<d:resourcetype><d:collection/></d:resourcetype>' ], map { [ $_, $self->trashed($bin->{$_}) ] } sort keys %$bin) . '</d:multistatus>');
    }
    return (404, undef, '') if defined $item && !$bin->{$item};
    if ($method eq 'DELETE') { delete @{$bin}{ defined $item ? $item : keys %$bin }; return (204) }
    return (405, undef, '') if $method ne 'MOVE' || !defined $item;
    return (403, undef, '') if ($h->{destination} // '') !~ m{/trashbin/[^/]+/restore/.};
    my $t = delete $bin->{$item};
    my $to = "/$t->{from}";
    $to .= ' (restored)' if $self->{tree}{$to};
    $self->{tree}{"$to$_"} = $t->{all}{$_} for keys %{ $t->{all} };
    $self->touched($to);
    return (201);
}
sub trashed {
    my ($self, $t) = @_;
    my $n = $t->{all}{''};
    return ($n->{dir} ? '<d:resourcetype><d:collection/></d:resourcetype>' : '<d:resourcetype/><d:getcontentlength>' . length($n->{data}) . '</d:getcontentlength>')
        . sprintf('<oc:fileid>%08d</oc:fileid>', $n->{id}) . '<nc:trashbin-original-location>' . xml($t->{from}) . '</nc:trashbin-original-location>';
}
sub transfer {
    my ($self, $path, $h, $root, $move) = @_;
    my $origin = "http://127.0.0.1:$self->{c}{port}";
    return (404, undef, '') if !$self->{tree}{$path};
    return (502, undef, '') if index($h->{destination} // '', $origin) != 0; # another host
    my $to = substr($h->{destination}, length $origin) =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    return (502, undef, '') if index($to, $root) != 0;
    $to = substr($to, length $root) =~ s{/\z}{}r;
    return (409, undef, '') if !$self->parent_ok($to);
    return (412, undef, '') if $self->{tree}{$to} && ($h->{overwrite} // '') eq 'F';
    for my $old (grep { $_ eq $path || index($_, "$path/") == 0 } keys %{ $self->{tree} }) {
        my $n = $self->{tree}{$old};
        $self->{tree}{ $to . substr $old, length $path } = $move ? $n : { %$n, id => ++$self->{n}, at => time };
        delete $self->{tree}{$old} if $move;
        delete $self->{locks}{$old} if $move;    # RFC 4918, 7.5: they do not move
    }
    $self->touched($_) for $to, $move ? $path : ();
    return (201);
}
sub do_MOVE { my ($self, $path, $h, undef, $root) = @_; return $self->transfer($path, $h, $root, 1) }
sub do_COPY { my ($self, $path, $h, undef, $root) = @_; return $self->transfer($path, $h, $root, 0) }
sub held { my ($self, $path) = @_; my $l = $self->{locks}{$path}; return $l && (!defined $l->{until} || $l->{until} > time) }
sub do_LOCK {
    my ($self, $path, $h, $body) = @_;
    return (405, undef, '') if !$self->{c}{locks};
    my $l = $self->held($path) ? $self->{locks}{$path} : undef;
    my ($ttl) = ($h->{timeout} // '') =~ /Second-(\d+)/;
    return (423, undef, '') if $l && ($h->{if} // '') !~ /\Q$l->{token}\E/;
    if ($l) { $l->{until} = time + ($ttl // 120); return (200, 'application/xml', '') } # refreshed
    my $new = !$self->{tree}{$path}; # RFC 4918, 7.3: an empty file is made
    $self->store($path, '') if $new;
    my ($owner) = $body =~ m{<D:owner>(.*?)</D:owner>};
    $self->{locks}{$path} = { token => 'urn:uuid:' . ++$self->{n}, owner => $owner, until => time + ($ttl // 120) };
    my $token = $self->{locks}{$path}{token};
    return ($new ? 201 : 200, 'application/xml', '', $self->{c}{strict} ? "Lock-Token: $token" : "Lock-Token: <$token>");
}
sub do_UNLOCK {
    my ($self, $path, $h) = @_;
    return (409, undef, '') if !$self->held($path) || ($h->{'lock-token'} // '') ne "<$self->{locks}{$path}{token}>";
    delete $self->{locks}{$path};
    return (204);
}

sub xml { return $_[0] =~ s/&/&amp;/gr =~ s/</&lt;/gr }
sub item {
    my ($self, $root, $path) = @_;
    my ($n, $c) = ($self->{tree}{$path}, $self->{c});
    my $href = $root . $path . ($n->{dir} ? '/' : '');
    $href =~ s{([^A-Za-z0-9._~/-])}{sprintf '%%%02X', ord $1}ge if $c->{hrefs} ne 'raw';
    $href = "http://other.example:8080$href" if $c->{hrefs} eq 'absolute';
    my $tag = $self->tag($n);
    my $props = $n->{dir} ? '<d:resourcetype><d:collection/></d:resourcetype>' : '<d:resourcetype/><d:getcontentlength>' . length($n->{data}) . '</d:getcontentlength>';
    $props .= '<d:getetag>' . xml($tag) . '</d:getetag>' if length $tag;
    $props .= sprintf '<oc:fileid>%08d</oc:fileid><oc:size>%d</oc:size>', $n->{id}, $self->total($path) if $c->{cloud};
    my $l = $self->held($path) ? $self->{locks}{$path} : undef;
    $l->{until} //= time + $l->{lasts} if $l;
    $props .= '<d:lockdiscovery><d:activelock><d:locktype><d:write/></d:locktype><d:owner>' . xml($l->{owner}) . '</d:owner><d:timeout>Second-'
        . int($l->{until} - time + 0.999) . "</d:timeout><d:locktoken><d:href>$l->{token}</d:href></d:locktoken></d:activelock></d:lockdiscovery>" if $l;
    my $sum = $n->{dir} ? undef : ($c->{checksum} // $n->{sum});
    $props .= "<oc:checksums><oc:checksum>$sum</oc:checksum></oc:checksums>" if $c->{cloud} && defined $sum;
    $props .= '<d:quota-used-bytes>' . $self->total('') . '</d:quota-used-bytes><d:quota-available-bytes>-3</d:quota-available-bytes>' if $c->{cloud} && $n->{dir};
    return '<d:response><d:href>' . xml($href) . "</d:href><d:propstat><d:prop>$props</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
        . '<d:propstat><d:prop><d:getlastmodified/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response>';
}
sub total {
    my ($self, $path) = @_;
    my $sum = $self->{resized}{$path} // 0;
    $sum += length $_->{data} for grep { !$_->{dir} } map { $self->{tree}{$_} } grep { $_ eq $path || index($_, "$path/") == 0 } keys %{ $self->{tree} };
    return $sum;
}
sub do_PROPFIND {
    my ($self, $path, $h, undef, $root) = @_;
    my $n = $self->{tree}{$path} or return (404, undef, '');
    my @in = ($path, ($h->{depth} // '') eq '1' ? grep { /^\Q$path\E\/[^\/]+$/ } sort keys %{ $self->{tree} } : ());
    return (207, 'application/xml; charset=utf-8', '<?xml version="1.0" encoding="utf-8"?><d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns">'
        . join('', map { $self->item($root, $_) } @in) . '</d:multistatus>');
}

1;
