/* The bound is named from measurements only. Without the server's own figures, a machine that is busy all over is all
 * that can be said: that an account's lock is the cause would be a guess. */
#include "seed/pulse.h"
#include "drive/api/scrape.h"
#include "drive/target.h"
#include "net/guard.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TURNS_FULL   0.80 /* an account whose writer is at work so much of the time has no more to give */
#define OWN_FULL     0.85
#define MACHINE_FULL 0.93

static MAY_YIELD void read_server(struct pulse *p)
{
    const struct http_req req = {.method = "GET", .path = "/metrics", .timeout_us = US_PER_S};
    struct http_resp resp;
    p->server = false;
    if (!p->peer)
        return;
    if (httpc_perform(p->peer, &req, &resp, NULL) == ERR_OK && resp.status == 200) {
        const char *text = buf_cstr(&resp.body);
        p->server = scrape_value(text, "drive_commits_total", &p->commits) &&
                    scrape_value(text, "drive_account_turns_microseconds_total", &p->turns_us);
    }
    bool told = p->server || resp.status == 0; /* no answer now is none for ever */
    http_resp_done(&resp);
    if (!told)
        httpc_peer_free(&p->peer);
}

void pulse_init(struct pulse *p, struct httpc *http, const char *url, struct httpc_counters count)
{
    struct http_url u;
    *p = (struct pulse){0};
    if (http_url_parse(url, &u, NULL))
        return;
    if (guard_is_loopback(u.host) && httpc_peer_new(&p->peer, http, url, NULL, NULL))
        p->peer = NULL;
    if (p->peer)
        httpc_peer_count(p->peer, count);
    http_url_done(&u);
    health_begin(&p->health);
}

void pulse_done(struct pulse *p)
{
    if (p->peer)
        httpc_peer_free(&p->peer);
}

struct pulse_change pulse_take(struct pulse *p)
{
    struct pulse before = *p;
    const struct health_span span = health_lap(&p->health);
    struct pulse_change c = {.machine = span.machine, .own = span.own, .turns = -1, .commits = -1};
    read_server(p);
    if (p->server && before.server && p->turns_us >= before.turns_us) {
        c.turns = (p->turns_us - before.turns_us) / (double)span.us;
        c.commits = (p->commits - before.commits) * 1e6 / (double)span.us;
    }
    return c;
}

void pulse_name(const struct pulse_change *c, size_t accounts, double calls, char *dst, size_t n)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (accounts == 1 && c->turns >= TURNS_FULL)
        snprintf(dst, n, "one account commits one write at a time: %.0f commits/s", c->commits);
    else if (accounts > 1 && c->turns >= TURNS_FULL * (double)accounts)
        snprintf(dst, n, "each of the %zu accounts commits one write at a time: %.0f commits/s", accounts, c->commits);
    else if (c->own >= OWN_FULL)
        snprintf(dst, n, "held up by this program's own CPU");
    else if (c->machine >= MACHINE_FULL)
        snprintf(dst, n, "this machine's %ld CPUs are full, %.0f %% of them by this program", cpus,
                 c->own * 100 / (double)cpus);
    else
        snprintf(dst, n, "held up by the server's answers: %.0f/s", calls);
}
