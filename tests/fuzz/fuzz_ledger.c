/* A run folder that somebody else wrote, or a disk that lied: whatever stands in it, reading it ends, stays within its
 * bytes and delivers only records that add up. Inputs that begin with 'r' are the file as it is; others are payloads,
 * each after its length in one byte, which are given checksums here, so that the fuzzer gets behind them. */
#include "checks/evidence/journal.h"
#include "folder.h"

static uint32_t crc32_of(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xedb88320 & (0 - (crc & 1)));
    }
    return ~crc;
}

static void write_run(void)
{
    static const char run[] = "{\"logins\":[\"a@load.test\",null],\"login_accounts\":[0,\"1\"],\"ended\":\"x\"}";
    if (!folder[0])
        folder_write("run.json", run, sizeof run - 1);
}

/* Head and framed records; the length. */
static size_t frame(const uint8_t *data, size_t size, unsigned char *out)
{
    size_t n = 32;
    memset(out, 0, n);
    memcpy(out, "DSLEDGER\2", 9);
    for (size_t at = 0; at < size;) {
        size_t len = data[at++];
        len = len < size - at ? len : size - at;
        out[n] = (unsigned char)len;
        out[n + 1] = 0;
        memcpy(out + n + 2, data + at, len);
        uint32_t crc = crc32_of(out + n, 2 + len);
        for (int i = 0; i < 4; i++)
            out[n + 2 + len + (size_t)i] = (unsigned char)(crc >> (8 * i));
        n += 2 + len + 4;
        at += len;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal *j = NULL;
    struct errinfo ei;
    write_run();
    if (size > 0 && data[0] == 'r') {
        folder_write("ledger.bin", data + 1, size - 1);
    } else {
        unsigned char *framed = mem_alloc(32 + 7 * size + 8);
        folder_write("ledger.bin", framed, frame(data, size, framed));
        mem_free(framed);
    }
    enum err e = journal_read(folder, &j, &ei);
    MUST((e == ERR_OK) == (j != NULL));
    MUST(e == ERR_OK || ei.msg[0]);
    if (!j)
        return 0;
    MUST(j->n + j->n_reads + j->n_notes <= j->end.records);
    MUST(j->n_logins == 2 && journal_account(j, 1) == 1 && journal_account(j, 7) == 0);
    for (size_t i = 0; i < j->n; i++)
        MUST(strlen(j->ops[i].name) <= DRIVE_NAME_MAX && j->ops[i].outcome < OUT_COUNT);
    journal_free(&j);
    MUST(!j);
    return 0;
}
