/* Answers whose first header line is a continuation line. Up to 8.0 libcurl appends it to the last header line of the
 * handle's answer before, in freed memory; see httpc_callbacks.c. A plain build may live through that by chance: a row
 * fails there too, because the answer then counts as a good one. */
#include "client.h"

/* Plays one of the rows' answers to "/odd", something usual to all else; each handle has been used before. */
static void play(struct stub *s, int fd, int number)
{
    char head[8192];
    (void)number;
    while (stub_head(s, fd, head, sizeof head))
        stub_send(fd, strncmp(head, "GET /odd", 8) == 0
                          ? s->arg
                          : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Last: of the answer before\r\n\r\nok");
}

static void ask_as_usual(size_t row)
{
    struct http_req req = get_of("/usual");
    struct http_resp r;
    if (perform(peer, &req, &r) != ERR_OK || !sv_eq_cstr(http_resp_header(&r, "X-Last"), "of the answer before"))
        fail_msg("row %zu: a usual request: %s", row, ei.msg);
    http_resp_done(&r);
}

static void a_folded_first_header_line(void **state)
{
    (void)state;
    static struct {
        char answer[200];
        enum err err;
        const char *has; /* of the header block, or of the message */
    } rows[] = {
        {"HTTP/1.1 200 OK\r\n X-Folded: first\r\nContent-Length: 2\r\n\r\nhi", ERR_PROTO, "continues none"},
        {"HTTP/1.1 200 OK\r\n\tX-Folded: first\r\nContent-Length: 2\r\n\r\nhi", ERR_PROTO, "continues none"},
        {"HTTP/1.1 500 No\r\n  X: :\r\n y: z\r\nContent-Length: 0\r\n\r\n", ERR_PROTO, "continues none"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 2\r\n\r\nhi", ERR_PROTO,
         "continues none"},
        {"HTTP/1.1 103 Early\r\n X: 1\r\n\r\nHTTP/1.1 200 OK\r\n Y: 1\r\nContent-Length: 2\r\n\r\nhi", ERR_PROTO,
         "continues none"},
        {"HTTP/1.1 200 OK\r\n X: 1\r\n\r\n", ERR_PROTO, "continues none"},
        {"HTTP/1.1 200 OK\r\nX: 1\r\n folded\r\nContent-Length: 2\r\n\r\nhi", ERR_OK, " folded"},
        {"HTTP/1.1 100 Continue\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nY: 1\r\n folded\r\nContent-Length: 2\r\n\r\nhi",
         ERR_OK, " folded"},
        {"HTTP/1.1 204 OK\r\n\r\n", ERR_OK, "204"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        served_by(play, rows[i].answer);
        ask_as_usual(i);
        struct http_req req = get_of("/odd");
        struct http_resp r;
        enum err err = perform(peer, &req, &r);
        const char *text = rows[i].err == ERR_OK ? buf_cstr(&r.headers) : ei.msg;
        if (err != rows[i].err || strstr(text, rows[i].has) == NULL)
            fail_msg("row %zu: %s, status %d, %s, header %s", i, err_symbol(err), r.status, ei.msg,
                     buf_cstr(&r.headers));
        http_resp_done(&r);
        ask_as_usual(i);
        httpc_peer_free(&peer);
        stub_stop(server);
        server = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_folded_first_header_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
