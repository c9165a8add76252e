package Postgres;
# A private Postgres in a folder of its own, reached by a socket in that folder alone; gone with the object.
use strict;
use warnings;
use File::Temp qw(tempdir);

my ($bin) = sort { $b cmp $a } glob '/usr/lib/postgresql/*/bin';
$bin //= do { chomp(my $d = `pg_config --bindir 2>/dev/null`); $d };

# Root may not run Postgres: then an account that owns nothing else does.
my @as = $> == 0 ? ('setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups') : ();

sub new {
    my ($class, @settings) = @_;
    my $dir = tempdir('drivesim-pg-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $self = bless { dir => $dir, owner => $$ }, $class;
    if (@as) { my ($uid, $gid) = (getpwnam 'postgres')[2, 3]; chown $uid, $gid, $dir or die $! }
    $self->run('initdb', '-D', "$dir/data", '-U', 'postgres', '-A', 'trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync');
    my $opt = "-k $dir -c listen_addresses= -c fsync=off -c max_connections=100 @settings";
    $self->run('pg_ctl', '-D', "$dir/data", '-l', "$dir/log", '-w', '-t', '300', '-o', $opt, 'start');
    $self->{up} = 1;
    return $self;
}

sub run {
    my ($self, $program, @args) = @_;
    open my $out, '-|', 'sh', '-c', 'cd / && exec "$@" 2>&1', 'sh', @as, "$bin/$program", @args or die $!;
    my $text = do { local $/; <$out> };
    close $out or die "$program failed:\n$text";
    return $text;
}

sub url { my ($self, $db) = @_; return "host=$self->{dir} user=postgres dbname=" . ($db // 'postgres') }
sub log_text { my ($self) = @_; open my $fh, '<', "$self->{dir}/log" or die $!; local $/; return scalar <$fh> }

# A session of psql that runs SQL and gives back what it printed (rows by lines, fields by '|'), errors included.
sub sql {
    my ($self, $sql, %opt) = @_;
    my $pid = open my $fh, '-|';
    die $! if !defined $pid;
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        my @vars = map { ('-v', "$_=$opt{vars}{$_}") } keys %{ $opt{vars} // {} };
        exec 'psql', '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', @vars, $self->url($opt{db}),
            $opt{file} ? ('-1', map { ('-f', $_) } @{ $opt{file} }) : ('-c', $sql) or exit 127;
    }
    my $out = do { local $/; <$fh> } // '';
    close $fh or die "psql: $out" if !$opt{may_fail};
    chomp $out;
    return $out;
}

# The same SQL in many sessions at once, each begun when all are connected; returns what each printed.
sub at_once {
    my ($self, $db, @sql) = @_;
    my $gate = 4242;
    my $n = @sql;
    my @fh;
    # Each takes the gate's lock for reading, which a holder of it keeps shut until all are waiting.
    my $keeper = $self->session($db);
    print {$keeper->{in}} "SELECT pg_advisory_lock($gate);\n\\echo shut\n";
    readline $keeper->{out} for 1 .. 2;
    for my $sql (@sql) {
        my $s = $self->session($db);
        print {$s->{in}} "SELECT pg_advisory_lock_shared($gate);\n$sql;\n\\q\n";
        push @fh, $s;
    }
    my $waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    for (1 .. 2000) {
        last if $self->sql($waiting, db => $db) >= $n;
        select undef, undef, undef, 0.005;
    }
    print {$keeper->{in}} "SELECT pg_advisory_unlock($gate);\n\\q\n";
    my @out;
    for my $s (@fh) {
        my $text = do { local $/; readline $s->{out} } // '';
        waitpid $s->{pid}, 0;
        $text =~ s/\A\n//; # of the gate
        chomp $text;
        push @out, $text;
    }
    waitpid $keeper->{pid}, 0;
    return @out;
}

sub session {
    my ($self, $db) = @_;
    require IPC::Open3;
    my $pid = IPC::Open3::open3(my $in, my $out, undef, 'psql', '-X', '-A', '-t', '-q', $self->url($db));
    $in->autoflush(1);
    return { pid => $pid, in => $in, out => $out };
}

sub DESTROY {
    my ($self) = @_;
    return if $$ != $self->{owner} || !$self->{up};
    local ($?, $@);
    eval { $self->run('pg_ctl', '-D', "$self->{dir}/data", '-m', 'immediate', '-w', 'stop') };
    return;
}

1;
