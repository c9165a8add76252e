package FakeTma;
# TMA Cloud as it was seen to be, scripted: the public v2, and v3 as its late documentation has it. A FakeDrive (rules,
# log, state, outage) with a fresh server's accounts: none, until somebody signs up.
#
#   my $d = FakeTma->new;                    # v2: no sub-users, pages, locks, versions, change feed, bucket settings
#   my $d = FakeTma->new(flavour => 'v3');   # late v3: sub-users, pages, queued work, batches of events
#   budget => 10000, window => 900           # requests in so many seconds of a client address; a signed-in one counts twice
#   revives => 1                             # a copy brings back what was deleted in its source
#   database => URL                          # where it notes heartbeats: its own database, of which a test makes the rows
#   queue_above => 1000, page_most => 500    # v3: items from which on moving to the trash is queued; of a page at most
use strict;
use warnings;
use parent 'FakeDrive';

sub new {
    my ($class, %conf) = @_;
    my $flavour = delete $conf{flavour} // 'v2';
    return $class->SUPER::new(accounts => 0, server => 'FakeTma::' . uc $flavour, budget => 10_000, window => 900, queue_above => 1000, page_most => 500, %conf);
}

# ---- what both have in common ---------------------------------------------------------------------------------------

package FakeTma::Server;
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(time);
our @ISA = ('FakeDrive::Server');

my $J = JSON::PP->new->utf8->canonical;
my ($YES, $NO) = (JSON::PP::true, JSON::PP::false);
my $BARRED = qr{[\x00-\x1f/\\:*?"<>|]};

# Express's page for a path that it does not know.
sub unknown_path {
    my ($s, $q) = @_;
    my ($path) = split /\?/, $q->{path};
    return $s->reply($q, 404, "<!DOCTYPE html>\n<html><body><pre>Cannot $q->{method} $path</pre></body></html>\n", type => 'text/html; charset=utf-8');
}

sub reply {
    my ($s, $q, $status, $body, %h) = @_;
    $h{ETag} //= sprintf 'W/"%x-%s"', ref $body ? length $J->encode($body) : 0, 'aBc' if ref $body && $status == 200;
    $h{'X-Powered-By'} = 'Express';
    if (my $b = $q->{budget}) {
        @h{qw(RateLimit-Policy RateLimit-Limit RateLimit-Remaining RateLimit-Reset)} = ("$s->{c}{budget};w=$s->{c}{window}", $s->{c}{budget}, $b->{left}, $b->{reset});
    }
    return $s->SUPER::reply($q, $status, $body, %h);
}

sub invalid { my ($s, $q, $text) = @_; return $s->reply($q, 422, { message => 'Validation failed', details => [ { $s->field => $text } ] }) }

# Counted by address alone, anew when the budget is set to another; the limiter stands before both routers, so that what is signed in passes it twice.
sub within_budget {
    my ($s, $q) = @_;
    my $w = $s->{windows}{"$s->{c}{budget} $q->{c}{peer}"} //= { from => time, n => 0 };
    %$w = (from => time, n => 0) if time > $w->{from} + $s->{c}{window};
    $w->{n} += $q->{login} ? 2 : 1;
    $q->{budget} = { left => $w->{n} > $s->{c}{budget} ? 0 : $s->{c}{budget} - $w->{n}, reset => 1 + int $s->{c}{window} - (time - $w->{from}) };
    return 1 if $w->{n} <= $s->{c}{budget};
    $s->reply($q, 429, { error => 'Too many requests from this IP, please try again later.' }, 'Retry-After' => $q->{budget}{reset});
    return 0;
}

sub route {
    my ($s, $q) = @_;
    my ($path, $query) = split /\?/, $q->{path}, 2;
    $q->{q} = { map { /^([^=]*)=?(.*)$/ ? ($1 => FakeDrive::Server::_unescape($2)) : () } split /&/, $query // '' };
    return $s->reply($q, 200, { status => 'ok', uptime => 1 }) if $path eq '/health';
    return if $path =~ m{^/api/} && !$s->within_budget($q);
    if ($path =~ m{^/api/(?:files|user)\b}) { # the session is asked for before the path is known
        return $s->fail($q, 401, 'No token provided') if !$q->{login};
        $q->{a} = $q->{login}{account};
    }
    return $s->fail($q, 403, 'Forbidden: missing CSRF header')
        if $s->wants_csrf && $path =~ m{^/api/} && $q->{method} ne 'GET' && !$q->{h}{'x-requested-with'} && !$q->{h}{'x-tma-desktop-client'};
    if (($q->{h}{'content-type'} // '') =~ m{^application/json} && length $q->{body}) {
        $q->{json} = eval { $J->decode($q->{body}) } or return $s->fail($q, 400, 'Unexpected token', 'INTERNAL_ERROR');
    }
    my $routes = $s->routes;
    for my $r (sort keys %$routes) {
        my ($method, $pattern) = split / /, $r, 2;
        next if $method ne $q->{method};
        my @m = $path =~ m{^/api/$pattern$} or next;
        return $routes->{$r}->($s, $q, $pattern =~ /\(/ ? @m : ());
    }
    return $s->unknown_path($q);
}

sub emit {
    my ($s, $a, $type, $data) = @_;
    $s->push_event($a, 'data: ' . $J->encode({ type => $type, timestamp => FakeDrive::Server::stamp(time), data => $data }) . "\n\n");
    return;
}
sub about { my ($s, $n, %more) = @_; return { id => $n->{id}, name => $n->{name}, type => $n->{type}, parentId => $n->{parent}, userId => $n->{account}{id}, %more } }

sub item {
    my ($s, $n) = @_;
    my $file = $n->{type} eq 'file';
    return { id => $n->{id}, name => $n->{name}, type => $n->{type}, size => $file ? $s->size_of($n) : undef,
        modified => FakeDrive::Server::stamp($n->{modified}), mimeType => $file ? 'text/plain' : undef, starred => $n->{starred} ? $YES : $NO, shared => $NO };
}

sub live { my ($s, $q) = @_; return grep { $_->{account} == $q->{a} && !$_->{trashed} } values %{ $s->{nodes} } }
sub below { my ($s, $n) = @_; return map { ($_, $s->below($_)) } values %{ $s->kids($n->{account}, $n->{id}) } }

# Nodes of the caller among those asked for; ids of nothing are passed over.
sub asked { my ($s, $q) = @_; return grep { $_ && $_->{account} == $q->{a} } map { $s->{nodes}{ $_ // '' } } @{ $q->{json}{ids} // [] } }

sub copy_tree {
    my ($s, $n, $to) = @_;
    my $copy = $s->add($n->{account}, $n->{type}, $to, $n->{name}, $n->{body});
    $copy->{name} = $n->{name} if $n->{type} eq 'folder' && !$s->unique_folders;
    $s->copy_tree($_, $copy->{id}) for values %{ $s->kids($n->{account}, $n->{id}) };
    $s->copy_tree($_, $copy->{id}) for grep { $s->{c}{revives} && $_->{trashed} && ($_->{parent} // '') eq $n->{id} } values %{ $s->{nodes} };
    return $copy;
}
sub to_trash { my ($s, $n) = @_; $s->unlink_node($n); $_->{trashed} = 1 for $n, $s->below($n); $n->{trash_top} = 1; return }
sub purge { my ($s, $n) = @_; delete $s->{nodes}{ $_->{id} } for $s->below($n); delete $s->{nodes}{ $n->{id} }; $s->unlink_node($n) if !defined $n->{parent} || $s->{nodes}{ $n->{parent} }; return }

sub new_session {
    my ($s, $q, $l) = @_;
    my $token = sprintf 'fake.%s.%d', $l->{id}, ++$s->{next_id};
    $s->{tokens}{$token} = { login => $l, born => time };
    $q->{log}{login} = $l->{email};
    return $s->reply($q, 200, { user => { id => $l->{id}, email => $l->{email}, name => $l->{name}, created_at => FakeDrive::Server::stamp(time), mfa_enabled => $NO } },
        'Set-Cookie' => "token=$token; Max-Age=604800; Path=/; HttpOnly; SameSite=Lax");
}

sub file_part { my ($q, $field) = @_; return grep { ($_->{name} // '') eq $field && defined $_->{filename} } FakeDrive::Server::parts($q) }
sub text_part { my ($q, $field) = @_; my ($p) = grep { ($_->{name} // '') eq $field && !defined $_->{filename} } FakeDrive::Server::parts($q); return $p && length $p->{value} ? $p->{value} : undef }
sub bad_file_name { my ($name) = @_; return !length $name || length $name > 255 || $name =~ /\.\.|$BARRED/ || $name =~ /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i }

sub taken_in {
    my ($s, $q, $parent, $part) = @_;
    my $n = $s->add($q->{a}, 'file', $parent, $part->{filename}, $part->{value});
    $s->{seen}{uploads}++;
    $s->emit($q->{a}, 'file.uploaded', $s->about($n, size => $s->size_of($n), mimeType => 'text/plain'));
    return $n;
}

my %COMMON = (
    'GET signup-status' => sub { my ($s, $q) = @_; $s->reply($q, 200, { signupEnabled => $s->{closed} ? $NO : $YES }) },
    'POST signup' => sub {
        my ($s, $q) = @_;
        my ($email, $name) = (lc($q->{json}{email} // ''), $q->{json}{name});
        return $s->fail($q, 403, 'Signup is currently disabled') if $s->{closed};
        return $s->invalid($q, 'Invalid email') if $email !~ /^[^@\s]+\@[^@\s]+\.[^@\s]+$/;
        return $s->fail($q, 409, 'Email already in use') if $s->{logins}{$email};
        my $a = { n => scalar @{ $s->{accounts} }, id => $s->new_id('us'), seq => 0, feed => [], subs => [], streams => {} };
        push @{ $s->{accounts} }, $a;
        $s->{closed} = 1 if !$a->{n}; # the first one is the administrator, and nobody comes after
        my $l = $s->{logins}{$email} = { email => $email, name => $name, account => $a, owner => 1, id => $a->{id}, password => $q->{json}{password} };
        return $s->new_session($q, $l);
    },
    'POST login' => sub {
        my ($s, $q) = @_;
        return $s->invalid($q, 'Invalid value') if !$q->{json};
        my $l = $s->{logins}{ lc($q->{json}{email} // '') };
        return $s->fail($q, 401, 'Invalid credentials') if !$l || $l->{password} ne ($q->{json}{password} // '');
        return $s->new_session($q, $l);
    },
    'POST logout' => sub { my ($s, $q) = @_; $s->reply($q, 200, { message => 'Logged out' }) },
    'GET profile' => sub { my ($s, $q) = @_; $q->{login} ? $s->reply($q, 200, { id => $q->{login}{id}, email => $q->{login}{email} }) : $s->fail($q, 401, 'No token provided') },
    'POST user/signup-toggle' => sub {
        my ($s, $q) = @_;
        return $s->fail($q, 403, 'Only the first user can toggle signup') if $q->{login}{account}{n};
        $s->{closed} = !$q->{json}{enabled};
        $s->reply($q, 200, { signupEnabled => $s->{closed} ? $NO : $YES });
    },
    'GET user/storage' => sub {
        my ($s, $q) = @_;
        my $used = 0;
        $used += length $_->{body} for grep { $_->{account} == $q->{a} && $_->{type} eq 'file' } values %{ $s->{nodes} };
        $s->reply($q, 200, { used => $used, total => 1 << 40, free => (1 << 40) - $used });
    },
    'POST user/client-heartbeat' => sub {
        my ($s, $q) = @_;
        my $version = $q->{json}{appVersion} or return $s->fail($q, 400, 'appVersion is required');
        Sim::psql($s->{c}{database}, "INSERT INTO client_heartbeats (user_id, app_version) VALUES ('$q->{a}', '$version')") if $s->{c}{database};
        return $s->reply($q, 200, { ok => $YES });
    },
    'GET files/stats' => sub {
        my ($s, $q) = @_;
        my @n = $s->live($q);
        $s->reply($q, 200, { totalFiles => scalar(grep { $_->{type} eq 'file' } @n), totalFolders => scalar(grep { $_->{type} ne 'file' } @n), sharedCount => 0,
            starredCount => scalar(grep { $_->{starred} } @n) });
    },
    'GET files/starred' => sub { my ($s, $q) = @_; $s->reply($q, 200, [ map { $s->item($_) } grep { $_->{starred} } $s->live($q) ]) },
    'GET files/search' => sub {
        my ($s, $q) = @_;
        my $want = $q->{q}{q} // $q->{q}{query} // '';
        return $s->fail($q, 400, 'Invalid search query') if !length $want;
        $s->reply($q, 200, [ map { { %{ $s->item($_) }, parentId => $_->{parent} } } grep { index(lc $_->{name}, lc $want) == 0 } $s->live($q) ]);
    },
    'GET files/trash' => sub {
        my ($s, $q) = @_;
        my @top = grep { $_->{account} == $q->{a} && $_->{trash_top} } values %{ $s->{nodes} };
        $s->reply($q, 200, [ map { { %{ $s->item($_) }, deletedAt => FakeDrive::Server::stamp(time), parentId => $_->{parent} } } @top ]);
    },
    'GET files/([^/]+)/info' => sub {
        my ($s, $q, $id) = @_;
        my $n = $s->node($q, $id) or return;
        my $info = { %{ $s->item($n) }, parentId => $n->{parent}, locationPath => [] };
        if ($n->{type} eq 'folder') {
            my @in = $s->below($n);
            my $bytes = 0;
            $bytes += length $_->{body} for grep { $_->{type} eq 'file' } @in;
            $info->{folderInfo} = { totalSize => $bytes, fileCount => scalar(grep { $_->{type} eq 'file' } @in), folderCount => scalar(grep { $_->{type} ne 'file' } @in) };
        }
        $s->reply($q, 200, $info);
    },
    'POST files/upload/check' => sub { my ($s, $q) = @_; $s->reply($q, 200, { allowed => $YES }) },
    'POST files/upload' => sub {
        my ($s, $q) = @_;
        my ($file) = file_part($q, 'file') or return $s->fail($q, 400, 'No file uploaded');
        return $s->fail($q, 400, 'Invalid file name') if bad_file_name($file->{filename});
        my $parent = text_part($q, 'parentId');
        return $s->fail($q, 400, 'Invalid reference', 'INVALID_REFERENCE') if $parent && !$s->{nodes}{$parent};
        $s->reply($q, 200, $s->item($s->taken_in($q, $parent, $file)));
    },
    'POST files/upload/bulk' => sub {
        my ($s, $q) = @_;
        my @files = file_part($q, 'files');
        return $s->fail($q, 400, 'No files uploaded') if !@files;
        for (@files) { return $s->fail($q, 400, "Invalid file name: $_->{filename}") if bad_file_name($_->{filename}) }
        my @ids = map { $_->{value} } grep { $_->{name} eq 'clientIds' } FakeDrive::Server::parts($q);
        my $parent = text_part($q, 'parentId');
        my @made = map { $s->item($s->taken_in($q, $parent, $_)) } @files;
        $made[$_]{clientId} = $ids[$_] for grep { defined $ids[$_] } 0 .. $#made;
        $s->reply($q, 200, { files => \@made, total => scalar @made, successful => scalar @made, failedCount => 0 });
    },
    'POST files/([^/]+)/replace' => sub {
        my ($s, $q, $id) = @_;
        my $n = $s->node($q, $id) or return;
        my ($file) = file_part($q, 'file') or return $s->fail($q, 400, 'No file uploaded');
        @$n{qw(body modified)} = ($file->{value}, time);
        $s->{seen}{replaced}++;
        $s->emit($q->{a}, 'file.updated', $s->about($n, size => $s->size_of($n)));
        $s->reply($q, 200, { %{ $s->item($n) }, parentId => $n->{parent} });
    },
    'POST files/folder' => sub {
        my ($s, $q) = @_;
        my $name = $q->{json}{name} // '';
        $name =~ s/^\s+|\s+$//g;
        my $parent = $q->{json}{parentId};
        return $s->invalid($q, 'Name must be between 1 and 100 characters') if !length $name || length $name > 100 || $name =~ $BARRED;
        return $s->fail($q, 400, 'Invalid reference', 'INVALID_REFERENCE') if defined $parent && !$s->{nodes}{$parent};
        my $n = $s->add($q->{a}, 'folder', $parent, $name);
        $n->{name} = $name if !$s->unique_folders;
        my $event = $s->about($n);
        delete $event->{parentId} if !exists $q->{json}{parentId};
        $s->emit($q->{a}, 'folder.created', $event);
        $s->reply($q, 200, $s->item($n));
    },
    'POST files/rename' => sub {
        my ($s, $q) = @_;
        my $n = $s->{nodes}{ $q->{json}{id} // '' };
        return $s->fail($q, 404, 'Not found') if !$n || $n->{account} != $q->{a};
        @$n{qw(name modified)} = ($q->{json}{name}, time);
        $s->emit($q->{a}, 'file.renamed', $s->about($n, oldName => $n->{name}));
        $s->reply($q, 200, { %{ $s->item($n) }, parentId => $n->{parent} });
    },
    'POST files/star' => sub {
        my ($s, $q) = @_;
        for my $n ($s->asked($q)) { $n->{starred} = $q->{json}{starred} ? 1 : 0; $s->emit($q->{a}, 'file.starred', $s->about($n, starred => $q->{json}{starred})) }
        $s->reply($q, 200, { message => 'Files updated.' });
    },
    'GET files/events' => sub {
        my ($s, $q) = @_;
        my ($c, $a) = ($q->{c}, $q->{a});
        return $s->reply($q, 429, { error => 'Too many active connections. Please close some tabs.' })
            if $s->{c}{streams_per_login} <= grep { $_->{stream}{login} == $q->{login} } values %{ $a->{streams} };
        $q->{log}{status} = 200;
        $c->{stream} = { account => $a, login => $q->{login} };
        $a->{streams}{ $c->{fd} } = $c;
        $s->{seen}{streams}++;
        $s->send_raw($c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: keep-alive\r\n\r\n"
            . "data: {\"type\":\"connected\",\"message\":\"Connected to file events stream\"}\n\n", 1);
        my $beat;
        $beat = sub { return if $c->{gone}; $s->send_raw($c, ": keepalive\n\n", 1); $s->after($s->{c}{keepalive}, $beat) };
        $s->after($s->{c}{keepalive}, $beat);
    },
);
sub common { return \%COMMON }

# ---- v2: everything is done when the answer comes; nothing is locked, paged or told by id ---------------------------

package FakeTma::V2;
use strict;
use warnings;
use Time::HiRes qw(time);
our @ISA = ('FakeTma::Server');

sub field { return 'undefined' } # the field's name is lost on the way
sub size_of { my ($s, $n) = @_; return '' . length $n->{body} }
sub unique_folders { return 0 }
sub wants_csrf { return 0 }

my %V2 = (
    %{ FakeTma::Server->common },
    # Whole folders, in no grouped order; an id of nothing is an empty folder.
    'GET files' => sub {
        my ($s, $q) = @_;
        my $parent = length($q->{q}{parentId} // '') ? $q->{q}{parentId} : undef;
        my $n = defined $parent ? $s->{nodes}{$parent} : undef;
        return $s->reply($q, 200, []) if defined $parent && (!$n || $n->{account} != $q->{a} || $n->{trashed});
        $s->reply($q, 200, [ map { { %{ $s->item($_) }, path => $_->{type} eq 'file' ? "$_->{id}.bin" : undef } }
            sort { $b->{modified} <=> $a->{modified} || $a->{id} cmp $b->{id} } values %{ $s->kids($q->{a}, $parent) } ]);
    },
    'GET files/([^/]+)/download' => sub {
        my ($s, $q, $id) = @_;
        my $n = $s->{nodes}{$id};
        return $s->fail($q, 404, 'File not found') if !$n || $n->{account} != $q->{a};
        $s->reply($q, 200, $n->{body}, type => 'application/octet-stream', 'Content-Disposition' => 'attachment'); # the range is not looked at
    },
    'POST files/move' => sub {
        my ($s, $q) = @_;
        my $to = $s->{nodes}{ $q->{json}{parentId} // '' };
        for my $n ($s->asked($q)) {
            $s->unlink_node($n) if !$n->{trashed};
            $n->{parent} = $to && $to->{id};
            $s->link_node($n) if !$n->{trashed};
            $s->emit($q->{a}, 'file.moved', $s->about($n, targetFolderName => $to ? $to->{name} : 'Root'));
        }
        $s->reply($q, 200, { message => 'Files moved successfully.' });
    },
    # Neither the answer nor, at the top level, an event names the copy; elsewhere the event names whoever had the name first.
    'POST files/copy' => sub {
        my ($s, $q) = @_;
        my $to = $q->{json}{parentId};
        for my $n (grep { !$_->{trashed} } $s->asked($q)) {
            my $copy = $s->copy_tree($n, $to);
            my ($named) = sort { $a->{id} cmp $b->{id} } grep { $_->{name} eq $n->{name} } values %{ $s->kids($q->{a}, $to) };
            $s->emit($q->{a}, 'file.copied', $s->about($named // $copy)) if defined $to;
        }
        $s->reply($q, 200, { message => 'Files copied successfully.' });
    },
    'POST files/delete' => sub { # of which no stream hears
        my ($s, $q) = @_;
        $s->to_trash($_) for grep { !$_->{trashed} } $s->asked($q);
        $s->reply($q, 200, { message => 'Files moved to trash.' });
    },
    'POST files/trash/delete' => sub {
        my ($s, $q) = @_;
        for my $n ($s->asked($q)) { $s->purge($n); $s->emit($q->{a}, 'file.permanently_deleted', $s->about($n, permanent => 1)) }
        $s->reply($q, 200, { message => 'Files permanently deleted.' });
    },
);
sub routes { return \%V2 }

# ---- late v3: pages, sub-users, queued work -------------------------------------------------------------------------

package FakeTma::V3;
use strict;
use warnings;
use JSON::PP;
use Time::HiRes qw(time);
our @ISA = ('FakeTma::Server');

sub field { return 'name' }
sub size_of { my ($s, $n) = @_; return length $n->{body} }
sub unique_folders { return 1 }
sub wants_csrf { return 1 }
sub within_budget { return 1 }

# One frame for all that a call may do to several items.
sub emit {
    my ($s, $a, $type, $data) = @_;
    return $s->SUPER::emit($a, $type, $data) if $type =~ /^(?:file\.(?:uploaded|updated|renamed)|folder\.created)$/;
    return $s->SUPER::emit($a, 'file.batch', { events => [ { type => $type, timestamp => FakeDrive::Server::stamp(time), data => $data } ] });
}

# Work for the queue: its end is told by the job, and by an event that names nothing.
sub queue {
    my ($s, $q, $message, $action, $work) = @_;
    my $job = { id => sprintf('00000000-0000-4000-8000-%012d', ++$s->{next_id}), account => $q->{a} };
    $s->{jobs}{ $job->{id} } = $job;
    $s->after(0.05, sub {
        $job->{ids} = [ $work->() ];
        $job->{done} = 1;
        $s->emit($q->{a}, $action eq 'trash' ? 'file.deleted' : 'file.permanently_deleted', { userId => $q->{a}{id}, action => $action, count => scalar @{ $job->{ids} } })
            if $action ne 'copy';
    });
    return $s->reply($q, 202, { message => $message, queued => JSON::PP::true, jobId => $job->{id} });
}

# All of those asked for, or none after a 404.
sub all_asked {
    my ($s, $q) = @_;
    my @n = grep { !$_->{trashed} } $s->asked($q);
    return @n if @n == @{ $q->{json}{ids} // [] };
    $s->fail($q, 404, 'File not found');
    return;
}

my %V3 = (
    %{ FakeTma::Server->common },
    'GET user/sub-users' => sub {
        my ($s, $q) = @_;
        my @all = map { "files.$_" } qw(download upload edit share delete trash);
        $s->reply($q, 200, { subUsers => [ map { { id => $_->{id}, email => $_->{email}, name => $_->{name}, permissions => $_->{permissions} } } @{ $q->{a}{subs} } ], availablePermissions => \@all });
    },
    'POST user/sub-users' => sub {
        my ($s, $q) = @_;
        my $j = $q->{json};
        return $s->fail($q, 409, 'Email already in use') if $s->{logins}{ lc $j->{email} };
        my $l = { email => lc $j->{email}, name => $j->{name}, account => $q->{a}, id => $s->new_id('us'), password => $j->{password}, permissions => $j->{permissions} };
        push @{ $q->{a}{subs} }, $l;
        $s->{logins}{ $l->{email} } = $l;
        $s->reply($q, 201, { subUser => { id => $l->{id}, email => $l->{email}, name => $l->{name}, permissions => $l->{permissions} } });
    },
    'GET user/storage-config' => sub { my ($s, $q) = @_; $s->reply($q, 200, { provider => 's3', endpoint => 'http://127.0.0.1:1', bucket => 'there', version => 1 }) },
    'GET files' => sub {
        my ($s, $q) = @_;
        my $parent = length($q->{q}{parentId} // '') ? $q->{q}{parentId} : undef;
        return if defined $parent && !$s->node($q, $parent);
        my @all = sort { ($b->{type} eq 'folder') <=> ($a->{type} eq 'folder') || $a->{name} cmp $b->{name} || $a->{id} cmp $b->{id} } values %{ $s->kids($q->{a}, $parent) };
        my ($limit, $from) = ($q->{q}{limit} // 200, ($q->{q}{cursor} // '') =~ /^p(\d+)$/ ? $1 : 0);
        $limit = $s->{c}{page_most} if $limit > $s->{c}{page_most};
        my $more = @all > $from + $limit;
        $s->reply($q, 200, [ map { { %{ $s->item($_) }, parentId => $_->{parent} } } splice @all, $from, $limit ], $more ? ('X-Next-Cursor' => 'p' . ($from + $limit)) : ());
    },
    'GET files/recent' => sub { my ($s, $q) = @_; my @f = grep { $_->{type} eq 'file' } $s->live($q); $s->reply($q, 200, [ map { $s->item($_) } splice @f, 0, $q->{q}{limit} // 10 ]) },
    'GET files/([^/]+)/download' => sub {
        my ($s, $q, $id) = @_;
        my $n = $s->node($q, $id) or return;
        my %h = (type => 'application/octet-stream', ETag => sprintf('W/"%s-%x"', $n->{id}, $n->{modified} * 1000), 'Accept-Ranges' => 'bytes');
        my ($from, $to) = ($q->{h}{range} // '') =~ /^bytes=(\d+)-(\d*)$/ or return $s->reply($q, 200, $n->{body}, %h);
        my $last = length($n->{body}) - 1;
        $to = $last if !length $to || $to > $last;
        $s->reply($q, 206, substr($n->{body}, $from, $to - $from + 1), %h, 'Content-Range' => "bytes $from-$to/" . length $n->{body});
    },
    'POST files/move' => sub {
        my ($s, $q) = @_;
        my @n = $s->all_asked($q) or return;
        return if defined $q->{json}{parentId} && !$s->node($q, $q->{json}{parentId});
        for my $n (@n) {
            $s->unlink_node($n);
            $n->{name} = $s->free_name($q->{a}, $q->{json}{parentId}, $n->{name});
            $n->{parent} = $q->{json}{parentId};
            $s->link_node($n);
            $s->emit($q->{a}, 'file.moved', $s->about($n));
        }
        $s->reply($q, 200, { message => 'Files moved successfully.' });
    },
    'POST files/copy' => sub {
        my ($s, $q) = @_;
        my @n = $s->all_asked($q) or return;
        my $to = $q->{json}{parentId};
        return $s->queue($q, 'Copy queued.', 'copy', sub {
            my @copies = map { $s->copy_tree($_, $to) } @n;
            $s->emit($q->{a}, 'file.copied', $s->about($_)) for @copies;
            return map { $_->{id} } @copies;
        });
    },
    'POST files/delete' => sub {
        my ($s, $q) = @_;
        my @n = $s->all_asked($q) or return;
        my $items = @n + map { $s->below($_) } @n;
        return $s->queue($q, 'Moving to trash queued.', 'trash', sub { $s->to_trash($_) for @n; return map { $_->{id} } @n }) if $items > $s->{c}{queue_above};
        for my $n (@n) { $s->to_trash($n); $s->emit($q->{a}, 'file.deleted', $s->about($n)) }
        $s->reply($q, 200, { message => 'Files moved to trash.' });
    },
    'POST files/trash/delete' => sub {
        my ($s, $q) = @_;
        my @n = grep { $_->{trashed} } $s->asked($q);
        return $s->queue($q, 'Permanent deletion queued.', 'delete-permanently', sub { $s->purge($_) for @n; return map { $_->{id} } @n });
    },
    'GET files/jobs/([^/]+)' => sub {
        my ($s, $q, $id) = @_;
        my $job = $s->{jobs}{$id};
        return $s->fail($q, 404, 'Job not found') if !$job || $job->{account} != $q->{a};
        return $s->reply($q, 202, { jobId => $id, status => 'active' }) if !$job->{done};
        $s->reply($q, 200, { jobId => $id, status => 'completed', result => { count => scalar @{ $job->{ids} }, ids => $job->{ids} } });
    },
);
sub routes { return \%V3 }

1;
