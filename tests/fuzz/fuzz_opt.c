/* The command line: arguments are the input's lines. Whatever they are, the answer is a filled struct within its bounds
 * or a sentence that a terminal can show. */
#include "base/opt.h"
#include "base/str.h"
#include "base/utf8.h"
#include "drive/result/result.h"
#include "fuzz.h"

struct conf {
    int64_t apps, size, wait_us;
    double rate;
    bool quiet;
    const char *json;
    struct opt_list fail_on;
};
static const struct opt_pos positionals[] = {
    {"apps", OPT_INT, offsetof(struct conf, apps), 1, 100000, false, "apps"},
    {"rate", OPT_NUM, offsetof(struct conf, rate), 0, 600, true, "rate"},
    {0},
};
static const struct opt options[] = {
    {"size", 's', "SIZE", OPT_SIZE, offsetof(struct conf, size), 1, 1073741824, "size"},
    {"wait", 'w', "TIME", OPT_DURATION, offsetof(struct conf, wait_us), 0, 3600e6, "time"},
    {"quiet", 'q', NULL, OPT_FLAG, offsetof(struct conf, quiet), 0, 0, "quiet"},
    {"json", 0, "FILE", OPT_STR, offsetof(struct conf, json), 0, 0, "json"},
    {"fail-on", 0, "COND", OPT_LIST, offsetof(struct conf, fail_on), 0, 0, "condition"},
    {0},
};
static const struct opt_table table = {positionals, options, 0};

static void must_be_showable(const char *text)
{
    MUST(text[0] && utf8_valid(sv_of(text)));
    for (const char *c = text; *c; c++)
        MUST((unsigned char)*c >= 0x20 && *c != 0x7F);
}

/* The last alone: each is looked up in a whole result. */
static void judge_threshold(const struct opt_list *exprs)
{
    struct result r;

    result_init(&r, "fuzz");
    struct errinfo ei = {0};
    if (result_threshold(&r, exprs->items[exprs->n - 1], &ei))
        must_be_showable(ei.msg);
    result_judge(&r);
    result_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), *rest = text, *argv[34] = {text};
    struct conf c = {.apps = 1, .size = 1};
    struct errinfo ei = {0};
    bool help;
    int argc = 1;

    while (rest && argc < 33)
        argv[argc++] = strsep(&rest, "\n");
    if (opt_parse(argc, argv, &table, 1, &c, &help, &ei)) {
        must_be_showable(ei.msg);
    } else {
        MUST(c.apps >= 1 && c.apps <= 100000);
        MUST(c.rate >= 0 && c.rate <= 600);
        MUST(c.size >= 1 && c.size <= 1073741824);
        MUST(c.wait_us >= 0 && c.wait_us <= INT64_C(3600000000));
        if (!help && c.fail_on.n)
            judge_threshold(&c.fail_on);
    }
    opt_done(&table, 1, &c);
    mem_free(text);
    return 0;
}
