# The webdav dialect call by call, against Apache, lighttpd and a scripted cloud: the tests are in live_webdav.c. And what
# the two servers do with a change of case, asked by hand.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Dav;
use FakeDav;
use Live;
use Sim;

for my $kind (grep { Dav->can("has_$_")->() } qw(apache lighttpd)) {
    my $d = Dav->$kind(users => { ann => 'secret word' });
    # lighttpd sweeps lapsed locks once a minute: too long to wait for.
    live($ENV{LIVE_WEBDAV}, $kind, ($kind eq 'apache' ? (DAV_LAPSES => 1) : ()), DAV_URL => $d->http_url =~ s/^http/webdav/r, DAV_USER => 'ann', DAV_PASSWORD => 'secret word',
        DAV_FILES => $d->files);
    my $ask = sub {
        my ($method, $name, @headers) = @_;
        return qx(curl -s -o /dev/null -w '%{http_code}' --anyauth -u 'ann:secret word' -X $method @{[ map { "-H '$_'" } @headers ]} '@{[ $d->http_url ]}/$name');
    };
    my $tag = sub {
        my ($name) = @_;
        my $told = qx(curl -s --anyauth -u 'ann:secret word' -X PROPFIND -H 'Depth: 0' '@{[ $d->http_url ]}/$name') =~ m{getetag[^>]*>([^<]*)<} ? $1 : 'none';
        return $told =~ s/&quot;/"/gr;
    };
    # K04: a weak tag never holds in If-Match, a strong one does; that is what saves rely on.
    spew($d->files . '/k04', 'x');
    chmod 0666, $d->files . '/k04';
    utime time - 60, time - 60, $d->files . '/k04'; # a tag of this second may be weak
    my ($strong) = $tag->('k04') =~ /^("[^"]*")$/ or die "$kind: a file without a strong tag";
    is join(' ', map { $ask->('PUT', 'k04', "If-Match: $_", 'Content-Length: 0') } "W/$strong", '"other"', $strong), '412 412 204', "$kind: K04: weak and strong comparison";

    for my $how ('absent', 'F', 'T') {
        my $what = "$kind: K12: MOVE test to Test, Overwrite: $how";
        mkdir $d->files . '/k12' or die $!;
        chmod 0777, $d->files . '/k12';
        spew($d->files . '/k12/test', "kept\n");
        is $ask->('MOVE', 'k12/test', 'Destination: ' . $d->http_url . '/k12/Test', $how eq 'absent' ? () : "Overwrite: $how"), 201, $what;
        is_deeply [ map { m{([^/]*)$} } glob $d->files . '/k12/*' ], ['Test'], "$what: one entry";
        is slurp($d->files . '/k12/Test'), "kept\n", "$what: its content kept";
        unlink $d->files . '/k12/Test';
        rmdir $d->files . '/k12' or die $!;
    }

    # A folder's ETag says nothing of what is in its files: why the open folders of such a server are listed each time.
    mkdir $d->files . '/deep' or die $!;
    spew($d->files . '/deep/file', 'one');
    my $before = $tag->('');
    spew($d->files . '/deep/file', 'another');
    spew($d->files . '/deep/more', 'another');
    is $tag->('') =~ s{^W/}{}r, $before =~ s{^W/}{}r, "$kind: the ETag of a folder does not change with what is below it";
}

# X07: Destination over TLS, with the scheme and port of the base.
if (Dav->has_apache) {
    my $d = Dav->apache(users => { ann => 'secret word' }, tls => 1);
    live("$ENV{LIVE_WEBDAV} 'a_change*'", 'X07: behind TLS', DAV_URL => $d->http_url =~ s/^http/webdavs/r, DAV_USER => 'ann', DAV_PASSWORD => 'secret word',
        DAV_FILES => $d->files, DAV_CAFILE => $d->cafile);
}

my $cloud = FakeDav->new(cloud => 1, prefix => '');
live("$ENV{LIVE_WEBDAV} 'the_trash*'", 'cloud', DAV_URL => $cloud->origin =~ s/^http/webdav/r, DAV_USER => 'ann', DAV_PASSWORD => 'pw', DAV_FILES => '/nonexistent');
is_deeply $cloud->bin, {}, 'cloud: what unclaim deleted is gone from the bin too';
is_deeply [ keys %{ $cloud->tree } ], [''], 'cloud: and from the tree';
done_testing;
