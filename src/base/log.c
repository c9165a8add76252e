/* A line is put together in memory and leaves in one write(2), so that lines of several threads and processes that
 * share stderr do not mix. */
#include "base/log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static struct {
    pthread_mutex_t lock;
    enum log_level level;
    char *trace;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    pthread_mutex_lock(&state.lock);
    state.level = level;
    pthread_mutex_unlock(&state.lock);
}

bool log_level_parse(const char *s, enum log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (strcmp(s, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

void log_set_trace(const char *spec)
{
    pthread_mutex_lock(&state.lock);
    mem_free(state.trace);
    state.trace = mem_strdup(spec);
    pthread_mutex_unlock(&state.lock);
}

/* The last word on a module wins; -1: the list does not name it. */
static int traced(const char *module)
{
    struct sv rest = sv_of(state.trace), word;
    int verdict = -1;

    while (sv_split(&rest, ',', &word)) {
        bool off = sv_starts(word, SV("-"));
        struct sv name = off ? (struct sv){word.p + 1, word.n - 1} : word;
        if (sv_eq_cstr(name, module) || sv_eq_cstr(name, "all"))
            verdict = !off;
    }
    return verdict;
}

static bool enabled_locked(enum log_level level, const char *module)
{
    if (level == LOG_DEBUG && state.trace) {
        int verdict = traced(module);
        if (verdict >= 0)
            return verdict;
    }
    return level <= state.level;
}

bool log_enabled(enum log_level level, const char *module)
{
    pthread_mutex_lock(&state.lock);
    bool on = enabled_locked(level, module);
    pthread_mutex_unlock(&state.lock);
    return on;
}

void log_write(enum log_level level, const char *module, const char *fmt, ...)
{
    char stamp[32], text[LINE_MAX_BYTES];
    struct buf line = BUF_INIT(2 * LINE_MAX_BYTES);
    va_list ap;

    pthread_mutex_lock(&state.lock);
    if (!enabled_locked(level, module))
        goto out;
    va_start(ap, fmt);
    str_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    secret_hide_in(text, sizeof text);
    if (buf_appendf(&line, "%s %-5s %s: ", wall_format(stamp, sizeof stamp, wall_now()), level_names[level], module) ||
        str_escape(&line, sv_of(text), LINE_MAX_BYTES) || buf_append_char(&line, '\n'))
        goto out;
    (void)!file_write_all(STDERR_FILENO, (struct sv){line.data, line.len}); /* or nobody is left to be told */
out:
    pthread_mutex_unlock(&state.lock);
    buf_done(&line);
}
