# Sessions kept from one command to the next: one sign-in serves many commands, whoever else looks at the file gets
# nothing, and a session that the server does not take costs one sign-in.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;
use lib 'tests/lib';
use Runs;

my $home = tempdir(CLEANUP => 1);
my $d = FakeDrive->new(sub_users => 2, folders => 4, files => 10);

# Where the doctor finds no programs, it does not ask them for their versions.
mkdir "$home/bin";
symlink '/bin/sh', "$home/bin/sh" or die "sh: $!";

sub options { my (%env) = @_; return (dir => $home, env => { TMA_URL => $d->url, XDG_STATE_HOME => "$home/state", PATH => "$home/bin", %env }) }
sub files { my @f = glob "$home/state/drivesim/*"; return @f }
sub mode { my ($path) = @_; return sprintf '%04o', (stat $path)[2] & 07777 }

# How often a command signed in, beside what it said.
sub signs_in {
    my ($n, $what, $args, %env) = @_;
    my $before = $d->count(qr{^POST /api/login});
    my $r = sim($args, options(%env));
    is $d->count(qr{^POST /api/login}) - $before, $n, $what or diag $r->{out}, $r->{err};
    return $r;
}

subtest 'S05: a second command goes on with the session of the first' => sub {
    my $r = signs_in(1, 'the first signs in', ['doctor']);
    like $r->{out}, qr{ok +sessions +kept in \Q$home\E/state/drivesim: 1 of 1 can still be used}, 'and tells where its session is kept';
    my @files = files();
    is scalar(@files), 1, 'in one file';
    is mode($files[0]), '0600', 'for its owner alone';
    is mode("$home/state/drivesim"), '0700', 'as is the folder';
    $r = signs_in(0, 'the second does not', ['doctor']);
    unlike $r->{err}, qr/session/, 'and makes no words about it';
};

subtest 'a run and what comes after it' => sub {
    my @run = qw(run 7 4 60 1 --json run.json);
    my $r = signs_in(2 + 1, 'those sign in that no command had, and owner-2@load.test is looked for', \@run);
    is $r->{status}, 0, 'healthy' or diag $r->{out}, $r->{err};
    like $r->{out}, qr/^sessions  1 kept from before, 2 signed in$/m, 'the report says how many';
    my $j = json_file("$home/run.json");
    is_deeply $j->{sessions}, { kept => 1, signed_in => 2 }, 'so does the JSON';
    is $j->{operations}{sign_in}{ok}, 2, 'and the row of sign-ins has those alone';

    $d->rule(path => qr{/api/profile$}, times => 1, status => 429, headers => { 'Retry-After' => 1 }, body => { error => 'Too many requests' });
    $r = signs_in(0, 'none the next time, though the server asks to wait', \@run);
    is $r->{status}, 0, 'healthy' or diag $r->{out}, $r->{err};
    $j = json_file("$home/run.json");
    is $j->{throttled}, 1, 'which was done';
    is_deeply $j->{sessions}, { kept => 3, signed_in => 0 }, 'all were kept';
    ok !$j->{operations}{sign_in}{ok}, 'there is no row of sign-ins';
    signs_in(0, 'nor in a check of it', ['check', '--run', $j->{run_dir}]);

    my %token = map { $_->{login} => $_->{token} } grep { defined $_->{token} } @{ json_file((files())[0])->{sessions} };
    is_deeply [sort keys %token], [qw(owner@load.test user-1@load.test user-2@load.test)], 'each login has its session';
    my $any = join '|', map { quotemeta } values %token;
    is_deeply [grep { -f && slurp($_) =~ /$any/ } glob "$home/run.json $home/runs/*/*"], [], 'no token is in the JSON or the run folder';
    unlike $r->{out} . $r->{err}, qr/$any/, 'nor in what was said';
};

subtest 'what is not to be trusted is not used' => sub {
    signs_in(1, 'with another password', ['doctor'], TMA_LOAD_PASSWORD => 'another-password');
    signs_in(1, 'and with the first one again', ['doctor']);
    signs_in(1, '--fresh-sign-in', [qw(doctor --fresh-sign-in)]);
    signs_in(0, 'whose session is kept all the same', ['doctor']);
    $d->rule(path => qr{/api/profile$}, times => 1, status => 200, body => { email => 'somebody@load.test' });
    signs_in(1, "a session that is another's", ['doctor']);
    my ($file) = files();
    chmod 0644, $file;
    my $r = signs_in(1, 'a file that others can read', ['doctor']);
    like $r->{err}, qr/ warn +sessions: those kept in .* are not used: .* is open to others \(mode 644\)$/m, 'with a warning';
    is mode($file), '0600', 'it is replaced';
    rename $file, "$home/elsewhere";
    symlink "$home/elsewhere", $file;
    $r = signs_in(1, 'a link in its place', ['doctor']);
    like $r->{err}, qr/ is a link/, 'with a warning';
    ok !-l $file, 'it is replaced too';
    spew($file, '{"sessions":[{"login":');
    signs_in(1, 'half a file', ['doctor']);
    signs_in(0, 'and all is well again', ['doctor']);
};

subtest 'a session that the server has ended' => sub {
    $d->rule(path => qr{/api/profile$}, times => 1, status => 401, body => { message => 'Session has been revoked. Please login again.' });
    my $r = signs_in(1, 'one sign-in', ['doctor']);
    unlike $r->{err}, qr/session|revoked/, 'and not a word';
    signs_in(0, 'then the new one serves', ['doctor']);
};

subtest 'what measures sign-ins makes them' => sub {
    my $r = signs_in(1, 'a ramp of sign-ins', [qw(ramp 1 --session sign-in --hold 0 --arrive 0)]);
    like $r->{out}, qr/^sessions  1 kept from before, 1 signed in$/m, 'each is counted';
    signs_in(0, 'and leaves what was kept before', ['doctor']);
};

subtest 'beside a run, and after one that was killed' => sub {
    unlink files();
    my $before = $d->count(qr{^POST /api/login});
    my $h = sim_start([qw(run 3 4 60 600)], options());
    ok sim_await($h, sub { $_[0]{out} =~ /measured window begins/ }), 'a run has signed in' or diag $h->{out}, $h->{err};
    is $d->count(qr{^POST /api/login}) - $before, 3, 'its three logins';
    signs_in(0, 'a command meanwhile goes on with its session', ['doctor']);
    kill 'KILL', $h->{pid};
    sim_finish($h);
    my $r = signs_in(0, 'as does one when it is gone', ['doctor']);
    like $r->{out}, qr/3 of 3 can still be used/, 'they are all there';
};

subtest 'some at once' => sub {
    unlink files();
    sim_finish($_) for map { sim_start(['doctor'], options()) } 1 .. 4;
    my @files = files();
    is scalar(@files), 1, 'one file, and nothing beside it';
    signs_in(0, 'which is whole', ['doctor']);
};

subtest 'where there is nowhere to keep them' => sub {
    for my $i (1, 2) {
        my $r = signs_in(1, "command $i signs in", ['doctor'], XDG_STATE_HOME => '', HOME => '/nonexistent');
        like $r->{out}, qr/note +sessions +not kept between commands: there is no home folder, nor XDG_STATE_HOME/, 'and says why';
    }
};

done_testing;
