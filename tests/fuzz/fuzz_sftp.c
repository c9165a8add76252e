/* What an SFTP server may send: cut into packets in any pieces alike, and read as every kind of answer. */
#include "fuzz.h"
#include "net/sftp_wire.h"

static void inside(struct sv whole, struct sv part)
{
    MUST(part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n));
}

static void read_as_names(struct sv body)
{
    struct sftp_in in = {.rest = body};
    uint32_t n = sftp_in_u32(&in);
    struct sftp_attrs a;
    struct sv name;
    for (uint32_t i = 0; i < n && sftp_in_entry(&in, &name, &a); i++) {
        inside(body, name);
        MUST(name.n > 0 && !memchr(name.p, '/', name.n));
        MUST(!(sftp_attrs_is_folder(&a) && sftp_attrs_is_file(&a)));
        inside(body, in.rest);
    }
}

static void read_as_status(struct sv body)
{
    struct sftp_in in = {.rest = body};
    (void)sftp_in_u32(&in);
    inside(body, sftp_in_text(&in));
    (void)sftp_in_u64(&in);
    MUST(!in.bad || in.rest.n == 0);
}

/* The same packets whether all bytes are there or only as many as each needs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv rest = {(const char *)data, size};
    struct sftp_packet p, again;
    size_t used = 0, used_again = 0;
    while (sftp_packet_take(rest, &p, &used)) {
        MUST(used > 0 && used <= rest.n);
        inside(rest, p.body);
        if (p.type == 0)
            break;
        struct sv exact = {rest.p, used}, cut = {rest.p, used - 1};
        MUST(sftp_packet_take(exact, &again, &used_again) && used_again == used && again.id == p.id);
        MUST(!sftp_packet_take(cut, &again, &used_again));
        read_as_names(p.body);
        read_as_status(p.body);
        rest.p += used;
        rest.n -= used;
    }
    return 0;
}
