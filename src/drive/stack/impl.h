#ifndef DRIVE_STACK_IMPL_H
#define DRIVE_STACK_IMPL_H
/* What the files of this folder share: a stack, and its parts. A part is a row (struct part_ops, one file each);
 * native.h runs it: prepare, choose a port, start, await its answer, set up. Layer 2. */
#include "base/arena.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"

enum part_id { PART_POSTGRES, PART_REDIS, PART_STORE, PART_SERVER, PART_COUNT };
enum stack_kind { KIND_NONE, KIND_NATIVE, KIND_DOCKER };
#define STACK_BUCKET     "tma-load"
#define STACK_ACCESS_KEY "loadkey"
#define STACK_DB_USER    "tma"
#define STACK_DATABASE   "tma_load"
/* The database's tables, while a fixture is loaded. */
#define STACK_TABLES_FILE "tables.dump"

struct work;
struct part;
struct part_command { /* filled by a part's command(); the arena owns the strings */
    const char **argv, **env;
};
struct part_ops {
    const char *name;
    const char *program;                       /* what it runs; NULL: this program */
    const char *(*folders)(struct arena *mem); /* where it may be, beside PATH; NULL: nowhere else */
    int port;                                  /* of the source document; the next free one when it is taken */
    int stop_signal, stop_grace_s;             /* an orderly end */
    int down_signal;                           /* an end whose data nobody wants; 0: stop_signal */
    bool own_account;                          /* refuses to run as root */
    /* Once a stack, may be repeated: whatever must be there before it can start. May be NULL. */
    MAY_YIELD enum err (*prepare)(struct part *p, struct errinfo *ei);
    enum err (*command)(struct part *p, struct arena *mem, struct part_command *out, struct errinfo *ei);
    /* One try: ERR_OK when it answers and is ours. */
    MAY_YIELD enum err (*answers)(struct part *p, struct errinfo *ei);
    /* Once it answers, may be repeated. May be NULL. */
    MAY_YIELD enum err (*setup)(struct part *p, struct errinfo *ei);
    void (*ended)(struct part *p); /* all its processes are gone: clears what they left behind. May be NULL */
};
struct part {
    const struct part_ops *ops;
    struct stack *stack;
    bool wanted; /* belongs to this stack */
    int port;    /* 0: not chosen yet */
    struct proc proc;
    const char *exe; /* NULL: never started */
    const char *folder, *log;
    bool started_now; /* by this call */
    enum err err;     /* of bringing it up */
    struct errinfo ei;
};
struct stack {
    struct loop *loop;
    struct httpc *http;
    struct work *work;
    struct stack_conf conf;
    struct arena *mem;      /* paths */
    const char *dir, *home; /* absolute; home: dir/.sim */
    int lock_fd;
    enum stack_kind kind;
    bool fresh; /* made by this call */
    struct part parts[PART_COUNT];
    char password[33], s3_secret[41], jwt_secret[65], file_key[65];
    char *server_args;
    char project[40]; /* docker compose's project name */
    bool damaged;     /* stack.json cannot be read: everything is looked for */
    char account[64]; /* who runs what must not run as root; "": not chosen yet */
    _Atomic bool cancelled;
    struct proc tools[PART_COUNT + 1]; /* running, to be killed on cancel */
};
extern const struct part_ops stack_postgres, stack_redis, stack_store, stack_server;

bool stack_store_installed(char *where, size_t n); /* the store's npm package; where: it is, or would be */
/* The part of that name. ERR_USAGE when there is none, ERR_ENV when it is not of this stack. */
enum err stack_find_part(struct stack *s, const char *name, struct part **out, struct errinfo *ei) WARN_UNUSED;
enum err stack_make_sessions(const struct stack *s, struct errinfo *ei) WARN_UNUSED;
void stack_say(struct stack *s, const char *fmt, ...) PRINTF_LIKE(2, 3); /* a line on progress */
void stack_show_log(const struct part *p);                               /* its last lines, on progress */
/* Appends the last lines of a file, escaped. */
void stack_tail(FILE *out, const char *path, int64_t lines);
#endif
