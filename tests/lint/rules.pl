#!/usr/bin/perl
# The rules of the house that a compiler does not know: ranks, owners of third-party headers, banned functions, sizes,
# guards. Prints FILE:LINE: what is wrong, and exits 1 when anything is. Usage: rules.pl ROOT [FILE…]
use strict;
use warnings;

my ($root, @files) = @ARGV;
my $whole = !@files; # what nobody calls is seen only where all is seen
chdir $root or die "$root: $!\n";
@files = grep { m{\.[ch]$} } split /\n/, `git ls-files` unless @files;

# A file includes its own folder and lower ranks only.
my %rank = (base => 0, net => 10, store => 15, drive => 20, server => 30, seed => 30, sim => 30, checks => 30, main => 40, tests => 50);

# Of drive, the server knows only the words it shares with the checks (a bug must not excuse itself) and how a command looks.
my %server_knows = map { $_ => 1 } qw(model path wire schema cmd);

# One owner for each third-party header.
my @owners = (
    [qr{^curl/} => qr{^src/net/httpc|^src/net/http_url}],
    [qr{^libssh2} => qr{^src/net/ssh}],
    [qr{^libpq-fe} => qr{^src/store/pg}],
    [qr{^hiredis/} => qr{^src/store/kv}],
    [qr{^libs3} => qr{^src/store/blob}],
    [qr{^libxml/} => qr{^src/net/xml\.c$}],
    [qr{^cjson/} => qr{^src/base/json\.c$}],
    [qr{^openssl/} => qr{^src/base/(?:digest|aead)\.c$|^src/net/tls\.c$|^tests/unit/test_httpc_tls\.c$}],
    [qr{^http_parser} => qr{^src/server/http/head\.c$|^src/net/stress\.c$}],    # requests, and answers
    [qr{^zlib\.h} => qr{^src/drive/result/hdr\.c$}],
    [qr{^jwt} => qr{^src/server/access/(?:session|token)\.c$}],
    [qr{^crypt\.h} => qr{^src/server/access/password\.c$}],
    [qr{^cmocka} => qr{^tests/}],
);

# In a header of ours no library's types may stand, so that no caller depends on the library; *_int.h and *impl.h are
# shared by the files of one module.
my $third_party = qr{^(?:curl/|libssh2|libpq-fe|hiredis/|libs3|libxml/|cjson/|openssl/|http_parser|jwt|zlib\.h|crypt\.h|ut\w+\.h)};

# name => [why, files that may use it]
my %banned = (
    (map { $_ => ['has no limit: use buf, snprintf or memcpy', qr{^tests/}] } qw(strcpy strcat sprintf vsprintf gets stpcpy)),
    (map { $_ => ['hides bad numbers: use sv_to_i64, sv_to_f64', qr{^tests/}] } qw(atoi atol atoll atof sscanf)),
    (map { $_ => ['follows the locale: use sv_to_f64', qr{^tests/}] } qw(strtod strtof strtold)),
    (map { $_ => ['keeps hidden state: use sv_split', qr{^tests/}] } qw(strtok)),
    (map { $_ => ['is not safe in threads or follows the time zone: use wall_format', undef] } qw(localtime gmtime ctime asctime mktime)),
    (map { $_ => ['makes no repeatable stream: use rng', undef] } qw(rand srand random srandom drand48)),
    (map { $_ => ['changes how numbers are written everywhere', qr{^tests/}] } qw(setlocale)),
    (map { $_ => ['grows the stack without a limit', undef] } qw(alloca strdupa)),
    (map { $_ => ['waits blindly: await the event', qr{^tests/}] } qw(sleep usleep)),
    (map { $_ => ['runs a shell', qr{^tests/}] } qw(system popen)),
    (map { $_ => ['aborts on no memory only in mem.c: use mem_alloc and its kin', qr{^src/base/mem\.c$|^tests/}] } qw(malloc calloc realloc strdup strndup)),
    (map { $_ => ['leaves without the final report: return an error', qr{^sim/main\.c$|^tests/}] } qw(exit)),
);
# Who opens a connection asks net/guard.h first, so that nobody can go round it: these may, and no others.
my %dials = (
    (map { $_ => qr{^src/net/dial\.c$|^src/store/blob\.c$} } qw(connect)),
    (map { $_ => qr{^src/net/(?:dial|httpc_peer)\.c$|^src/store/blob\.c$|^src/server/http/listen\.c$} } qw(getaddrinfo)),
    (map { $_ => qr{^(?!)} } qw(gethostbyname gethostbyname2 PQconnectdb PQconnectdbParams PQconnectStart PQsetdbLogin PQping PQpingParams
                                redisConnect redisConnectWithTimeout redisConnectNonBlock redisConnectWithOptions redisAsyncConnectWithOptions)),
    (map { $_ => qr{^src/store/pg(?:_url)?\.c$} } qw(PQconnectStartParams)),
    (map { $_ => qr{^src/store/kv\.c$} } qw(redisAsyncConnect redisAsyncConnectUnix)),
    (map { $_ => qr{^src/net/httpc\.c$} } qw(curl_easy_init)),
);
my $asks_guard = qr{\b(?:guard|pg_url)_judge\(};
my $asks_elsewhere = qr{^src/server/http/listen\.c$|^src/net/httpc\.c$}; # nothing is dialled; only httpc_peer.c's origins are

# libs3 calls gmtime() itself; the file that serves it with a safe one defines the wrapper.
my %exempt = ('src/store/blob.c' => { gmtime => 1 });

# Functions that a header declares: at most 15. What offers more is listed with what it has and may only shrink: the word
# lists of base.
my $functions_max = 15;
my %functions = (
    'checks/check.h' => 18,
    'seed/seed.h' => 19,
    'sim/ramp/ramp.h' => 18,
    'src/base/json.h' => 30,
    'src/base/str.h' => 22,
    'src/net/httpc_int.h' => 16,
    'src/net/loop.h' => 16,
);
my $function_lines_max = 60;

# A function that a header offers has a caller. These are offered to the tests and benchmarks, or to scenarios to come.
my %offered = map { $_ => 1 } qw(
    api_restore blob_has_multi_delete content_magic folders_snapshots
    ledger_records loop_run loop_stop names_known rng_lognormal
);

# Names of functions that may suspend: the marked ones of all headers, and in a .c file its own. A function that calls one
# of them is one, unless it is where a coroutine or a thread begins (its only argument is void *), or the blocking end of
# a pipe, which threads use.
my %yields;
my $begins = qr{^\(void \*\w+\)$};
my %never_yields = map { $_ => 1 } qw(main wpipe_write_blocking wpipe_read_blocking);

my $wrong = 0;
sub report { my ($file, $line, $what) = @_; print "$file:$line: $what\n"; $wrong++; return }

sub layer {
    my ($file) = @_;
    return 'main' if $file eq 'sim/main.c';
    return $1 if $file =~ m{^src/(\w+)/} || $file =~ m{^(seed|sim|checks|tests)/};
    return;
}

# Comments and the insides of strings become blanks; lines stay lines.
sub code_only {
    my ($text) = @_;
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}{
        my $t = $1 // $2; my $string = defined $2;
        $t =~ s/[^\n]/ /g; $string ? '"' . substr($t, 2) . '"' : $t }gse;
    return $text;
}

sub check_includes {
    my ($file, $line, $from, $text) = @_;
    if ($text =~ /^\s*#\s*include\s+"([^"]+)"/) {
        my $target = $1;
        return if $file =~ m{^tests/} && $target !~ m{/};
        my ($to) = $target =~ m{^(\w+)/};
        return report($file, $line, "\"$target\" does not say its layer: write \"layer/file.h\"") unless defined $to && exists $rank{$to};
        report($file, $line, "$from (rank $rank{$from}) includes $target (rank $rank{$to}): only lower ranks and its own folder")
            if $to ne $from && $rank{$to} >= $rank{$from} && !($from eq 'main' && $to eq 'sim');
        my ($ground) = $file =~ m{^(sim/(?:app|watch))/};
        report($file, $line, "$ground is what the scenarios stand on: it must not know $target")
            if $ground && $target =~ m{^sim/} && $target !~ m{^sim/(?:app|watch)/};
        report($file, $line, "the server must not know $target: it shares only @{[sort keys %server_knows]}")
            if $from eq 'server' && $target =~ m{^drive/([\w/]+)\.h$} && !$server_knows{$1};
    }
    elsif ($text =~ /^\s*#\s*include\s+<([^>]+)>/) {
        my $target = $1;
        report($file, $line, "<$target> stands in a header: callers would depend on the library") if $file =~ /\.h$/ && $target =~ $third_party && $file !~ m{^tests/|(?:_int|_?impl)\.h$};
        for my $owner (@owners) {
            report($file, $line, "<$target> belongs to another file") if $target =~ $owner->[0] && $file !~ $owner->[1] && ($file !~ m{^tests/} || $target =~ /cmocka/);
        }
    }
    return;
}

sub check_code {
    my ($file, $line, $text) = @_;
    while ($text =~ /\b([A-Za-z]\w*)\s*\(/g) {
        my $name = $1;
        report($file, $line, "$name() opens a connection that net/guard.h was not asked about") if $dials{$name} && $file !~ $dials{$name} && $file !~ m{^tests/};
        my $rule = $banned{$name} or next;
        next if ($rule->[1] && $file =~ $rule->[1]) || $exempt{$file}{$name};
        report($file, $line, "$name() $rule->[0]");
    }
    report($file, $line, 'passes the guard of secrets by: use the stream, file_replace or secret_fopen')
        if $file !~ m{^(?:tests/|src/base/(?:secret|log|file|own_tree))} && $text =~ /\bdprintf\s*\(|\bwrite\s*\(\s*STD(?:OUT|ERR)_FILENO/;
    report($file, $line, 'a struct is named by its tag: no typedef') if $text =~ /\btypedef\s+(?:struct|union)\b/;
    return;
}

sub check_dials {
    my ($file, $code) = @_;
    my ($dials) = grep { $dials{$_} } $code =~ /\b([A-Za-z]\w*)\s*\(/g;
    report($file, 1, "$dials() is called, guard_judge() is not") if $dials && $code !~ $asks_guard;
    return;
}

sub check_guard {
    my ($file, $text) = @_;
    (my $name = $file) =~ s{^(?:src|tests/\w+)/}{};
    ($name = uc $name) =~ s/\W/_/g;
    report($file, 1, "guard is not $name") unless $text =~ /\A#ifndef (\w+)\n#define \1\n/ && ($1 eq $name || $file =~ m{^tests/});
    report($file, 3, 'no comment says what the module is') unless $text =~ m{\A#ifndef \w+\n#define \w+\n(?:/\*|#include[^\n]*\n/\*)};
    return;
}

# Its declarations: name and whole text of each. Without preprocessor lines and bodies.
sub declared {
    my ($code) = @_;
    $code =~ s/^[ \t]*#(?:[^\n]*\\\n)*[^\n]*//mg;
    1 while $code =~ s/\{[^{}]*\}/;/g;
    return map { /^\s*(?!typedef)[^(=]*?\b(\w+)\(\s*[^*\s]/ ? [$1, $_] : () } split /;/, $code;
}

sub check_header {
    my ($file, $code) = @_;
    my @declared = declared($code);
    my $most = $functions{$file} // $functions_max;
    report($file, 1, "declares @{[scalar @declared]} functions: at most $most") if @declared > $most;
    for (@declared) {
        my ($name, $text) = @$_;
        report($file, 1, "$name tells why it failed, but its result may be ignored: WARN_UNUSED")
            if $text =~ /^\s*(?:MAY_YIELD\s+)?enum err\s/ && $text =~ /struct errinfo \*\w+\)/ && $text !~ /WARN_UNUSED/ && $name !~ /^err_/;
    }
    return;
}

# Functions of a .c file: name, signature, arguments, body, first line.
sub functions {
    my ($code) = @_;
    my @found;
    while ($code =~ /^(\w[^;{}=]*?\b(\w+)(\([^;{}]*\)))\n\{\n(.*?)^\}/msg) {
        push @found, { name => $2, sig => $1, args => $3, body => $4, line => 1 + (substr($code, 0, $-[0]) =~ tr/\n//) };
    }
    return @found;
}

sub marked { my ($code, $prefix) = @_; return $code =~ /^${prefix}MAY_YIELD [^;{(]*?\b(\w+)\(/mg }

sub check_functions {
    my ($file, $code) = @_;
    my %static = map { $_ => 1 } $code =~ /^static [^;{}=()]*?\b(\w+)\(/mg;
    my %marked = map { $_ => 1 } marked($code, 'static ');
    for my $f (functions($code)) {
        my $lines = 3 + ($f->{body} =~ tr/\n//) + ($f->{sig} =~ tr/\n//);
        report($file, $f->{line}, "$f->{name} has $lines lines: at most $function_lines_max") if $lines > $function_lines_max;
        my $static = $f->{sig} =~ /^static /;
        next if ($static ? $marked{ $f->{name} } : $yields{ $f->{name} }) || $f->{args} =~ $begins || $never_yields{ $f->{name} };
        my ($through) = grep { $static{$_} ? $marked{$_} : $yields{$_} } $f->{body} =~ /(?<![.>\w])(\w+)\(/g;
        report($file, $f->{line}, "$f->{name} may yield in $through: MAY_YIELD") if $through;
    }
    return;
}

my %text_of;
for my $file (grep { layer($_) } @files) {
    open my $fh, '<:raw', $file or die "$file: $!\n";
    local $/;
    $text_of{$file} = <$fh>;
    $yields{$_} = 1 for $file =~ /\.h$/ ? marked(code_only($text_of{$file}), '') : ();
}

for my $file (@files) {
    my $from = layer($file) or next;
    my $text = $text_of{$file};
    my $code = code_only($text);
    my @raw = split /\n/, $text, -1;
    my @code = split /\n/, $code, -1;
    my $limit = $file =~ /\.h$/ ? 120 : 600;
    my $lines = $file =~ /\.h$/ ? grep { /\S/ && !/\\$/ } @code : @raw - 1; # a header's comments and table rows are free
    report($file, $limit, 'longer than ' . ($file =~ /\.h$/ ? '120 lines of declarations' : '600 lines')) if $lines > $limit && $file !~ m{^tests/};
    check_guard($file, $text) if $file =~ /\.h$/;
    check_header($file, $code) if $file =~ /\.h$/ && $file !~ m{^tests/};
    check_dials($file, $code) if $file !~ m{^tests/} && $file !~ $asks_elsewhere;
    check_functions($file, $code) if $file =~ /\.c$/ && $file !~ m{^tests/};
    for my $i (0 .. $#raw) {
        check_includes($file, $i + 1, $from, $raw[$i]);
        check_code($file, $i + 1, $code[$i]) if $raw[$i] !~ /^\s*#/;
        report($file, $i + 1, "unfinished: $1") if $raw[$i] =~ /\b(TODO|FIXME|XXX)\b/;
        report($file, $i + 1, 'a path of one machine') if $raw[$i] =~ m{"[^"]*/(?:work/|home/\w+)};
    }
}
# What begins at the margin declares or defines; anything else that names a function uses it.
sub check_callers {
    my (%used, %at);
    for my $file (grep { !m{^tests/} } keys %text_of) {
        my $code = code_only($text_of{$file});
        if ($file =~ /\.h$/) { $at{ $_->[0] } = $file for declared($code) }
        $code =~ s/^\w[^\n(;={]*?\b\w+\(//mg;
        $used{$_} = 1 for $code =~ /\b([a-z]\w*)\b/g;
    }
    for (sort keys %at) {
        report($at{$_}, 1, "$_ is called by nobody: drop it, or list it in %offered") unless $used{$_} || $offered{$_};
        report('tests/lint/rules.pl', 1, "$_ has a caller: it need not be listed") if $used{$_} && $offered{$_};
    }
    return;
}
check_callers() if $whole;
print "$wrong wrong\n" if $wrong;
exit($wrong ? 1 : 0);
