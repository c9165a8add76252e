# What Nextcloud and ownCloud add to WebDAV, which no test here can start: accounts by OCS, folders' ETags polled as their
# desktop clients do, the trash-bin, oc:size, checksums, app passwords; all of it by their public documentation.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use FakeDav;
use File::Temp qw(tempdir);
use Sim;

my $dir = tempdir(CLEANUP => 1);
my $place = '/remote.php/dav/files/owner%40load.test/drivesim-load';
spew("$dir/reads", "download 1\n");
spew("$dir/writes", "upload 3\nsave 3\ntrash 1\nrename 1\nmove 1\nnew_folder 1\n");

sub cloud { return FakeDav->new(cloud => 1, prefix => '', @_) }
sub finished {
    my ($r) = @_;
    $r->{json} = -s "$dir/json" ? json_file("$dir/json") : {};
    $r->{check} = { map { $_->{name} => $_ } @{ $r->{json}{checks} // [] } };
    return $r;
}
sub start_on { my ($d, @args) = @_; unlink "$dir/json"; return sim_start([ @args, '--json', "$dir/json" ], dir => $dir, env => { TMA_URL => $d->url }) }
sub run_on { return finished(sim_finish(start_on(@_))) }
sub seeded {
    my ($scale, @conf) = @_;
    my $d = cloud(@conf);
    my $r = run_on($d, 'seed', 0, $scale);
    is $r->{status}, 0, "seeded (@conf)" or diag $r->{out}, $r->{err};
    return $d;
}
# A request as: top? etags or listing, of which folder below the place.
sub asked {
    my ($x) = @_;
    return () if $x->{method} ne 'PROPFIND' || $x->{path} !~ m{^\Q$place\E/(.*?)/?$};
    my $where = $1 =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
    my $what = ($x->{headers}{depth} // '') eq '0' ? 'look' : $x->{body} =~ /getcontentlength/ ? 'list' : 'etags';
    return "$what /$where";
}

# ---- names
{
    # Seed 15 has a name of 239 bytes: too long for a cloud, which writes to a longer one first.
    my $r = run_on(cloud(), qw(seed 0 0.005 --seed 15));
    is $r->{status}, 0, 'no file name is longer than a cloud takes' or diag $r->{out}, $r->{err};
    $r = run_on(cloud(), qw(seed 0 0.005 --seed 15 --name-max 255));
    is $r->{status}, 1, 'unless it is asked for';
    like $r->{out}, qr/upload: 500 Error while copying file/, 'and then the server\'s reason is told' or diag $r->{out}, $r->{err};
}

# ---- accounts
{
    my $d = cloud();
    my $r = run_on($d, qw(seed 1 0.002));
    is $r->{status}, 0, 'a cloud, with its administrator' or diag $r->{out}, $r->{err};
    my @made = grep { $_->{method} eq 'POST' && $_->{path} =~ m{^/ocs/} } @{ $d->log };
    is scalar(@made), 2, 'owner and user are signed up by OCS';
    is scalar(grep { ($_->{headers}{'ocs-apirequest'} // '') ne 'true' } @made), 0, 'without a browser\'s request token';
    is scalar(grep { exists $_->{headers}{cookie} } @{ $d->log }), 0, 'and without a session that would need one';
    my @puts = grep { $_->{method} eq 'PUT' && $_->{path} !~ /made-by/ } @{ $d->log };
    is scalar(grep { $_->{path} !~ m{^\Q$place\E/} } @puts), 0, 'files of the owner';
    is scalar(grep { ($_->{headers}{'oc-checksum'} // '') !~ /^SHA1:[0-9a-f]{40}$/ } @puts), 0, 'with their checksums';
    is scalar(grep { $_->{status} != 201 } @puts), 0, 'which are right';
    is scalar(grep { ($_->{headers}{'x-oc-mtime'} // '') !~ /^\d+$/ } @puts), 0, 'and times';
    $r = run_on($d, qw(clean --dry-run));
    like $r->{out}, qr/the account user-1\@load\.test, with all that it holds/, 'clean shows them';
    is_deeply $d->logins, [ 'ann', 'owner@load.test', 'user-1@load.test' ], 'and removes nothing unasked';
    $r = run_on($d, qw(clean --yes));
    is $r->{status}, 0, 'clean' or diag $r->{out}, $r->{err};
    is_deeply $d->logins, ['ann'], 'takes the accounts away that seed made';
    like run_on($d, qw(clean --yes))->{out}, qr/nothing that drivesim made is there/, 'all of them';
    $d->rule(method => 'DELETE', path => qr{/users/owner}, status => 200, body => '{"ocs":{"meta":{"statuscode":997,"message":"not allowed to"}}}');
    run_on($d, qw(seed 0 0.002));
    $r = run_on($d, qw(clean --yes));
    is $r->{status}, 1, 'one that stays';
    like $r->{out}, qr/the account owner\@load\.test: 403 not allowed to/, 'is named with the reason';
    $r = run_on(cloud(strangers => ['carol']), qw(seed 0 0.002));
    is $r->{status}, 3, 'a cloud that holds other users';
    like $r->{err}, qr/holds other users, outside \@load\.test/, 'is refused';
    $d = cloud(app => { ann => 'app-token' });
    $r = run_on($d, qw(seed 0 0.002));
    is $r->{status}, 3, 'an account whose own password is refused';
    $d->{users}{ann} = 'app-token';
    $r = run_on($d, qw(seed 0 0.002));
    is $r->{status}, 0, 'signs in with an app password' or diag $r->{out}, $r->{err};
}

# ---- ETags polled: what a poll costs
{
    my $d = seeded(0.01);
    my %tree = %{ $d->tree };
    my ($deep) = sort { $b =~ tr{/}{} <=> $a =~ tr{/}{} || $a cmp $b } grep { $tree{$_} < 0 } keys %tree;
    my @names = split m{/}, $deep =~ s{^/drivesim-load/}{}r;
    my @chain = map { '/' . join '/', @names[ 0 .. $_ ] } 0 .. $#names;
    cmp_ok scalar(@chain), '>', 1, 'a folder that lies deep';
    my $polls = sub { return scalar grep { $_ eq 'look /' } map { asked($_) } @{ $d->log } };
    my $listed = sub { return scalar grep { $_ eq 'list ' . $chain[-1] } map { asked($_) } @{ $d->log } };
    my $from = $listed->();
    my $h = start_on($d, qw(run 1 22 60 300 --poll 1s --mix), "$dir/reads");
    ok wait_until(sub { $listed->() > $from }), 'all folders are listed once';
    my $seen = sub { my $n = $polls->(); return wait_until(sub { $polls->() > $n }) };
    my $change = sub {
        my ($name) = @_;
        my ($lists, $before) = ($listed->(), scalar @{ $d->log });
        $d->put("$deep/$name", 'new');
        ok wait_until(sub { $listed->() > $lists }), "$name is seen";
        $seen->();
        return map { asked($_) } @{ $d->log }[ $before .. $#{ $d->log } ];
    };
    $seen->();
    my $want = join "\n", sort 'etags /', (map { "etags $_" } @chain[ 0 .. $#chain - 1 ]), map { "list $_" } @chain;
    my (@all, $work);
    for (1 .. 8) { # at first a folder that was never looked into is, and that may go on during the next change
        @all = $change->("change $_");
        $work = join "\n", sort grep { $_ ne 'look /' } @all;
        last if $work eq $want;
    }
    is $work, $want, 'only the changed folders are looked into, only the open ones of them listed';
    cmp_ok scalar(grep { $_ eq 'look /' } @all), '>=', 2, 'and a poll without news is one request';
    kill 'INT', $h->{pid};
    my $r = finished(sim_finish($h));
    is $r->{status}, 130, 'it was ended by hand' or diag $r->{out}, $r->{err};
    unlike $r->{out}, qr/no change feed/, 'the feed is no fallback';
    like $r->{out}, qr/^server: no event stream: minute checks alone/m, 'only events are missing';
}

# ---- many apps that change things: the views are right all the same, also where ETags do not do what they should
for my $frozen (0, 1) {
    my $d = seeded(0.01, $frozen ? (frozen => 1) : ());
    my $r = run_on($d, qw(run 4 8 120 5 --poll 1s --mix), "$dir/writes");
    my $what = $frozen ? 'ETags that never change' : 'ETags that tell';
    is $r->{status}, 0, "$what: a run" or diag $r->{out}, $r->{err};
    cmp_ok $r->{json}{actions}{done}, '>', 10, "$what: at work";
    is $r->{check}{$_}{status}, 'ok', "$what: $_" for qw(convergence ledger structure);
    is $r->{json}{note} =~ /no change feed/ ? 1 : 0, $frozen, "$what: as the report says";
}

# ---- the trash-bin
{
    my $d = seeded(0.01);
    my $r = run_on($d, 'bulk');
    is $r->{status}, 0, 'bulk' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/delete for good/, 'from the trash for good';
    is_deeply $d->bin, {}, 'and the bin is empty again';
    $r = run_on($d, qw(reads --times 1 --background 0));
    is $r->{status}, 0, 'reads' or diag $r->{out}, $r->{err};
    is $r->{json}{reads}{trash}{why} // '', '', 'the trash among them';
    $r = run_on($d, qw(run 2 4 120 2 --mix), "$dir/writes");
    is $r->{status}, 0, 'a run that trashes' or diag $r->{out}, $r->{err};
    $r = run_on(seeded(0.002, trash => 0), 'bulk');
    is $r->{status}, 0, 'without a bin' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/^server: no trash: deleted for good at once/m, 'the fallback is said';
}

# ---- oc:size
{
    my $d = seeded(0.01);
    my $r = run_on($d, 'check');
    is $r->{status}, 0, 'check' or diag $r->{out}, $r->{err};
    is $r->{check}{aggregates}{summary}, '22 of 22 folders by what info says, 0 wrong; none are stored', 'folder totals by oc:size';
    my ($folder) = sort grep { m{^/drivesim-load/[^/]+$} && $d->tree->{$_} < 0 } keys %{ $d->tree };
    $d->resize($folder, 5);
    $r = run_on($d, 'check');
    is $r->{status}, 1, 'a total that is 5 bytes too large';
    is $r->{check}{aggregates}{wrong}, 1, 'is found';
    like "@{ $r->{check}{aggregates}{detail} }", qr/PROPFIND oc:size/, 'and how to look it up';
}

# ---- checksums
{
    my $r = run_on(cloud(checksum => 'refuse'), qw(seed 0 0.002));
    isnt $r->{status}, 0, 'a server that refuses the checksum';
    like $r->{out} . $r->{err}, qr/computed checksum does not match/, 'in its own words';
    $r = run_on(cloud(checksum => 'SHA1:' . '0' x 40 . ' MD5:' . '0' x 32), qw(seed 0 0.002));
    isnt $r->{status}, 0, 'one that stored something else';
    like $r->{out} . $r->{err}, qr/another checksum than the one sent: SHA1:0000/, 'is found by what it tells';
    $r = run_on(cloud(checksum => 'ADLER32:1'), qw(seed 0 0.002));
    is $r->{status}, 0, 'a kind of checksum that was not sent proves nothing' or diag $r->{out}, $r->{err};
}

done_testing;
