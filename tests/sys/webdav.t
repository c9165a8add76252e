# WebDAV servers that others wrote: the whole path of seed, run, bigfiles, bulk, refusals, reads, check and clean on each,
# small. What one app has locked is a conflict for the others, and nobody's work is lost.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Dav;
use File::Temp qw(tempdir);
use Sim;

my %USERS = (ann => 'secret word', bob => 'pass:two', eve => "q\@x/\xc3\xa4");
my @SERVERS = grep { Dav->can("has_$_")->() } qw(apache lighttpd);
is_deeply \@SERVERS, [qw(apache lighttpd)], 'both servers are installed' or diag 'make deps';

for my $kind (@SERVERS) {
    my $d = Dav->$kind(users => \%USERS);
    my $dir = tempdir(CLEANUP => 1);
    my @users = ('--users', $d->users_file);
    my $sim = sub {
        my @args = @_;
        my $r = sim([ @args, '--json', "$dir/json" ], dir => $dir, env => { TMA_URL => $d->url('ann') });
        $r->{json} = -s "$dir/json" ? json_file("$dir/json") : {};
        $r->{check} = { map { $_->{name} => $_ } @{ $r->{json}{checks} // [] } };
        unlike $r->{out} . $r->{err}, qr/secret|pass:two/, "$kind: $args[0]: no password is printed";
        return $r;
    };
    my $ok = sub { my ($r, $what) = @_; return is($r->{status}, 0, "$kind: $what") || diag "$r->{out}$r->{err}" . $d->log };

    # ---- seed, twice
    my $r = $sim->('seed', 2, 0.01, @users);
    $ok->($r, 'seed');
    is_deeply [ @{ $r->{json}{tree} }{qw(folders files)} ], [ 22, 168 ], "$kind: the tree of that scale";
    ok -e $d->files . '/drivesim-load/made-by-drivesim.txt', "$kind: in one folder, which is marked";
    is scalar(() = glob $d->files . '/*'), 1, "$kind: and nowhere else";
    is $r->{check}{aggregates}{status}, 'not_run', "$kind: what needs a database is not run";
    like $r->{check}{aggregates}{summary} // $r->{out}, qr/not offered/, "$kind: and says why";
    is $r->{check}{structure}{status}, 'ok', "$kind: the tree is checked by listing it";
    my $manifest = $r->{json}{tree}{manifest_sha256};
    $r = $sim->('seed', 2, 0.01, @users);
    $ok->($r, 'seed once more');
    like $r->{out}, qr/nothing is missing/, "$kind: S03: what is there already is found, not made again";
    is $r->{json}{tree}{manifest_sha256}, $manifest, "$kind: the same tree";

    # ---- many apps at few folders: they meet
    spew("$dir/mix", "download 26\nsave 55\nupload 7\ntrash 4\nrename 3\ncopy 2\nnew_folder 2\nmove 1\n");
    $r = $sim->('run', 8, 2, 300, 5, '--mix', 'mix', '--poll', '1s', @users);
    $ok->($r, 'run');
    my $op = $r->{json}{operations};
    is $r->{json}{failed}, 0, "$kind: nothing failed";
    my $conflicts = 0;
    $conflicts += $op->{$_}{outcomes}{conflict} // 0 for qw(save lock);
    cmp_ok $conflicts, '>', 0, "$kind: saves met, which is a conflict";
    cmp_ok $op->{save}{ok}, '>', 10, "$kind: and most went through";
    is $r->{check}{$_}{status}, 'ok', "$kind: $_" for qw(structure ledger versions locks changes convergence);
    like $r->{out}, qr/locks\s+\d+ locks? held, 0 wrong; a save .*under another login's lock w\w+ refused/, "$kind: K08: the lock holds";
    like $r->{out}, qr/^server: no sign-up: the given logins sign in/m, "$kind: the head of the report names the fallbacks";
    my $run = $r->{json}{run_dir};
    $r = $sim->('check', '--run', $run, @users);
    $ok->($r, 'check of that run, by another process');
    is $r->{check}{$_}{status}, 'ok', "$kind: $_ again" for qw(ledger versions changes);

    # ---- something acknowledged is lost: the check names it
    my (%named, $lost);
    push @{ $named{ m{([^/]+)$} && $1 } }, $_ for split /\n/, qx(find '@{[ $d->files ]}' -type f);
    ($lost) = map { @{ $named{$_} } } grep { @{ $named{$_} } == 1 && /^Upload [^ ]+$/ } sort keys %named; # no copy of one
    my $kept = slurp($lost);
    unlink $lost or die $!;
    $r = $sim->('check', '--run', $run, @users);
    is $r->{status}, 1, "$kind: an upload that is gone is found";
    is scalar(grep { $r->{check}{$_}{status} eq 'violated' } qw(ledger changes)) > 0, 1, "$kind: by what was acknowledged";
    spew($lost, $kept);

    # ---- the other scenarios
    $r = $sim->('bigfiles', 3, 3, @users);
    $ok->($r, 'bigfiles');
    is $r->{json}{downloads}{ok}, 3, "$kind: each came back";
    $r = $sim->('bulk', @users);
    $ok->($r, 'bulk');
    unlike $r->{out}, qr/delete for good/, "$kind: without a trash a deletion is for good";
    $r = $sim->(qw(refusals --tries 2 --within 30s --background 0), @users);
    $ok->($r, 'refusals');
    is $r->{json}{refusals}{$_}{verdict}, 'ok', "$kind: $_"
        for qw(call_locked_save call_locked_lock call_stale_version call_name_taken call_wrong_password);
    $r = $sim->(qw(reads --times 2 --background 0), @users);
    $ok->($r, 'reads');
    cmp_ok $r->{json}{reads}{list_hot}{rows}, '>', 20, "$kind: the largest folder";
    like $r->{json}{reads}{search_word}{why}, qr/not offered/, "$kind: no search";

    # ---- K04: comparison as the dialect relies on it, asked by hand
    my $http = sub {
        my ($method, $name, $header) = @_;
        return qx(curl -s -o /dev/null -w '%{http_code}' --anyauth -u 'ann:secret word' -X $method -H '$header' --data-binary x '@{[ $d->http_url ]}/drivesim-load/$name');
    };
    is join(' ', map { $http->(@$_) } [ 'PUT', 'k04', 'If-Match: *' ], [ 'PUT', 'k04', 'If-None-Match: *' ], [ 'PUT', 'k04', 'If-None-Match: *' ]),
        '412 201 412', "$kind: K04: an upload does not replace, a save makes nothing";
    unlink $d->files . '/drivesim-load/k04';

    # ---- odd names, made behind its back (C14): all are listed, and none twice
    my @odd = ('This & that', 't #:?3.txt', 't #;?3.txt', '100%.txt', '100%25.txt', 'a+b', 'example[a].txt', "e\xcc\x81", "\xc3\xa9",
        'x' x 255, "\xc3\xa9" x 127, 'ends with a dot.', 'ends with a space ', 'CON', 'a"b\\c', q(it's));
    my $entries = sub { my ($x) = @_; return $x->{out} =~ /structure\s+([\d,]+) entr\w+, 0 wrong/ ? $1 : -1 };
    my $had = $entries->($sim->('check', @users));
    my $folder = $d->files . '/drivesim-load/odd';
    mkdir $folder or die $!;
    spew("$folder/$_", "x\n") for @odd;
    chmod 0777, $folder;
    $r = $sim->('check', @users);
    $ok->($r, 'a folder of odd names');
    is $entries->($r), $had + 1 + @odd, "$kind: C14, U06, U11, U12, U13: each is listed, and once";

    # ---- X07: with and without a slash; --dialect with an http URL
    for my $url ($d->url('ann') . '/', map { s/^webdav/http/r } $d->url('ann')) {
        my $x = sim([ 'check', '--dialect', 'webdav', @users ], dir => $dir, env => { TMA_URL => $url });
        is $x->{status}, 0, "$kind: X07: $kind by another form of the URL" or diag $x->{err};
        is $entries->($x), $had + 1 + @odd, "$kind: the same tree";
    }

    # ---- refused, with a sentence
    my %wrong = (
        'a wrong password' => [ $d->url('ann') =~ s/secret/another/r, 3, qr/does not let ann in/ ],
        'no login' => [ $d->url(''), 3, qr/does not let anonymous in: give user and password/ ],
        'no such path' => [ $d->url('ann') . '/nowhere', 3, qr/is no folder on that server/ ],
        'nothing there' => [ 'webdav://ann:x@127.0.0.1:1/', 3, qr/nothing is listening/ ],
    );
    for my $what (sort keys %wrong) {
        my ($url, $status, $says) = @{ $wrong{$what} };
        my $x = sim([ 'run', 1, 1, 1, '1s' ], dir => $dir, env => { TMA_URL => $url });
        is $x->{status}, $status, "$kind: $what";
        like $x->{err}, $says, "$kind: $what: the sentence";
    }

    # ---- K05: a lock that another login's app left behind
    my ($file) = map { substr $_, length $d->files } split /\n/, qx(find '@{[ $d->files ]}' -name '*.*' -size +0 | grep -v ' ' | sort);
    is qx(curl -s -o /dev/null -w '%{http_code}' --anyauth -u 'bob:pass:two' -X LOCK -H 'Timeout: Second-3600' -H 'Depth: 0' --data-binary '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>drivesim of yesterday</D:owner></D:lockinfo>' '@{[ $d->http_url . $file ]}'),
        200, "$kind: K05: bob holds a file";

    # ---- clean takes away what is ours
    $r = $sim->('clean', '--yes', @users);
    $ok->($r, 'clean');
    is scalar(() = glob $d->files . '/*'), 0, "$kind: nothing is left";
    mkdir $d->files . '/drivesim-load' or die $!;
    spew($d->files . '/drivesim-load/thesis.txt', 'years of work');
    $r = $sim->('seed', 0, 0.01, @users);
    is $r->{status}, 3, "$kind: a folder of that name which is not ours";
    like $r->{err}, qr/is somebody else's/, "$kind: is refused";
    is slurp($d->files . '/drivesim-load/thesis.txt'), 'years of work', "$kind: and not touched";
}

# ---- X12: certificate options reach every connection
if (Dav->has_apache) {
    my $d = Dav->apache(users => \%USERS, tls => 1);
    my $dir = tempdir(CLEANUP => 1);
    my $on = sub { return sim([@_], dir => $dir, env => { TMA_URL => $d->url('ann') }) };
    my $r = $on->(qw(seed 0 0.002));
    is $r->{status}, 3, 'X12: a certificate that nobody vouches for';
    like $r->{err}, qr/no trusted TLS connection.*--cafile FILE, or --insecure/, 'X12: and what to do';
    for my $how ([ '--cafile', $d->cafile ], ['--insecure']) {
        $r = $on->(qw(seed 0 0.002), @$how);
        is $r->{status}, 0, "X12: seed $how->[0]" or diag $r->{out}, $r->{err};
        $r = $on->(qw(run 3 2 120 1s), @$how);
        is $r->{status}, 0, "X12: run $how->[0]: listings, uploads, checks alike" or diag $r->{out}, $r->{err};
    }
}

done_testing;
