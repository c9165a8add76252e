/* A result as the summary that people read. */
#include "base/mem.h"
#include "drive/result/impl.h"
#include "drive/stats_told.h"
#include "drive/threshold.h"
#include <string.h>

struct painter {
    FILE *out;
    bool color;
};

static void word(const struct painter *p, bool good, bool bad, const char *text)
{
    const char *paint = !p->color ? "" : good ? "\033[32m" : bad ? "\033[31m" : "\033[33m";

    fprintf(p->out, "  %s%-8s%s ", paint, text, p->color ? "\033[0m" : "");
}

/* What was measured is one of several parts. */
static bool has_window(const struct result *r)
{
    for (size_t i = 0; i < r->phases.n; i++)
        if (strcmp(r->phases.of[i].name, "window") == 0)
            return true;
    return false;
}

static int64_t all_us(const struct result *r)
{
    int64_t us = 0;
    for (size_t i = 0; i < r->phases.n; i++)
        us += r->phases.of[i].us;
    return us;
}

static void print_head(const struct result *r, FILE *out)
{
    char took[32];

    fprintf(out, r->interrupted ? "\nsummary of %s: interrupted after %s" : "\nsummary of %s, %s", r->command,
            str_duration(took, sizeof took, r->seconds_us));
    if (has_window(r))
        fprintf(out, " measured; the table and the requests are of all %s", str_duration(took, sizeof took, all_us(r)));
    if (r->generator.limited)
        fprintf(out, ": the generator was the limit, so its times and rates say nothing about the server: %s",
                r->generator.why);
    else if (r->generator.late)
        fprintf(out, ": its times hold the generator's own delays: %s", r->generator.why);
    fputc('\n', out);
}

/* A line each of what "; " separates. */
static void print_note(const char *note, FILE *out)
{
    const char *head = "note      ";
    for (const char *end; *note; note = *end ? end + 2 : end) {
        end = strstr(note, "; ");
        end = end ? end : note + strlen(note);
        fprintf(out, "%s%.*s\n", head, (int)(end - note), note);
        head = "          ";
    }
}

/* "first_pass" as people read it. */
static const char *spaced(char *dst, size_t n, const char *key)
{
    snprintf(dst, n, "%s", key);
    for (char *c = dst; *c; c++)
        if (*c == '_')
            *c = ' ';
    return dst;
}

/* "          set-up 273 in 2.3 s, window 935 in 1 min 0 s": they add up to the requests above. */
static void print_phases(const struct result *r, FILE *out)
{
    char n[32], took[32], text[120];
    size_t column = 0;
    if (r->phases.n < 2 || !stats_requests(&r->stats))
        return;
    for (size_t i = 0; i < r->phases.n; i++) {
        const struct phase_told *p = &r->phases.of[i];
        size_t len =
            (size_t)str_format(text, sizeof text, "%s %s in %s", p->name, str_thousands(n, sizeof n, p->requests),
                               str_duration(took, sizeof took, p->us));
        bool fits = column && column + len + 2 < 100;
        fprintf(out, "%s%s", fits ? ", " : column ? ",\n          " : "          ", text);
        column = (fits ? column + 2 : 10) + len;
    }
    fputc('\n', out);
}

static void print_requests(const struct stats *s, FILE *out)
{
    char n[32], wait[32], cause[32];
    const char *sep = " (";

    if (!stats_requests(s))
        return;
    fprintf(out, "requests  %s", str_thousands(n, sizeof n, stats_requests(s)));
    for (unsigned c = 0; c < CAUSE_COUNT; c++)
        if (s->by_cause[c]) {
            fprintf(out, "%s%s %s", sep, spaced(cause, sizeof cause, cause_key((enum cause)c)),
                    str_thousands(n, sizeof n, s->by_cause[c]));
            sep = ", ";
        }
    fprintf(out, "%s, failed operations %s\n", *sep == ',' ? ")" : "", str_thousands(n, sizeof n, stats_failed_all(s)));
    if (s->throttled || s->waited_us)
        fprintf(out, "budgets   %s 429, %s waited\n", COUNTED(s->throttled, "answer"),
                str_duration(wait, sizeof wait, s->waited_us));
    if (s->reconnects)
        fprintf(out, "streams   %s\n", COUNTED(s->reconnects, "reconnect"));
}

static const char *section_of(const struct result *r, size_t figure)
{
    return r->figures[figure].section ? r->figures[figure].section : r->command;
}

/* Of a section that counts trouble, all of it 0: nothing to read. */
static bool all_quiet(const struct result *r, const char *section)
{
    if (strcmp(section, "outages") != 0)
        return false;
    for (size_t i = 0; i < r->n_figures; i++)
        if (strcmp(section_of(r, i), section) == 0 && r->figures[i].value != 0)
            return false;
    return true;
}

/* "window    seconds 20.0, requests 141": a section's figures share lines. Their names are those that --fail-on takes.
 */
static void print_figures(const struct result *r, FILE *out)
{
    const char *section = NULL;
    size_t column = 0;
    char text[80];
    bool few = false;

    for (size_t i = 0; i < r->n_figures; i++) {
        const struct result_figure *f = &r->figures[i];
        const char *own = section_of(r, i);
        if (all_quiet(r, own))
            continue;
        few |= f->few.needs > 0;
        if (!section)
            fprintf(out, "figures, by the names that --fail-on takes (%s.%s)\n", own, f->key);
        size_t n =
            (size_t)str_format(text, sizeof text, "%s %s%.*f", f->key, f->few.needs ? "~" : "", f->decimals, f->value);
        bool same = section && strcmp(section, own) == 0;
        if (same && column + n < 100) {
            fprintf(out, ", %s", text);
            column += n + 2;
        } else {
            fprintf(out, "%s%-9s %s", section ? "\n" : "", same ? "" : own, text);
            column = n + 10;
        }
        section = own;
    }
    if (section)
        fputc('\n', out);
    if (few)
        fprintf(out, "          %s\n", HIST_FEW);
}

/* "events    12,345 expected, 12,345 seen, 0 lost, …" */
static void print_events(const struct event_summary *e, FILE *out)
{
    const struct {
        uint64_t n;
        const char *what;
    } parts[] = {{e->expected, "expected"},         {e->seen, "seen"}, {e->lost, "lost"}, {e->duplicate, "duplicate"},
                 {e->out_of_order, "out of order"}, {e->late, "late"}};
    char n[32];
    if (!e->known)
        return;
    fputs("events:  ", out);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        fprintf(out, "%s %s %s", i ? "," : "", str_thousands(n, sizeof n, parts[i].n), parts[i].what);
    if (e->resynced)
        fprintf(out, "; %s covered by a resync", str_thousands(n, sizeof n, e->resynced));
    fputc('\n', out);
}

static void print_summaries(const struct result *r, FILE *out)
{
    char a[32], b[32], c[32];

    if (r->apps.known) {
        fprintf(out, "apps      %s planned", str_thousands(a, sizeof a, r->apps.planned));
        if (!r->caps_known || r->caps & API_CAP_EVENTS)
            fprintf(out, ", streams up %s, at most %s at once", str_thousands(b, sizeof b, r->apps.streams_up),
                    str_thousands(c, sizeof c, r->apps.streams_peak));
        if (r->apps.rss_bytes_per_app > 0)
            fprintf(out, "; %s of memory an app", str_bytes(a, sizeof a, (uint64_t)r->apps.rss_bytes_per_app));
        fputc('\n', out);
    }
    if (r->sessions.kept + r->sessions.signed_in > 0)
        fprintf(out, "sessions  %u kept from before, %u signed in\n", r->sessions.kept, r->sessions.signed_in);
    if (r->generator.known) {
        fprintf(out, "generator %s of CPU, loop lag p99 %s", str_duration(a, sizeof a, r->generator.cpu_us),
                r->generator.lag_p99_us < 0 ? "-" : str_duration(b, sizeof b, r->generator.lag_p99_us));
        if (r->generator.peak_rss_bytes > 0)
            fprintf(out, ", %s of memory at most", str_bytes(c, sizeof c, (uint64_t)r->generator.peak_rss_bytes));
        fputc('\n', out);
    }
    if (r->tree.known) {
        fprintf(out, "tree      %s, %s, %s,", COUNTED(r->tree.folders, "folder"), COUNTED(r->tree.files, "file"),
                str_bytes(c, sizeof c, r->tree.bytes));
        fprintf(out, " depth %llu; %s in %s\n", (unsigned long long)r->tree.depth, COUNTED(r->tree.hot_files, "file"),
                COUNTED(r->tree.hot_folders, "hot folder"));
        if (r->tree.manifest_sha256[0])
            fprintf(out, "manifest  %s\n", r->tree.manifest_sha256);
    }
    if (r->server_peak_rss >= 0)
        fprintf(out, "server    %s of memory at most\n", str_bytes(a, sizeof a, (uint64_t)r->server_peak_rss));
    print_events(&r->events, out);
    print_figures(r, out);
    if (r->run_dir[0])
        fprintf(out, "%-9s %s\n", r->run_holds ? r->run_holds : "ledger", r->run_dir);
    print_note(r->note, out);
}

/* Not run, with nothing to say but why. */
static bool same_reason(const struct check_result *a, const struct check_result *b)
{
    return a->status == CHECK_NOT_RUN && b->status == CHECK_NOT_RUN && !a->n_note && !b->n_note && !a->n_detail &&
           !b->n_detail && a->summary[0] && strcmp(a->summary, b->summary) == 0;
}

static size_t first_of_reason(const struct result *r, size_t check)
{
    size_t i = 0;
    while (i < check && !same_reason(&r->checks[i], &r->checks[check]))
        i++;
    return i;
}

/* The names of the other checks that are not run for the same reason, as one line. */
static void print_likewise(const struct result *r, size_t check, FILE *out)
{
    const char *head = "             likewise ";
    for (size_t i = check + 1; i < r->n_checks; i++)
        if (same_reason(&r->checks[check], &r->checks[i])) {
            fprintf(out, "%s%s", head, r->checks[i].name);
            head = ", ";
        }
    if (head[0] == ',')
        fputc('\n', out);
}

static void print_check(const struct check_result *c, const struct painter *p)
{
    static const char *const words[] = {[CHECK_OK] = "ok", [CHECK_VIOLATED] = "VIOLATED", [CHECK_NOT_RUN] = "not run"};
    char n[32], wrong[32];

    word(p, c->status == CHECK_OK, c->status == CHECK_VIOLATED, words[c->status]);
    fprintf(p->out, "%-12s", c->name);
    if (c->summary[0])
        fprintf(p->out, " %s", c->summary);
    else if (c->status != CHECK_NOT_RUN)
        fprintf(p->out, " %s examined, %s wrong", str_thousands(n, sizeof n, c->examined),
                str_thousands(wrong, sizeof wrong, c->wrong));
    fputc('\n', p->out);
    for (size_t k = 0; k < c->n_note; k++)
        fprintf(p->out, "             %s\n", c->note[k]);
    for (size_t k = 0; k < c->n_detail; k++)
        fprintf(p->out, "             %s\n", c->detail[k]);
    if (c->wrong > c->n_detail && c->n_detail)
        fprintf(p->out, "             and %s more\n", str_thousands(n, sizeof n, c->wrong - c->n_detail));
}

/* A row each; those that are not run for one reason share a row. */
static void print_checks(const struct result *r, const struct painter *p)
{
    if (r->n_checks)
        fprintf(p->out, "checks\n");
    for (size_t i = 0; i < r->n_checks; i++) {
        if (first_of_reason(r, i) < i)
            continue;
        print_check(&r->checks[i], p);
        print_likewise(r, i, p->out);
    }
}

static void print_thresholds(const struct result *r, const struct painter *p)
{
    static const char *const words[] = {[THRESHOLD_MET] = "ok",
                                        [THRESHOLD_MISSED] = "MISSED",
                                        [THRESHOLD_NO_SAMPLES] = "MISSED",
                                        [THRESHOLD_NOT_JUDGED] = "unknown"};
    char found[160];

    if (r->n_thresholds)
        fprintf(p->out, "thresholds\n");
    for (size_t i = 0; i < r->n_thresholds; i++) {
        const struct threshold *t = &r->thresholds[i];
        word(p, t->state == THRESHOLD_MET, t->state != THRESHOLD_MET && t->state != THRESHOLD_NOT_JUDGED,
             words[t->state]);
        fprintf(p->out, "%s (%s)\n", t->text, threshold_found(t, found, sizeof found));
    }
}

static void print_verdict(const struct result *r, const struct painter *p)
{
    struct result_verdict v = result_verdict(r);
    char text[VERDICT_TEXT_MAX];
    const char *paint = result_is_bad(&v) ? "\033[31m" : v.not_judged ? "\033[33m" : "\033[32m";

    if (!v.known)
        return;
    result_verdict_text(r, text);
    int n = (int)strcspn(text, ":,");
    fprintf(p->out, "%s%.*s%s%s\n", p->color ? paint : "", n, text, p->color ? "\033[0m" : "", text + n);
}

static bool any_calls(const struct stats *s)
{
    for (unsigned i = 0; i < OP_COUNT; i++)
        if (stats_calls(s, (enum drive_op)i))
            return true;
    return false;
}

/* A command that only sets something up has nothing to sum up. */
static bool anything_to_tell(const struct result *r)
{
    return any_calls(&r->stats) || r->tree.known || r->n_checks || r->n_figures || r->n_thresholds;
}

void result_print(const struct result *r, FILE *out, bool color)
{
    struct painter p = {out, color};

    if (!anything_to_tell(r))
        return;
    print_head(r, out);
    if (any_calls(&r->stats))
        stats_print_table(&r->stats, out, color);
    print_requests(&r->stats, out);
    print_phases(r, out);
    print_summaries(r, out);
    print_checks(r, &p);
    print_thresholds(r, &p);
    stats_print_reasons(&r->stats, out, 10);
    print_verdict(r, &p);
}
