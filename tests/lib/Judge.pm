package Judge;
# The faults that `sim serve --fault` plants: which check must find each, what it must say of it, and a short load under
# which it shows. Shared by tests/judge.pl (each alone, many times) and tests/sys/judge.t (several in one run).
use strict;
use warnings;
use Exporter 'import';
use Sim;

our @EXPORT_OK = qw(@FAULTS %FULL fault_of look);

# What a load is made of: the arguments of sim run, a mix, what is done to the database before it.
my @BUSY  = (8, 20, 240, 8);
my %SAVES = (args => [8, 20, 300, 8], mix => "save 85\nupload 5\ndownload 10\n", few => 1); # on few files: they meet
my %ADDS  = (args => \@BUSY, mix => "upload 40\nsave 30\ndownload 30\n");
my %COPIES = (args => \@BUSY, mix => "copy 50\ndownload 50\n");
# A little room only: what is larger must be refused.
our %FULL = (sql => 'UPDATE users SET storage_limit = storage_used + 100000 WHERE parent_user_id IS NULL');

# [fault, the check that must find it, what it says, the load]
our @FAULTS = map { { fault => $_->[0], check => $_->[1], says => $_->[2], load => $_->[3] } } (
    ['lost-update',        'versions',    qr/two saves from version .* were both acknowledged|a save from version \S+ was taken/, {%SAVES}],
    ['double-lock',        'locks',       qr/was given lock \S+ (?:at .*, and app|while)/,       {%SAVES}],
    ['lock-ignored',       'locks',       qr/was accepted (?:\(\d+\) )?while/,                     {%SAVES}],
    ['lost-upload',        'ledger',      qr/was told at \S+ that it is .*, but it is gone/,     {%ADDS}],
    ['truncated-object',   'objects',     qr/has \d+ bytes, \d+ expected/,                      {%ADDS}],
    ['orphan-object',      'objects',     qr/belongs to no file/,                               {%ADDS}],
    ['event-dropped',      'events',      qr/never got the event of the/,                       {%ADDS}],
    ['event-late',         'events',      qr/s after its answer|never got the event of the/,    {%ADDS}],
    ['stale-listing',      'convergence', qr/sees [\d,]+ entr\w+ in folder/,                       {%ADDS}],
    ['feed-gap',           'convergence', qr/sees [\d,]+ entr\w+ in folder/,                       {%ADDS}],
    ['aggregate-drift',    'aggregates',  qr/its rows add up to/,                               {%ADDS}],
    ['storage-drift',      'storage',     qr/files add up to/,                                  {%ADDS}],
    ['quota-overrun',      'storage',     qr/beyond their storage limits/,                      { %ADDS, %FULL }],
    ['copy-partial',       'objects',     qr/its object \S+ is missing/,                        {%COPIES}],
    ['trash-leak',         'changes',     qr/in the trash, but it is still where it was/,       { args => \@BUSY, mix => "trash 30\nupload 30\ndownload 40\n" }],
    ['corrupt-download',   'reads',       qr/read by app \d+ at .*: wrong byte at/,             { args => \@BUSY, p => 0.3 }],
    ['duplicate-on-retry', 'changes',     qr/but no app asked for it/,                          {%COPIES}],
    ['dropped-413',        'answers',     qr/its connection was closed instead of an answer/,      { %ADDS, %FULL }],
    ['slow-commit',        'database',    qr/a writing transaction stalled/,                { %ADDS, p => 0.3 }],
    ['deadlock',           'database',    qr/Postgres counted \d+ deadlocks/,                   { %SAVES, args => [8, 20, 600, 8] }],
    ['hang',               'answers',     qr/given up without an answer/,                       { args => \@BUSY, mix => "download 100\n", p => 0.05, more => ['--timeout', '5s'] }],
);

sub fault_of { my ($name) = @_; my ($f) = grep { $_->{fault} eq $name } @FAULTS; return $f // die "no fault $name" }

# The server starts again with these faults, "name=probability", and is put under the load. A fault that hits the run's
# set-up keeps it from its beginning: then it is begun again. Gives back {status, json, found: check => [details], out}.
sub look {
    my ($stack, $faults, $load, $seed) = @_;
    $stack->sql('UPDATE users SET storage_limit = NULL WHERE storage_limit IS NOT NULL');
    $stack->sql($load->{sql}) if $load->{sql};
    $stack->stack('stop', 'server');
    my @faults = @$faults ? '--server-args=' . join ' ', map { "--fault $_" } @$faults : ();
    my $r = $stack->stack('start', 'server', @faults);
    die "the server with @$faults does not start: $r->{err}" if $r->{status} ne '0';
    my @args = ('run', @{ $load->{args} // \@BUSY }, '--seed', $seed, '--json', 'run.json', '-q', @{ $load->{more} // [] });
    if ($load->{mix}) { spew("$stack->{dir}/mix", $load->{mix}); push @args, '--mix', 'mix' }
    for my $try (1 .. 4) {
        $r = $stack->sim(\@args);
        last if !@faults || $r->{status} ne '3' || $r->{err} !~ /no answer from/;
    }
    my $json = eval { json_file("$stack->{dir}/run.json") } or die "sim run left no JSON ($r->{status}): $r->{out}$r->{err}";
    my %found = map { $_->{name} => $_->{detail} } grep { $_->{status} eq 'violated' } @{ $json->{checks} };
    return { %$r, json => $json, found => \%found };
}

1;
