package Sim;
# Runs the program under test as a user would, and keeps a private stack for system tests. Nothing here sleeps blindly:
# it waits for a process, a line of output or a condition.
use strict;
use warnings;
use Exporter 'import';
use Failed;
use File::Temp ();
use IO::Select;
use IPC::Open3;
use JSON::PP;
use POSIX ();
use Symbol 'gensym';
use Time::HiRes qw(time);

our @EXPORT = qw(sanitized sim sim_start sim_read sim_await sim_wakes sim_finish limited judged sim_path json_file psql slurp spew wait_until);

my $root = $ENV{DRIVESIM_ROOT} // do { (my $f = __FILE__) =~ s{/?tests/lib/Sim\.pm$}{}; $f eq '' ? '.' : $f };
$root = POSIX::getcwd() . "/$root" unless $root =~ m{^/};

my $program = $ENV{SIM} // "$root/build/sim"; # read now: the environment of a test is bare
sub sim_path { return $program }
# Built with a sanitizer, which keeps what is freed: how much memory it takes says nothing then.
sub sanitized { return $program =~ m{/[at]san/} }

# The environment of a user with nothing set: no target, no proxy, plain locale.
my @KEEP = qw(PATH HOME USER LANG ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS XDG_CACHE_HOME npm_config_cache);

# Generators are found by a folder there: a `sim stop` of somebody else's must not end ours, nor ours theirs. Sessions are
# kept there from one command to the next, where the target is no stack of the folder.
my $tmp = File::Temp::tempdir('sim-XXXXXX', TMPDIR => 1);
chmod 01777, $tmp;

# sim_start(\@args, env => {…}, dir => DIR, stdin => TEXT, wrap => [prefix command], program => a copy of it) starts it and
# returns a handle.
# sim() takes the same, waits for the end and returns {status, signal, out, err, seconds}; one that hangs is ended by its
# pid after ten minutes and has the status 'timeout'. No other limit is given anywhere: what a busy machine needs longer
# for is no failure.
use constant HANGS => 600;

# The end of a run waits for its apps at most so long, unless a test is about that: on a busy machine 15 s may not do.
my @PATIENT = qw(--grace 60s);
sub sim_start {
    my ($args, %opt) = @_;
    $args = [@$args, @PATIENT] if @$args > 2 && $args->[0] eq 'run' && !grep { /^--grace/ } @$args;
    local %ENV = ((map { defined $ENV{$_} ? ($_ => $ENV{$_}) : () } @KEEP), TMPDIR => $tmp, XDG_STATE_HOME => "$tmp/state", %{ $opt{env} // {} });
    my @cmd = (@{ $opt{wrap} // [] }, $opt{program} // sim_path(), @$args);
    @cmd = ('sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', $opt{dir}, @cmd) if $opt{dir};
    my $err = gensym;
    my $pid = open3(my $in, my $out, $err, @cmd);
    print {$in} $opt{stdin} if defined $opt{stdin};
    close $in;
    return { what => "sim @$args", pid => $pid, out_fh => $out, err_fh => $err, out => '', err => '', started => time };
}

# A machine that others fill makes the generator the limit, and no time or rate is judged then: what a command ends with
# whose thresholds are on such.
sub limited { my ($r) = @_; return $r->{out} =~ /the generator was the limit: no figures/ ? 1 : 0 }
sub judged { my ($r, $status) = @_; return limited($r) ? 3 : $status }

# Reads what comes until $stop->($handle) holds (1), both streams end (1), or the time is over (0).
sub sim_read {
    my ($h, $timeout, $stop) = @_;
    my $end = time + $timeout;
    my $sel = IO::Select->new(grep { defined fileno $_ } @$h{qw(out_fh err_fh)});
    while ($sel->count) {
        return 1 if $stop && $stop->($h);
        my $left = $end - time;
        return 0 if $left <= 0;
        for my $fh ($sel->can_read($left)) {
            my $key = $fh == $h->{out_fh} ? 'out' : 'err';
            if (!sysread $fh, my $chunk, 65536) { $sel->remove($fh); close $fh }
            else { $h->{$key} .= $chunk }
        }
    }
    return $stop ? $stop->($h) : 1;
}

# Until it holds; false when it did not in all that time, or the program ended before.
sub sim_await { my ($h, $stop) = @_; return sim_read($h, HANGS, $stop) }

sub sim_finish {
    my ($h) = @_;
    my $ended = sim_read($h, HANGS);
    kill 'KILL', $h->{pid} if !$ended;
    waitpid $h->{pid}, 0;
    $h->{signal} = $? & 127;
    $h->{status} = !$ended ? 'timeout' : $h->{signal} ? 128 + $h->{signal} : $? >> 8;
    $h->{seconds} = time - $h->{started};
    Failed::said(sprintf('%s: status %s after %.1f s', @$h{qw(what status seconds)}), @$h{qw(out err)});
    return $h;
}

sub sim { my ($args, %opt) = @_; return sim_finish(sim_start($args, %opt)) }

# Until it has slept and woken so many times more, or has ended: what it asks again and again it has asked by then,
# however slow the machine is.
sub sim_wakes {
    my ($h, $times) = @_;
    my $count = sub {
        my $s = eval { slurp("/proc/$h->{pid}/status") } // '';
        return $s =~ /^State:\s+[^ZX].*^voluntary_ctxt_switches:\s+(\d+)/ms ? $1 : 9**9**9;
    };
    my $until = $count->() + $times;
    return wait_until(sub { sim_read($h, 0.02, sub { 0 }); $count->() >= $until });
}

sub slurp { my ($file) = @_; open my $fh, '<:raw', $file or die "$file: $!"; local $/; return scalar <$fh> }
sub spew { my ($file, $text) = @_; open my $fh, '>:raw', $file or die "$file: $!"; print {$fh} $text; close $fh or die "$file: $!"; return }
sub json_file { return JSON::PP->new->utf8->decode(slurp($_[0])) }

# For states of other processes that announce nothing: looks again every 20 ms, in vain for two minutes unless told.
sub wait_until {
    my ($cond, $seconds) = ref $_[0] ? @_ : $_[1]; # a limit that stands first is not needed
    my $end = time + ($seconds // 120);
    while (1) {
        my $r = $cond->();
        return $r if $r || time >= $end;
        select undef, undef, undef, 0.02;
    }
}

# One value, or rows joined by newlines and '|', from a database.
sub psql {
    my ($url, $sql) = @_;
    open my $fh, '-|', 'psql', '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', $url, '-c', $sql or die "psql: $!";
    my $out = do { local $/; <$fh> } // '';
    close $fh or die "psql failed: $sql";
    chomp $out;
    return $out;
}

package Sim::Stack;
# A stack of our own in a private folder, taken down when the object goes, when the test dies and when it is ended by a
# signal. The folder outlives the stack: File::Temp's own clean-up would come first and leave the processes behind.
use strict;
use warnings;
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use Scalar::Util qw(refaddr weaken);

my %live;
my $main = $$;
$SIG{$_} //= sub { $$ == $main ? exit 1 : POSIX::_exit(1) } for qw(INT TERM HUP); # so that END runs
END { local $?; $_ && $_->close for values %live; remove_tree($tmp) if $$ == $main }

sub new {
    my ($class, @args) = @_;
    my $self = bless { dir => tempdir(), owner => $$ }, $class;
    weaken($live{ refaddr $self } = $self);
    $self->up(@args);
    return $self;
}

sub up {
    my ($self, @args) = @_;
    my $r = $self->stack('up', @args);
    die "sim stack up failed ($r->{status}):\n$r->{out}$r->{err}" if $r->{status} ne '0';
    $self->{env}{$1} = $2 while $r->{out} =~ /^export (\w+)='?(.*?)'?$/mg;
    return $r;
}

sub env { return $_[0]{env} }
# The target's variables, in the stack's folder; dir and single variables of env can be replaced ('' counts as unset).
sub options { my ($self, %opt) = @_; return (dir => $self->{dir}, %opt, env => { %{ $self->{env} // {} }, %{ $opt{env} // {} } }) }
sub sim { my ($self, $args, %opt) = @_; return Sim::sim($args, $self->options(%opt)) }
sub start { my ($self, $args, %opt) = @_; return Sim::sim_start($args, $self->options(%opt)) }
# As somebody who gave everything but the bucket: while the store stands still, nothing can be proven of it. In a folder
# of its own, as this one's .sim/env names it.
sub start_without_bucket {
    my ($self, $args) = @_;
    my $dir = "$self->{dir}/without-bucket";
    mkdir $dir or -d $dir or die "$dir: $!";
    return $self->start($args, dir => $dir, env => { map { $_ => '' } grep { /^TMA_LOAD_S3_/ } keys %{ $self->env } });
}
sub sql { my ($self, $sql) = @_; return Sim::psql($self->{env}{DATABASE_URL}, $sql) }
sub stack { my ($self, @args) = @_; return Sim::sim(['stack', @args], dir => $self->{dir}) }

# The npm store's file that holds an object's bytes.
sub object_file {
    my ($self, $key) = @_;
    my ($found) = split /\n/, `find '$self->{dir}/.sim' -type f -path '*$key*' -name '*_object'`;
    die "no file for object $key" unless $found;
    return $found;
}

sub close {
    my ($self) = @_;
    return if $$ != $self->{owner} || $self->{closed}++;
    local ($?, $@);
    my $r = $self->stack('down');
    warn "sim stack down failed ($r->{status}), see $self->{dir}: $r->{err}" if $r->{status} ne '0';
    remove_tree($self->{dir}) if $r->{status} eq '0';
    delete $live{ refaddr $self };
    return;
}
sub DESTROY { $_[0]->close; return }

1;
