#ifndef LOCALE_COMMA_H
#define LOCALE_COMMA_H
/* A locale with a decimal comma for the tests of case X01: an installed one, else one compiled for the moment into a
 * temporary folder by localedef (package "locales"). False when the machine has neither: the test is then skipped. */
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline bool locale_has_comma(const char *name)
{
    return setlocale(LC_ALL, name) && strcmp(localeconv()->decimal_point, ",") == 0;
}

static inline bool locale_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "pl_PL.UTF-8", "de_DE"};
    static char dir[] = "/tmp/locale-XXXXXX";
    char command[200];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (locale_has_comma(names[i]))
            return true;
    if (!mkdtemp(dir))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", dir);
    bool made = system(command) == 0 && setenv("LOCPATH", dir, 1) == 0 && locale_has_comma("de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 && made;
}

static inline void locale_plain(void)
{
    setlocale(LC_ALL, "C");
}
#endif
