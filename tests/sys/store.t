# Postgres, Redis and the S3 store as the store layer meets them, broken in the middle: the tests are in live_store.c.
use strict;
use warnings;
use Test::More;
use lib 'tests/lib';
use Sim;

my $stack = Sim::Stack->new('--no-server');
my $program = $ENV{LIVE_STORE} // die "LIVE_STORE is not set: run this by `make sys`\n";
my $out = do {
    local %ENV = (%ENV, %{ $stack->env }, CMOCKA_MESSAGE_OUTPUT => 'TAP', SIM => sim_path());
    `cd '$stack->{dir}' && '$program' 2>&1`;
};
my $status = $?;
for (split /\n/, $out) {
    if (/^ok \d+ - (.*)/) { pass $1 }
    elsif (/^not ok \d+ - (.*)/) { fail $1 }
    else { diag $_ unless /^(?:1\.\.|TAP|#? ?ok)/ }
}
is $status, 0, 'it ended well';
done_testing;
