# Sessions kept between commands, on the reference server with the budget of sign-ins that servers have: 25 of a login in
# 15 minutes, so that whoever waited once would wait for minutes.
use strict;
use warnings;
use HTTP::Tiny;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new;
my $bin = "$stack->{dir}/bin"; # where the doctor finds no programs, it does not ask them for their versions
mkdir $bin;
symlink '/bin/sh', "$bin/sh" or die "sh: $!";

sub begun { return $stack->sql('SELECT count(*) FROM sessions') }
sub file { my @f = glob "$stack->{dir}/.sim/sessions/*"; return @f == 1 ? $f[0] : undef }
sub mode { my ($path) = @_; return sprintf '%04o', (stat $path)[2] & 07777 }
sub doctor { return $stack->sim(['doctor'], env => { PATH => $bin }) }

my $r = $stack->sim([qw(seed 2 0.01 --bytes-scale 0.1 -q)]);
is $r->{status}, 0, 'seeded' or diag $r->{out}, $r->{err};
like $r->{out}, qr/^sessions  0 kept from before, 3 signed in$/m, 'three logins signed in';
my $begun = begun();
is $begun, 3, 'or up, once each';
ok defined file(), 'the stack keeps them in its own folder' or BAIL_OUT('no file of sessions');
is mode(file()), '0600', 'for its owner alone';

$r = $stack->sim([qw(run 3 4 60 1 --json), "$stack->{dir}/run.json"]);
is $r->{status}, 0, 'a run' or diag $r->{out}, $r->{err};
my $j = json_file("$stack->{dir}/run.json");
is_deeply $j->{sessions}, { kept => 3, signed_in => 0 }, 'goes on with them, and so do its checks';
$r = $stack->sim(['check', '--run', $j->{run_dir}]);
is $r->{status}, 0, 'a check of the run' or diag $r->{out}, $r->{err};
is begun(), $begun, 'needs no sign-in either';

my @said = map { doctor() } 1 .. 30;
is begun(), $begun, 'nor do thirty commands in a row';
is_deeply [grep { $_->{err} =~ /limited|waiting/ } @said], [], 'none of which had to wait';
like $said[-1]{out}, qr/ok +sessions +kept in \.sim\/sessions: 3 of 3 can still be used/, 'the doctor tells of them';

my ($owner) = grep { $_->{login} eq 'owner@load.test' } @{ json_file(file())->{sessions} };
my $out = HTTP::Tiny->new(default_headers => { Cookie => "token=$owner->{token}", 'X-Requested-With' => 'XMLHttpRequest' })->post("$stack->{env}{TMA_URL}/api/logout");
is $out->{status}, 200, 'the session of the owner is revoked' or diag $out->{content};
$r = doctor();
is begun(), $begun + 1, 'it signs in once';
unlike $r->{err}, qr/session|revoked/, 'and makes no words about it';
doctor();
is begun(), $begun + 1, 'not twice';

$r = $stack->sim(['refusals', '--only', 'revoked,wrong_password', qw(--tries 1 --background 0 -q)]);
is $r->{status}, 0, 'refusals revoke a session of their own' or diag $r->{out}, $r->{err};
$begun = begun();
doctor();
is begun(), $begun, 'the kept ones live on';

$r = $stack->sim([qw(clean --yes -q)]);
is $r->{status}, 0, 'cleaned' or diag $r->{out}, $r->{err};
is file(), undef, 'the sessions are forgotten with the accounts';

$stack->sim([qw(seed 0 0.01 --bytes-scale 0.1 -q)]);
ok defined file(), 'kept anew';
$stack->stack('down');
is file(), undef, 'and gone with the stack';
ok !-e "$stack->{dir}/.sim", 'as is its folder';

done_testing;
