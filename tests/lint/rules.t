# The rules are rules: each planted violation is named with its file and line, clean code passes.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $rules = dirname(__FILE__) . '/rules.pl';

sub judge {
    my ($file, $text) = @_;
    my $dir = tempdir(CLEANUP => 1);
    make_path("$dir/" . dirname($file));
    open my $fh, '>', "$dir/$file" or die $!;
    print {$fh} $text;
    close $fh;
    my $out = `$^X $rules $dir $file`;
    return ($? >> 8, $out);
}

sub named {
    my ($what, $file, $text, $pattern) = @_;
    my ($status, $out) = judge($file, $text);
    is $status, 1, "$what: refused";
    like $out, $pattern, "$what: named";
    return;
}

sub clean {
    my ($what, $file, $text) = @_;
    my ($status, $out) = judge($file, $text);
    is $status, 0, "$what: accepted" or diag $out;
    return;
}

named('a higher rank', 'src/base/a.c', qq{#include "base/a.h"\n#include "net/loop.h"\n}, qr{^src/base/a\.c:2: base \(rank 0\) includes net/loop\.h}m);
named('a sibling', 'seed/a.c', qq{#include "sim/app/app.h"\n}, qr{^seed/a\.c:1: seed .* includes sim/app/app\.h}m);
named('apps knowing their run', 'sim/app/a.c', qq{#include "sim/run/report.h"\n}, qr{sim/app is what the scenarios stand on: it must not know sim/run/report\.h});
named('the server peeping', 'src/server/a.c', qq{#include "drive/ledger.h"\n}, qr{must not know drive/ledger\.h});
named('no layer', 'sim/a.c', qq{#include "app.h"\n}, qr{does not say its layer});
named('another\'s library', 'sim/a.c', qq{#include <curl/curl.h>\n}, qr{<curl/curl\.h> belongs});
named('a library in a header', 'src/store/pg.h', qq{#ifndef STORE_PG_H\n#define STORE_PG_H\n/* x */\n#include <libpq-fe.h>\n#endif\n}, qr{stands in a header});
named('no limit', 'sim/a.c', "void f(char *d)\n{\n    strcpy (d, \"x\");\n}\n", qr{^sim/a\.c:3: strcpy\(\)}m);
named('leaving', 'sim/run.c', "void f(void)\n{\n    exit(1);\n}\n", qr{exit\(\)});
named('dialling past the guard', 'sim/a.c', "void f(void)\n{\n    PQconnectStart (x);\n}\n", qr{^sim/a\.c:3: PQconnectStart\(\) opens a connection}m);
named('an owner that does not ask', 'src/net/dial.c', "void f(void)\n{\n    connect(x);\n}\n", qr{guard_judge\(\) is not});
clean('an owner that asks', 'src/net/dial.c', "void f(void)\n{\n    if (!guard_judge(h, 0))\n        connect(x);\n}\n");
named('a typedef', 'sim/a.c', "typedef struct x y;\n", qr{typedef});
named('too long', 'sim/a.c', "\n" x 601, qr{600 lines});
named('a long header', 'sim/a.h', "#ifndef SIM_A_H\n#define SIM_A_H\n/* x */\n" . "int f(void);\n" x 120, qr{120 lines});
my $head = "#ifndef SIM_A_H\n#define SIM_A_H\n/* x */\n";
named('a wide header', 'sim/a.h', $head . join('', map { "int f$_(void);\n" } 1 .. 16) . "#endif\n", qr{^sim/a\.h:1: declares 16 functions}m);
clean('fifteen functions, a callback and a body', 'sim/a.h', $head . join('', map { "int f$_(void);\n" } 1 .. 14)
      . "struct s {\n    int (*fn)(void);\n};\nstatic inline int f15(void)\n{\n    return f1();\n}\n#endif\n");
named('an error to be ignored', 'sim/a.h', "${head}MAY_YIELD enum err f(int x,\n    struct errinfo *ei);\n#endif\n", qr{^sim/a\.h:1: f tells why it failed}m);
clean('an error not to be ignored', 'sim/a.h', "${head}enum err f(struct errinfo *ei) WARN_UNUSED;\n#endif\n");
named('a long function', 'sim/a.c', "int a;\nstatic void f(void)\n{\n" . "    g();\n" x 58 . "}\n", qr{^sim/a\.c:2: f has 61 lines}m);
clean('a function of sixty lines', 'sim/a.c', "static void f(void)\n{\n" . "    g();\n" x 57 . "}\n");
my $waits = "static MAY_YIELD void w(int x)\n{\n    x = 0;\n}\n";
named('yielding unsaid', 'sim/a.c', "${waits}static int g(void)\n{\n    w(1);\n    return 0;\n}\n", qr{^sim/a\.c:5: g may yield in w:}m);
clean('yielding said, begun and asked of somebody else', 'sim/a.c', "${waits}static MAY_YIELD void g(void)\n{\n    w(1);\n}\nstatic void lane(void *arg)\n{\n    w(1);\n}\n"
      . "static void h(struct s *s)\n{\n    s->w(1);\n}\n");
named('a wrong guard', 'src/drive/a.h', "#ifndef A_H\n#define A_H\n/* x */\n#endif\n", qr{guard is not DRIVE_A_H});
named('a silent header', 'src/drive/a.h', "#ifndef DRIVE_A_H\n#define DRIVE_A_H\nint x;\n#endif\n", qr{no comment});
named('unfinished', 'sim/a.c', "/* TO" . "DO: later */\n", qr{unfinished});
clean('lower ranks', 'src/server/a.c', qq{#include "base/buf.h"\n#include "net/loop.h"\n#include "server/b.h"\n#include "drive/wire.h"\n#include <string.h>\n});
clean('words in comments and strings', 'sim/a.c', qq{/* strcpy(a) */\nconst char *s = "exit(1) strcpy(x)";\n});
clean('the owner', 'src/net/httpc.c', qq{#include <curl/curl.h>\n});
clean('main', 'sim/main.c', qq{#include "checks/check.h"\n#include "sim/usage.h"\nint main(void)\n{\n    exit(0);\n}\n});

# ---- what is seen in the whole only
{
    my $dir = tempdir(CLEANUP => 1);
    my %files = ('sim/a.h' => "${head}int wanted(int x);\nint unwanted(void);\n#endif\n",
                 'sim/a.c' => qq{#include "sim/a.h"\nint wanted(int x)\n{\n    return x;\n}\nint unwanted(void)\n{\n    return wanted(1);\n}\n},
                 'tests/unit/test_a.c' => qq{#include "sim/a.h"\nint main(void)\n{\n    return unwanted();\n}\n});
    for my $file (sort keys %files) {
        make_path("$dir/" . dirname($file));
        open my $fh, '>', "$dir/$file" or die $!;
        print {$fh} $files{$file};
        close $fh;
    }
    system('git', '-C', $dir, 'init', '-q') == 0 && system('git', '-C', $dir, 'add', '.') == 0 or die 'git';
    my $out = `$^X $rules $dir`;
    is $? >> 8, 1, 'a function without a caller: refused';
    like $out, qr{^sim/a\.h:1: unwanted is called by nobody:}m, 'a function without a caller: named';
    unlike $out, qr{ wanted is called}, 'one with a caller is not';
}

done_testing;
