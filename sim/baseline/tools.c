/* Disk and network by the tools that everybody trusts for it, their JSON read: fio and iperf3. */
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own_tree.h"
#include "drive/proc.h"
#include "net/guard.h"
#include "sim/baseline/baseline.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOOL_GRACE_US (60 * US_PER_S) /* beyond the time that the tool was asked to measure: fio lays out its file */
#define REPORT_MAX    (4u << 20)

static enum err missing(const char *tool, struct errinfo *ei)
{
    return err_set(ei, ERR_USAGE, "%s is not installed: apt-get install %s", tool, tool);
}

/* A private folder for what the tools write; the caller removes it. */
static enum err scratch(const char *in, char dir[300], struct errinfo *ei)
{
    snprintf(dir, 300, "%s/drivesim-baseline-XXXXXX", in);
    return own_tree_make_temporary(dir, NULL, ei);
}

static void unscratch(const char *dir)
{
    struct errinfo ei;
    if (own_tree_remove(dir, &ei))
        LOGW("baseline", "%s", err_message(&ei));
}

static enum err read_report(const char *path, const char *tool, struct json **out, struct errinfo *ei)
{
    struct buf text = BUF_INIT(REPORT_MAX);
    enum err e = file_read(path, &text, ERR_ENV, ei);
    if (e == ERR_OK && json_parse(buf_cstr(&text), text.len, out, NULL) != ERR_OK)
        e = err_set(ei, ERR_ENV, "the report of %s is not JSON", tool);
    buf_done(&text);
    return e;
}

/* The last line of what the tool said, for the sentence. */
static void last_words(const char *path, char dst[160])
{
    char line[160];
    FILE *f = fopen(path, "rbe");
    dst[0] = '\0';
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            memcpy(dst, line, sizeof(line));
    }
    if (f)
        fclose(f);
}

static MAY_YIELD enum err run_tool(struct baseline *b, const char *const *argv, const char *dir, struct errinfo *ei)
{
    char log[330], words[160];
    int status = 0;
    if (baseline_stopped(b))
        return ERR_INTERRUPTED;
    snprintf(log, sizeof(log), "%s/log", dir);
    const struct proc_spec spec = {.argv = argv, .cwd = ".", .log = log, .dies_with_us = true};
    enum err e = proc_run(b->ctx->loop, &spec, mono_add(mono_now(), b->each_us + TOOL_GRACE_US), &b->tool, &status, ei);
    if (baseline_stopped(b))
        return ERR_INTERRUPTED;
    if (e != ERR_OK || status == 0)
        return e;
    last_words(log, words);
    return err_set(ei, ERR_ENV, "%s ended with status %d: %s", argv[0], status, words);
}

/* ---- disk ---- */

static const struct disk_job {
    enum base_row row;
    const char *rw, *size, *depth, *sync;
    const char *figure; /* of the report's "write" */
    double scale;
} disk_jobs[] = {
    {BASE_DISK_IOPS, "randwrite", "4k", "32", "0", "iops", 1},
    {BASE_DISK_16K, "randwrite", "16k", "32", "0", "bw_bytes", 1e-6},
    {BASE_DISK_1M, "write", "1m", "8", "0", "bw_bytes", 1e-6},
    {BASE_DISK_FSYNC, "write", "4k", "1", "1", "iops", 1},
};

static MAY_YIELD enum err fio(struct baseline *b, const struct disk_job *j, const char *dir, bool direct,
                              struct errinfo *ei)
{
    char file[330], out[350], runtime[40], bs[40], depth[40], sync[40], rw[40], report[330];
    snprintf(file, sizeof(file), "--filename=%s/data", dir);
    snprintf(report, sizeof(report), "%s/report", dir);
    snprintf(out, sizeof(out), "--output=%s", report);
    snprintf(runtime, sizeof(runtime), "--runtime=%lld", (long long)((b->each_us + US_PER_S - 1) / US_PER_S));
    snprintf(bs, sizeof(bs), "--bs=%s", j->size);
    snprintf(depth, sizeof(depth), "--iodepth=%s", j->depth);
    snprintf(sync, sizeof(sync), "--fsync=%s", j->sync);
    snprintf(rw, sizeof(rw), "--rw=%s", j->rw);
    const char *argv[] = {"fio",
                          "--name=drivesim",
                          "--thread", /* its jobs as processes would have a session each, and outlive it */
                          file,
                          out,
                          "--output-format=json",
                          rw,
                          bs,
                          depth,
                          sync,
                          "--ioengine=libaio",
                          "--size=128m",
                          "--time_based",
                          runtime,
                          direct ? "--direct=1" : "--direct=0",
                          NULL};
    enum err e = run_tool(b, argv, dir, ei);
    struct json *root = NULL;
    double value = 0;
    if (e == ERR_OK)
        e = read_report(report, "fio", &root, ei);
    if (e == ERR_OK && !json_f64(json_get(json_get(json_first(json_get(root, "jobs")), "write"), j->figure), &value))
        e = err_set(ei, ERR_ENV, "the report of fio has no figure \"%s\"", j->figure);
    json_free(&root);
    if (e == ERR_OK)
        baseline_set(b, j->row, value * j->scale);
    return e;
}

enum err baseline_disk(struct baseline *b, struct errinfo *ei)
{
    char dir[300], where[300];
    if (!proc_which("fio", NULL, where, sizeof(where)))
        return missing("fio", ei);
    enum err e = scratch(b->dir, dir, ei);
    if (e != ERR_OK)
        return e;
    bool direct = true;
    for (size_t i = 0; i < ARRAY_LEN(disk_jobs) && e == ERR_OK && !baseline_stopped(b); i++) {
        e = fio(b, &disk_jobs[i], dir, direct, ei);
        if (e == ERR_ENV && direct && i == 0) { /* not every file system lets the page cache be passed by */
            direct = false;
            e = fio(b, &disk_jobs[i], dir, direct, ei);
        }
    }
    if (e == ERR_OK && !direct)
        str_fit(b->why[LAYER_DISK], sizeof(b->why[0]), "through the page cache: this file system has no direct writes");
    unscratch(dir);
    return e;
}

/* ---- network ---- */

/* "host:port", "host", "[::1]:port" or "::1"; iperf3's own port is 5201. */
static bool split_host(const char *text, char host[256], char port[16])
{
    const char *bracket = *text == '[' ? strchr(text, ']') : NULL, *colon = strrchr(text, ':');
    int64_t number = 5201;
    if (bracket ? colon < bracket : colon && strchr(text, ':') != colon)
        colon = NULL;
    const char *from = bracket ? text + 1 : text, *to = bracket ? bracket : colon ? colon : text + strlen(text);
    bool good = (*text != '[' || bracket) && to > from && to - from < 256 &&
                (!colon || sv_to_i64(sv_of(colon + 1), &number)) && number >= 1 && number <= 65535 &&
                (!bracket || bracket[1] == (colon ? ':' : '\0'));
    str_format(host, 256, "%.*s", good ? (int)(to - from) : 0, from);
    str_format(port, 16, "%d", good ? (int)number : 0);
    return good && host[strcspn(host, "/@ \t")] == '\0';
}

enum err baseline_judge_iperf(const char *text, struct errinfo *ei)
{
    char host[256], port[16];
    return !text || split_host(text, host, port)
               ? ERR_OK
               : err_set(ei, ERR_USAGE, "--iperf takes HOST[:PORT], not \"%s\"", SHOWN(sv_of(text)));
}

/* A port that was free a moment ago. */
static enum err free_port(char port[16], struct errinfo *ei)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
              getsockname(fd, (struct sockaddr *)&a, &(socklen_t){sizeof(a)}) == 0;
    if (fd >= 0)
        close(fd);
    snprintf(port, 16, "%d", ntohs(a.sin_port));
    return ok ? ERR_OK : err_sys(ei, ERR_ENV, "no free port");
}

static MAY_YIELD enum err start_server(struct baseline *b, const char *port, const char *dir, struct proc *server,
                                       struct errinfo *ei)
{
    char log[330];
    int pidfd = -1;
    snprintf(log, sizeof(log), "%s/log", dir);
    const char *const argv[] = {"iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, NULL};
    const struct proc_spec spec = {.argv = argv, .cwd = ".", .log = log, .dies_with_us = true};
    enum err e = proc_start(&spec, server, &pidfd, ei);
    if (e != ERR_OK)
        return e;
    close(pidfd);
    int64_t number = 0;
    (void)sv_to_i64(sv_of(port), &number);
    for (struct mono until = mono_add(mono_now(), 10 * US_PER_S); !proc_listens(server, (int)number);) {
        if (!proc_alive(server) || mono_passed(until))
            return err_set(ei, ERR_ENV, "iperf3 -s does not listen on port %s", port);
        coro_sleep_until(b->ctx->loop, mono_add(mono_now(), 20 * US_PER_MS));
    }
    return ERR_OK;
}

static MAY_YIELD enum err iperf(struct baseline *b, const char *host, const char *port, const char *dir,
                                struct errinfo *ei)
{
    char seconds[16], report[330];
    struct json *root = NULL;
    double bits = 0;
    snprintf(seconds, sizeof(seconds), "%lld", (long long)((b->each_us + US_PER_S - 1) / US_PER_S));
    snprintf(report, sizeof(report), "%s/report", dir);
    const char *const argv[] = {"iperf3", "-c", host,    "-p", port,        "-P",   "8", "-i",
                                "0",      "-t", seconds, "-J", "--logfile", report, NULL};
    enum err e = run_tool(b, argv, dir, ei);
    enum err read = read_report(report, "iperf3", &root, e == ERR_OK ? ei : NULL);
    const char *problem = json_str(json_get(root, "error"));
    if (problem && e != ERR_INTERRUPTED)
        e = err_set(ei, ERR_ENV, "iperf3 to %s port %s: %s", host, port, problem);
    else if (e == ERR_OK && (e = read) == ERR_OK &&
             !json_f64(json_get(json_get(json_get(root, "end"), "sum_received"), "bits_per_second"), &bits))
        e = err_set(ei, ERR_ENV, "the report of iperf3 has no sum");
    json_free(&root);
    if (e == ERR_OK)
        baseline_set(b, BASE_NET, bits / 8e6);
    return e;
}

enum err baseline_network(struct baseline *b, struct errinfo *ei)
{
    char dir[300], where[300], host[256] = "127.0.0.1", port[16];
    struct proc server = {0};
    if (!proc_which("iperf3", NULL, where, sizeof(where)))
        return missing("iperf3", ei);
    if (b->iperf)
        (void)!split_host(b->iperf, host, port);
    enum err e = guard_judge(host, ei);
    if (e == ERR_OK)
        e = scratch(b->dir, dir, ei);
    if (e != ERR_OK)
        return e;
    if (!b->iperf) {
        e = free_port(port, ei);
        if (e == ERR_OK)
            e = start_server(b, port, dir, &server, ei);
        str_fit(b->why[LAYER_NETWORK], sizeof(b->why[0]),
                "within this machine: start iperf3 -s on the server and name it with --iperf HOST");
    }
    if (e == ERR_OK)
        e = iperf(b, host, port, dir, ei);
    if (server.pid && proc_end(b->ctx->loop, &server, 1, 15, US_PER_S, NULL) != ERR_OK)
        proc_kill_session(&server);
    unscratch(dir);
    return e;
}
