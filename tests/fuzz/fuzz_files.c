/* Small files that people and other programs write: .env, a list of users, known_hosts, a run's note, counts of an
 * audit log, a mix, a fixture; and the names that generators bear in Redis. The first byte says which; what is read
 * adds up, a refusal says why. */
#include "base/dotenv.h"
#include "base/log.h"
#include "base/own_tree.h"
#include "checks/evidence/journal.h"
#include "drive/stack/manifest.h"
#include "drive/target.h"
#include "folder.h"
#include "net/ssh.h"
#include "sim/app/mix.h"
#include "sim/mix/counts.h"
#include "sim/stop/kill_switch.h"

static char *values[2];

static char **slot(void *arg, struct sv name)
{
    (void)arg;
    return sv_eq(name, SV("A")) ? &values[0] : sv_eq(name, SV("B")) ? &values[1] : NULL;
}

static void read_env(const void *p, size_t n)
{
    struct errinfo ei = {0};
    enum err e = dotenv_read(folder_write("env", p, n), slot, NULL, &ei);
    MUST(e == ERR_OK || (e == ERR_USAGE && ei.msg[0]));
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        MUST(!values[i] || values[i][0]);
        MEM_FREE(values[i]);
    }
}

static void read_users(const void *p, size_t n)
{
    struct target t = {.url = mem_strdup("sftp://127.0.0.1:1")};
    struct errinfo ei = {0};
    char owner[TARGET_LOGIN_MAX + 1];
    enum err e = target_settle(&t, folder_write("users", p, n), &ei);
    MUST(e == ERR_OK || (e == ERR_USAGE && ei.msg[0]));
    for (size_t i = 0; i < t.n_logins; i++)
        MUST(t.logins[i].name[0] && strlen(t.logins[i].name) <= TARGET_LOGIN_MAX);
    MUST(e || (target_logins_given(&t) && target_owner(&t, 0, owner, sizeof(owner))));
    target_done(&t);
}

static void read_known_hosts(const void *p, size_t n)
{
    static struct loop *loop;
    struct ssh_client_conf conf = {.known_hosts = folder_write("known_hosts", p, n)};
    struct ssh_client *c = NULL;
    struct errinfo ei = {0};
    MUST(loop || loop_new(&loop, &ei) == ERR_OK);
    MUST(ssh_client_new(&c, loop, &conf, &ei) == ERR_OK);
    ssh_client_free(&c);
}

static void read_run(const void *p, size_t n)
{
    static const unsigned char head[32] = "DSLEDGER\2";
    struct journal *j = NULL;
    struct errinfo ei = {0};
    folder_write("ledger.bin", head, sizeof(head));
    folder_write("run.json", p, n);
    if (journal_read(folder, &j, &ei) != ERR_OK) {
        MUST(!j && ei.msg[0]);
        return;
    }
    for (uint32_t i = 0; i < j->n_logins + 1; i++) {
        (void)journal_account(j, i);
        MUST(i == j->n_logins || !j->emails[i] || strlen(j->emails[i]) < n);
    }
    journal_free(&j);
}

static void read_name(const void *p, size_t n)
{
    struct generator g, again;
    char name[1024];
    if (!kill_switch_parse_name((struct sv){p, n}, &g))
        return;
    MUST(g.proc.pid > 0);
    kill_switch_client_name(&g, name, sizeof(name));
    MUST(kill_switch_parse_name(sv_of(name), &again) && again.proc.pid == g.proc.pid);
}

static void read_counts(const void *p, size_t n)
{
    static struct mix_counts counts;
    struct errinfo ei = {0};
    struct buf text = BUF_INIT(1 << 20);
    struct mix mix;
    FILE *f = fopen(folder_write("counts.csv", p, n), "r");
    MUST(f);
    enum err e = mix_counts_read(&counts, f, "counts.csv", &ei);
    MUST(e == ERR_OK || (e == ERR_USAGE && ei.msg[0]));
    if (e == ERR_OK && mix_counts_write(&counts, "counts.csv", &text, &ei) == ERR_OK)
        MUST(mix_parse(&mix, "mix", (struct sv){text.data, text.len}, &ei) == ERR_OK);
    fclose(f);
    mix_counts_done(&counts);
    buf_done(&text);
}

static void read_mix(const void *p, size_t n)
{
    struct mix mix;
    struct errinfo ei = {0};
    double sum = 0;
    enum err e = mix_load(&mix, folder_write("mix", p, n), &ei);
    MUST(e == ERR_OK || (e == ERR_USAGE && ei.msg[0]));
    for (size_t i = 0; i < OP_COUNT && !e; i++) {
        MUST(mix.weight[i] >= 0);
        sum += mix.weight[i];
    }
    MUST(e || sum > 0);
}

static void read_manifest(const void *p, size_t n)
{
    struct manifest m, again;
    struct errinfo ei = {0};
    struct buf text = BUF_INIT(64 << 10);
    enum err e = manifest_parse(&m, (struct sv){p, n}, &ei);
    MUST(e == ERR_OK || (e == ERR_ENV && ei.msg[0]));
    MUST(e == ERR_OK || !m.mem);
    if (e == ERR_OK && manifest_text(&m, &text) == ERR_OK) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < m.n_tables; i++)
            bytes += m.tables[i].bytes;
        MUST(bytes == m.database.size);
        MUST(manifest_parse(&again, (struct sv){text.data, text.len}, &ei) == ERR_OK);
        MUST(again.n_tables == m.n_tables && again.n_sequences == m.n_sequences);
        manifest_done(&again);
    }
    manifest_done(&m);
    buf_done(&text);
}

static void read_pack(const void *p, size_t n)
{
    struct pack_sum read, plain;
    struct errinfo ei = {0};
    char out[256];
    const char *file = folder_write("pack", p, n);
    snprintf(out, sizeof(out), "%s/unfolded", folder);
    enum err e = pack_unfold(file, out, 64, NULL, &read, &ei);
    MUST(e == ERR_OK || ei.msg[0]);
    MUST(read.entries <= 65);
    MUST(pack_digest(file, NULL, &plain, &ei) == ERR_OK && plain.size == n);
    MUST(e || memcmp(plain.sha256, read.sha256, sizeof(read.sha256)) == 0);
    MUST(own_tree_remove(out, &ei) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const void *p, size_t n) = {
        read_env, read_users, read_known_hosts, read_run, read_name, read_counts, read_manifest, read_pack, read_mix};
    if (size == 0 || size > 8192)
        return 0;
    char *exact = mem_dup(data + 1, size - 1);
    readers[data[0] % ARRAY_LEN(readers)](exact, size - 1);
    mem_free(exact);
    return 0;
}
