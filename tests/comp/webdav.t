# The webdav dialect against servers that answer oddly: tags that no condition holds with, hrefs as they should not be,
# failures inside a 207, redirects.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use FakeDav;
use File::Temp qw(tempdir);
use Sim;

my $dir = tempdir(CLEANUP => 1);
sub run_on {
    my ($d, @args) = @_;
    unlink "$dir/json";
    my $r = sim([ @args, '--json', "$dir/json" ], dir => $dir, env => { TMA_URL => $d->url });
    $r->{json} = -s "$dir/json" ? json_file("$dir/json") : {};
    $r->{check} = { map { $_->{name} => $_ } @{ $r->{json}{checks} // [] } };
    return $r;
}
sub seeded {
    my $d = FakeDav->new(@_);
    my $r = run_on($d, qw(seed 0 0.002));
    is $r->{status}, 0, 'seeded' or diag $r->{out}, $r->{err};
    return $d;
}
spew("$dir/saves", "save 1\n");

# ---- K03: tags that are weak for ever
{
    my $d = seeded(etags => 'weak');
    my $r = run_on($d, qw(run 1 2 60 2 --mix), "$dir/saves");
    is $r->{status}, 1, 'K03: no save can work';
    like $r->{out}, qr/no usable strong validator: If-Match never holds with the tag W\//, 'K03: and that is the reason told';
    my ($saves) = grep { $_ } map { $_->{failed} } $r->{json}{operations}{save};
    my $puts = $d->count(qr{^PUT }) - 16;
    my @conditions = map { $_->{headers}{'if-match'} } grep { $_->{method} eq 'PUT' && $_->{headers}{'if-match'} } @{ $d->log };
    cmp_ok scalar(@conditions), '<=', 5 * ($saves + 1), 'K03: after five tries each';
    is scalar(grep { !/^"[^",]+"$/ } @conditions), 0, 'K03: with exactly one strong tag';
    is scalar(grep { ($_->{headers}{'accept-encoding'} // '') ne 'identity' } @{ $d->log }), 0, 'K03: asking for identity encoding';
    $d = seeded(etags => 'gzip');
    $r = run_on($d, qw(run 1 2 60 2 --mix), "$dir/saves");
    is $r->{status}, 0, 'K03: a "-gzip" tag is tried without its end' or diag $r->{out};
    cmp_ok $r->{json}{operations}{save}{ok}, '>', 0, 'K03: and holds';
    $d = seeded(etags => 'fresh');
    $r = run_on($d, qw(run 1 1 120 2 --mix), "$dir/saves");
    is $r->{status}, 0, 'K03: a tag that is weak for a second is waited out' or diag $r->{out};
    is $r->{json}{operations}{save}{failed}, 0, 'K03: without a failure';
    $d = seeded(etags => 'none');
    $r = run_on($d, qw(run 1 2 60 1s));
    is $r->{status}, 0, 'no tags at all';
    like $r->{out}, qr/no versions: saves unconditionally/, 'is a fallback, and said';
}

# ---- servers that want a folder's path with its slash (RFC 4918, 5.2), and give tokens without brackets
{
    my $d = seeded(strict => 1);
    my $r = run_on($d, 'bulk');
    is $r->{status}, 0, 'a folder is copied and deleted by its path with a slash' or diag $r->{out}, $r->{err};
    $r = run_on($d, qw(run 1 2 60 2 --mix), "$dir/saves");
    is $r->{status}, 0, 'saves under locks whose tokens come bare' or diag $r->{out}, $r->{err};
    cmp_ok $r->{json}{operations}{lock}{ok} // 0, '>', 0, 'locks were had';
}

# ---- C14: hrefs
for my $hrefs (qw(raw absolute)) {
    my $d = seeded(hrefs => $hrefs);
    my @odd = ('This & that', 'example[a].txt', 'a+b', '100%.txt', 'a%b', "caf\xc3\xa9");
    $d->put('/drivesim-load/odd');
    $d->put("/drivesim-load/odd/$_", 'x') for @odd;
    my $want = scalar(keys %{ $d->tree }) - 3; # the root, the place and its marker
    my $r = run_on($d, 'check');
    is $r->{status}, 0, "C14: $hrefs hrefs" or diag $r->{out}, $r->{err};
    like $r->{out}, qr/structure\s+$want entries, 0 wrong/, "C14: $hrefs: every entry, once";
}

# ---- C14: what is no entry of its folder
{
    my $d = seeded();
    my $want = scalar(keys %{ $d->tree }) - 3;
    $d->put("/drivesim-load/$_", 'x') for '..', "a\0b";
    my $r = run_on($d, 'check');
    is $r->{status}, 0, 'C14: names that lead elsewhere' or diag $r->{out}, $r->{err};
    like $r->{err}, qr/entries that are not in its folder: they are left out/, 'C14: are told';
    like $r->{out}, qr/structure\s+$want entries, 0 wrong/, 'C14: and left out';
}

# ---- X07: a slash that the server insists on; what it makes of the Destination
{
    my $d = seeded(slash => 1);
    spew("$dir/moves", "move 2\ncopy 2\nrename 1\n"); # in so few folders many names are taken
    my $r = run_on($d, qw(run 4 2 300 2 --seed 2 --mix), "$dir/moves");
    is $r->{status}, 0, 'X07: a folder without its slash is asked for again' or diag $r->{out};
    my @to = map { $_->{headers}{destination} } grep { $_->{headers}{destination} } @{ $d->log };
    my $c = run_on($d, 'check', '--run', $r->{json}{run_dir});
    is $c->{status}, 0, 'what was moved, copied and renamed is found by another process' or diag $c->{out}, $c->{err};
    cmp_ok scalar(@to), '>', 0, 'X07: things were moved';
    is scalar(grep { index($_, $d->origin . '/dav/drivesim-load/') != 0 } @to), 0, 'X07: Destination is absolute and shares the base';
    is scalar(grep { $_->{status} == 502 } @{ $d->log }), 0, 'X07: never another host';
    is scalar(grep { ($_->{headers}{overwrite} // '') ne 'F' } grep { $_->{headers}{destination} } @{ $d->log }), 0, 'S03: nothing is overwritten';
}

# ---- X08: a redirect
{
    my $other = FakeDav->new;
    my $d = FakeDav->new(redirect => $other->origin);
    my $r = run_on($d, qw(seed 0 0.002));
    is $r->{status}, 3, 'X08: a server that redirects';
    like $r->{err}, qr/redirects to \Q@{[ $other->origin ]}\E.*set TMA_URL/, 'X08: the right URL is named';
    is scalar(@{ $other->log }), 0, 'X08: nothing went to the other host';
    $d = seeded();
    $d->rule(method => 'PUT', status => 301, headers => [ 'Location: ' . $other->origin . '/x' ]);
    $r = run_on($d, qw(run 1 2 60 1s --mix), "$dir/saves");
    is $r->{status}, 1, 'X08: a write that is redirected has failed';
    is scalar(@{ $other->log }), 0, 'X08: and is sent nowhere else';
}

# ---- a 207 is read item by item
{
    my $d = seeded();
    spew("$dir/trash", "trash 1\n");
    $d->rule(method => 'DELETE', status => 207, body => '<d:multistatus xmlns:d="DAV:"><d:response><d:href>/dav/drivesim-load/x</d:href>'
        . '<d:status>HTTP/1.1 500 Internal</d:status></d:response></d:multistatus>');
    my $r = run_on($d, qw(run 1 2 60 1s --mix), "$dir/trash");
    is $r->{status}, 1, 'a failure inside a 207 is a failure';
    like $r->{out}, qr{trash: 500 \S+ for /dav/drivesim-load/x in a multi-status answer}, 'and names the item';
    my $e = seeded();
    $e->rule(method => 'DELETE', status => 207, body => '<d:multistatus xmlns:d="DAV:"><d:response>');
    $r = run_on($e, qw(run 1 2 60 1s --mix), "$dir/trash");
    is $r->{status}, 1, 'so is a 207 that is cut short';
    $e = seeded();
    $e->rule(method => 'PROPFIND', path => qr{drivesim-load/.}, status => 207,
        body => '<!DOCTYPE x [<!ENTITY a "b">]><d:multistatus xmlns:d="DAV:">&a;</d:multistatus>');
    $r = run_on($e, 'check');
    isnt $r->{status}, 0, 'a document type is refused';
}

# ---- K09: a lock on a name that is gone makes no empty file
{
    my $d = seeded();
    $d->rule(method => 'LOCK', status => 412);
    my $r = run_on($d, qw(run 2 3 120 2 --mix), "$dir/saves");
    isnt $r->{status}, 2, 'K09: locks refused by their condition';
    is scalar(grep { $_->{method} eq 'LOCK' && ($_->{headers}{'if-match'} // '') ne '*' } @{ $d->log }), 0, 'K09: a lock is asked for what is there';
}

# ---- K05: no lock outlives the run, whichever answer was lost
for my $lost ([ LOCK => drop => 1 ], [ UNLOCK => drop => 1 ], [ UNLOCK => status => 503 ]) {
    my ($method, $how, $arg) = @$lost;
    my $d = seeded();
    $d->rule(method => $method, $how => $arg, times => 2);
    my $r = run_on($d, qw(run 1 2 120 2 --mix), "$dir/saves");
    cmp_ok $d->count(qr/^$method /), '>=', 2, "K05: $method, $how: it was lost";
    is_deeply $d->locks, {}, "K05: $method, $how: and no lock is left" or diag $r->{out};
    is $r->{json}{operations}{unlock}{failed}, 0, "K05: $method, $how: letting go did not fail" or diag $r->{out};
}

# ---- K05: clean, where locks are in its way
{
    my $d = seeded();
    my ($file) = grep { m{/.+/.+/} && $d->tree->{$_} >= 0 } sort keys %{ $d->tree };
    $d->lock($file, 'drivesim of another day', 3600);
    my $r = run_on($d, qw(clean --yes));
    is $r->{status}, 0, 'K05: clean lets a lock of ours go' or diag $r->{out}, $r->{err};
    is_deeply [ keys %{ $d->locks } ], [], 'K05: it is gone';
    is_deeply [ grep { length } keys %{ $d->tree } ], [], 'K05: and the tree';
    $d = seeded();
    $d->lock($file, 'carol', 2);
    $r = run_on($d, qw(clean --yes));
    is $r->{status}, 0, q(K05: somebody else's is waited for) or diag $r->{out}, $r->{err};
    like $r->{out}, qr{/\S.*, held by carol: waiting for the lock to lapse, at most \d}, 'K05: which is said';
    $d = seeded();
    $d->lock($file, 'carol', 3600);
    $r = run_on($d, qw(clean --yes));
    is $r->{status}, 1, 'K05: but not for an hour';
    like $r->{out}, qr{not removed: drivesim's folder of ann: 42[34] /\S.*, held by carol, for another .*: let it go, then clean again}, 'K05: who holds it, and how long';
    is $d->locks->{$file}, 'carol', 'K05: and it is left alone';
}

# ---- U07: acknowledged, and stored as nothing
{
    my $d = FakeDav->new(empty => 1);
    my $r = run_on($d, qw(seed 0 0.002));
    isnt $r->{status}, 0, 'U07: uploads that are stored as nothing';
    like $r->{out} . $r->{err}, qr/bytes were sent, \S+ are stored/, 'U07: do not pass';
}

# ---- no locks: by version alone
{
    my $d = seeded(locks => 0);
    my $r = run_on($d, qw(run 2 2 120 2 --mix), "$dir/saves");
    is $r->{status}, 0, 'a server of class 1' or diag $r->{out};
    like $r->{out}, qr/no edit locks: saves by version alone/, 'the fallback is said';
    is $d->count(qr/^LOCK/), 0, 'no lock is asked for';
}

# ---- options
{
    my $d = FakeDav->new;
    my %wrong = (
        'an unknown dialect' => [ [ '--dialect', 'ftp' ], $d->url, qr/--dialect takes one of tma, webdav/ ],
        'a dialect that does not fit' => [ [ '--dialect', 'tma' ], $d->url, qr/webdav:\/\/ is no URL of the dialect tma/ ],
        'a users file that is not there' => [ [ '--users', '/nonexistent' ], $d->url, qr/cannot read \/nonexistent/ ],
        'users of a server that signs up its own' => [ [ '--users', "$dir/users" ], 'http://127.0.0.1:1', qr/--users is for servers that sign nobody up/ ],
        'another host' => [ [], 'webdav://a:b@dav.example.org/', qr/--allow-host dav\.example\.org/ ],
        'production' => [ [], 'webdav://a:b@prod.example.org/', qr/production/ ],
    );
    spew("$dir/users", "a:b\n");
    for my $what (sort keys %wrong) {
        my ($args, $url, $says) = @{ $wrong{$what} };
        my $r = sim([ 'seed', 0, '0.002', @$args ], dir => $dir, env => { TMA_URL => $url });
        like $r->{err}, $says, $what;
        unlike $r->{err}, qr/a:b/, "$what: no password in it";
        cmp_ok $r->{status}, '>=', 2, "$what: before anything is done";
    }
    is scalar(@{ $d->log }), 0, 'nothing was asked';
}

done_testing;
