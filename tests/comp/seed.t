# The seeder against a scripted server: limits are waited out, lost answers make no second copies, a server that goes
# away and comes back gets the rest, and what a server lacks is done without.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/lib';
use FakeDrive;
use Sim;

my $dir = tempdir(CLEANUP => 1);
my ($FOLDERS, $FILES) = (22, 168); # of scale 0.01

sub seed {
    my ($d, @args) = @_;
    unlink "$dir/seed.json";
    my $r = sim([qw(seed 0 0.01 --bytes-scale 0.01 --json), "$dir/seed.json", @args], env => { TMA_URL => $d->url }, dir => $dir);
    $r->{json} = json_file("$dir/seed.json") if -s "$dir/seed.json";
    return $r;
}

# Whole, and nothing besides.
sub complete {
    my ($d, $r, $what, %more) = @_;
    is $r->{status}, 0, "$what: ends well" or diag $r->{out}, $r->{err};
    my $s = $d->state;
    is $s->{files}, $FILES + ($more{files} // 0), "$what: every file once";
    is $s->{folders}, $FOLDERS + ($more{folders} // 0), "$what: every folder once";
    is $r->{json}{tree}{files}, $FILES, "$what: the files of the plan are reported";
    return;
}

my $manifest;
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    my $r = seed($d);
    complete($d, $r, 'a plain server');
    $manifest = $r->{json}{tree}{manifest_sha256};
    like $manifest, qr/^[0-9a-f]{64}$/, 'a manifest';
    like $r->{out}, qr/keeps no modification times/, 'a server without times: says so';
    my $before = @{ $d->log };
    my $again = seed($d);
    complete($d, $again, 'once more');
    is $again->{json}{tree}{manifest_sha256}, $manifest, 'once more: the same manifest';
    my @writes = grep { $_->{method} ne 'GET' && $_->{path} !~ m{/login|signup-toggle|/z{16}/lock|/upload/bulk} } splice @{ $d->log }, $before;
    is scalar(@writes), 0, 'once more: nothing is written' or diag explain \@writes;
    my $other = seed($d, qw(--seed 2));
    isnt $other->{json}{tree}{manifest_sha256}, $manifest, 'another seed: another manifest';
    like $other->{out}, qr/not part of this plan: \d+ files/, 'another seed: what is there already is told';
}

# S05: five sign-ins, then a wait.
{
    my $d = FakeDrive->new(sub_users => 8, folders => 0, files => 0);
    for my $after (4, 8) {
        $d->rule(method => 'POST', path => qr{/api/login}, after => $after, times => 1, status => 429,
            headers => { 'Retry-After' => 1 }, body => { error => 'Too many login attempts' });
    }
    my $r = sim([qw(seed 8 0.01 --bytes-scale 0.01 --json), "$dir/s05.json"], env => { TMA_URL => $d->url }, dir => $dir);
    is $r->{status}, 0, 'sign-ins are limited: ends well' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/sign-in limited by the server: \d of 9 left, about [\d.]+ m?s to wait/, 'sign-ins are limited: the delay is told';
    like $r->{out}, qr/sign-in limited.*(?:\n.*)*\nfiles/, 'sign-ins are limited: told before the work';
    my $j = json_file("$dir/s05.json");
    is $j->{operations}{sign_in}{failed}, 0, 'sign-ins are limited: waiting is no failure';
    is $d->count(qr{^POST /api/login}), 11, 'sign-ins are limited: one a login and the two refused, tokens are reused';
}

# Answers that get lost after the work was done: folders, uploads.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(method => 'POST', path => qr{/api/files/folder}, after => 3, times => 2, lost => 1);
    $d->rule(method => 'POST', path => qr{/api/files/upload}, after => 10, times => 3, lost => 1);
    my $r = seed($d);
    complete($d, $r, 'lost answers');
    is $r->{json}{tree}{manifest_sha256}, $manifest, 'lost answers: the same manifest';
    is $r->{json}{operations}{upload}{outcomes}{unknown} + $r->{json}{operations}{new_folder}{outcomes}{unknown}
        + ($r->{json}{operations}{bulk_upload}{outcomes}{unknown} // 0), 5, 'lost answers: told apart from failures';
}

# A budget that is spent in the middle.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(method => 'POST', path => qr{/api/files/upload}, after => 20, times => 4, status => 429,
        headers => { 'Retry-After' => 1 }, body => { error => 'slow down' });
    my $r = seed($d);
    complete($d, $r, 'a spent budget');
    is $r->{json}{failed} - ($r->{json}{operations}{bulk_upload}{failed} // 0), 0, 'a spent budget: no failure';
}

# The server goes away for three seconds.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(method => 'POST', path => qr{/api/files/upload}, delay => 0.05);
    my $h = sim_start([qw(seed 0 0.01 --bytes-scale 0.01 --jobs 2)], env => { TMA_URL => $d->url }, dir => $dir);
    ok wait_until(sub { $d->count(qr{^POST /api/files/upload$}) > 20 }), 'an outage: under way';
    $d->outage(3);
    my $r = sim_finish($h);
    is $r->{status}, 0, 'an outage: ends well' or diag $r->{out}, $r->{err};
    is $d->state->{files}, $FILES, 'an outage: every file once';
}

# Ctrl-C drains and can be resumed.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(method => 'POST', path => qr{/api/files/upload}, delay => 0.2);
    my $h = sim_start([qw(seed 0 0.01 --bytes-scale 0.01 --jobs 2)], env => { TMA_URL => $d->url }, dir => $dir);
    ok wait_until(sub { $d->count(qr{^POST /api/files/upload$}) > 8 }), 'interrupted: under way';
    kill INT => $h->{pid};
    my $r = sim_finish($h);
    is $r->{status}, 130, 'interrupted: status' or diag $r->{out}, $r->{err};
    like "$r->{out}$r->{err}", qr/interrupted/, 'interrupted: says so';
    cmp_ok $d->state->{files}, '<', $FILES, 'interrupted: half made';
    $d->rules_clear;
    complete($d, seed($d), 'after an interruption');
}

# What refuses for good ends the work with its reason.
for my $case ([413, 'Storage limit exceeded', 'STORAGE_LIMIT_EXCEEDED'], [403, 'You do not have permission to do that', undef], [503, 'No bucket', 'STORAGE_NOT_CONFIGURED']) {
    my ($status, $message, $code) = @$case;
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(method => 'POST', path => qr{/api/files/upload}, status => $status, body => { message => $message, $code ? (error => $code) : () });
    my $r = seed($d);
    is $r->{status}, 3, "uploads refused with $status: status" or diag $r->{out}, $r->{err};
    like $r->{err}, $status == 503 ? qr/TMA_LOAD_S3_ENDPOINT/ : qr/\Q$message\E/, "uploads refused with $status: the reason";
}

# Somebody else is the first user.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    $d->rule(path => qr{/signup-toggle}, status => 403, body => { message => 'Only the first user' });
    my $r = seed($d);
    is $r->{status}, 3, 'not the first user: refused';
    like $r->{err}, qr/first user.*other users/, 'not the first user: says so';
    is $d->state->{folders}, 0, 'not the first user: nothing is made';
}

# What was seeded is taken away again; a wait for a budget ends when somebody wants it to.
{
    my $d = FakeDrive->new(sub_users => 0, folders => 0, files => 0);
    seed($d);
    for my $dead ([ qr{/api/login$}, qr/whether it has \S+\@load\.test/ ], [ qr{/api/user/sub-users$}, qr/the sub-users of owner\@load\.test/ ]) {
        $d->rule(path => $dead->[0], status => 503, body => { message => 'gone fishing' });
        my $r = sim([qw(clean --yes)], env => { TMA_URL => $d->url }, dir => $dir);
        is $r->{status}, 3, "clean: $dead->[0] is out of order" or diag $r->{out}, $r->{err};
        like $r->{err}, qr/does not tell $dead->[1]: .*gone fishing; nothing was removed/, 'says so' or diag $r->{out};
        $d->rules_clear;
    }
    $d->rule(path => qr{^/api/files/delete$}, status => 429, headers => { 'Retry-After' => 600 }, body => { error => 'Too many requests' });
    my $h = sim_start([qw(clean --yes)], env => { TMA_URL => $d->url }, dir => $dir);
    ok wait_until(60, sub { $d->count(qr{^POST /api/files/delete}) >= 1 }), 'clean: told to wait ten minutes';
    kill INT => $h->{pid};
    is sim_finish($h, 60)->{status}, 130, 'clean: an interruption ends the wait' or diag $h->{out}, $h->{err};
}

done_testing;
