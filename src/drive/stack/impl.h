#ifndef DRIVE_STACK_IMPL_H
#define DRIVE_STACK_IMPL_H
/* What the files of this folder share. A part of the native stack is a row of stack_parts (one file each);
 * stack/native.c runs it: prepare, choose a port, start, await its answer, set up. */
#include "base/arena.h"
#include "drive/account.h"
#include "drive/proc.h"
#include "drive/stack/stack.h"
#include "store/blob.h"

enum part_id { PART_POSTGRES, PART_REDIS, PART_STORE, PART_SERVER, PART_COUNT };
enum stack_kind { KIND_NONE, KIND_NATIVE, KIND_DOCKER };
#define STACK_BUCKET     "tma-load"
#define STACK_ACCESS_KEY "loadkey"
#define STACK_DB_USER    "tma"
#define STACK_DATABASE   "tma_load"

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
    bool cancelled;
    struct proc tools[PART_COUNT + 1]; /* running, to be killed on cancel */
};
extern const struct part_ops stack_postgres, stack_redis, stack_store, stack_server;

/* stack/store.c */
bool stack_store_installed(char *where, size_t n); /* the npm package; where it is or would be */

/* stack/state.c */
void stack_state_init(struct stack *s);
enum err stack_state_load(struct stack *s, struct errinfo *ei) WARN_UNUSED;
enum err stack_state_save(struct stack *s, struct errinfo *ei) WARN_UNUSED; /* stack.json and env */
void stack_state_remove(struct stack *s);                                   /* the files and folders */
enum err stack_remove_tree(const char *path, struct errinfo *ei) WARN_UNUSED;
/* stack/env.c; the arena owns the values */
struct stack_var {
    const char *name, *value;
};
size_t stack_vars(const struct stack *s, struct arena *mem, struct stack_var *out, size_t max);
const char *stack_database_url(const struct stack *s, struct arena *mem, const char *database);
const char *stack_redis_url(const struct stack *s, struct arena *mem);
const char *stack_s3_endpoint(const struct stack *s, struct arena *mem);
struct blob_conf stack_blob_conf(const struct stack *s, struct arena *mem); /* borrows from both */
const char *stack_server_url(const struct stack *s, struct arena *mem);
/* stack.c */
enum err stack_find_part(struct stack *s, const char *name, struct part **out, struct errinfo *ei) WARN_UNUSED;
/* stack/native.c */
MAY_YIELD enum err stack_native_up(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_native_down(struct stack *s, struct errinfo *ei) WARN_UNUSED;
/* Everything from nothing to answering; at once when it answers already. */
MAY_YIELD enum err stack_part_bring_up(struct part *p, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err part_end(struct part *p, int signo, int64_t grace_us, struct errinfo *ei) WARN_UNUSED;
/* *as: NULL when the part may run as us. */
enum err part_account(const struct part *p, struct account *a, const struct account **as,
                      struct errinfo *ei) WARN_UNUSED;
bool part_alive(const struct part *p);
/* The real path of what it runs, as /proc tells it; NULL: not installed. */
const char *part_program(const struct part *p, struct arena *mem);
/* A tool of a part (initdb, npm), its output in the part's log. ERR_ENV when it fails. */
MAY_YIELD enum err part_tool(struct part *p, const char *const *argv, const char *cwd, const struct account *as,
                             int64_t limit_us, struct errinfo *ei) WARN_UNUSED;
/* Stops all its processes and returns when they stand still, or lets them go on. */
MAY_YIELD enum err part_halt(const struct part *p, bool halt, struct errinfo *ei) WARN_UNUSED;
/* Keeps all its processes from making any file longer than that; UINT64_MAX: as long as the system lets them. */
enum err part_limit_files(const struct part *p, uint64_t most, struct errinfo *ei) WARN_UNUSED;
void stack_say(struct stack *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void stack_show_log(const struct part *p); /* its last lines, on progress */
/* Appends the last lines of a file, escaped. */
void stack_tail(FILE *out, const char *path, int64_t lines);
/* stack/ports.c */
/* Claims the first port on loopback, from this one on, that is free and no other stack's. */
enum err stack_choose_port(struct part *p, int from, struct errinfo *ei) WARN_UNUSED;
void stack_release_port(struct part *p);
void stack_release_ports(const struct stack *s); /* all claims of this folder, known or not */
bool stack_port_free(int port);
/* stack/docker.c */
MAY_YIELD bool stack_docker_answers(struct stack *s);
const char *stack_docker_file(struct stack *s); /* docker-compose.yml, NULL when there is none */
MAY_YIELD enum err stack_docker_up(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_docker_down(struct stack *s, struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_docker_part(struct stack *s, const char *verb, const struct part *p,
                                     struct errinfo *ei) WARN_UNUSED;
MAY_YIELD enum err stack_docker_print(struct stack *s, const char *const *args, FILE *out,
                                      struct errinfo *ei) WARN_UNUSED;
#endif
