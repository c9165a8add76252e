#ifndef SIM_APP_APP_H
#define SIM_APP_APP_H
/* One desktop app. It owns no thread and, while it waits, no stack: timers and the event stream note what is due, and a
 * coroutine runs only while there is something to do. Two lanes do: the background one (heartbeat, first full pass,
 * questions after events and each minute, lists), and the foreground one (the user's actions, one after another).
 * They are concurrent, as in the real app; each has at most one request open, the stream has its own connection.
 *
 * Life: app_init; app_start at its arrival (opens the stream, lists all open folders); app_begin at the start of the
 * window (plans actions); app_stop at the end (no timer fires any more, lanes run out); app_close; app_done. Layer 3.
 */
#include "sim/app/delivery.h"
#include "sim/app/pace.h"
#include "sim/app/worker.h"

#define APP_CURSOR_MAX  128
#define APP_OWN_FOLDERS 2

/* Its event stream: stream.c's. */
struct app_stream {
    struct api_stream *handle; /* NULL: none open */
    struct mono sent;
    struct timer timer; /* opens it again */
    struct backoff backoff;
    bool up, was_up;
    bool heard;               /* something came on it since it was opened */
    enum cause cause;         /* of its opening: the first, or once more */
    bool resumed;             /* it was asked to go on after what came last */
    bool replaying;           /* opened again: what comes now may be repeated */
    bool in_storm;            /* broken on purpose, and not back yet */
    bool session_stale;       /* it was refused because the session had expired */
    int64_t bytes_per_s;      /* a slow reader; 0: as it comes */
    struct wall connected_at; /* by the server's clock where it tells */
    struct api_stream_memory memory;
};
/* The background lane, sync.c's: what is due, and since when it is known. */
struct app_background {
    struct timer timer;
    bool busy;
    bool listed; /* the first full pass is done: actions wait for it as long as the window does */
    bool resync; /* everything open is to be listed */
    struct mono pass_from, heartbeat_due, minute_due;
    struct mono gather_due;  /* the question after events; us 0: none gathered */
    enum cause gather_cause; /* of that question, and of none else */
    struct mono retry_due;   /* nothing before this, after a failure; us 0: none */
    struct backoff backoff;
    char cursor[APP_CURSOR_MAX]; /* of the change feed; "": not known */
};
/* The foreground lane: the user's actions. */
struct app_foreground {
    struct timer timer;
    bool busy;
    struct pace pace;
    struct planned next;
    bool has_next;
    struct mono waited_until; /* when an action last got its budget: those behind it could not begin before */
    uint32_t made;            /* numbers the names it gives */
    int32_t surplus;          /* files it added less those it trashed: trashing evens it out */
    char own_folders[APP_OWN_FOLDERS][DRIVE_ID_MAX + 1]; /* folders it made and may trash; "": none */
};
struct app {
    struct worker *w;
    struct login *login;
    struct api *api;
    uint32_t index;
    uint32_t session; /* the login's generation that api carries */
    struct rng rng;   /* jitter only: what is planned has its own */
    struct view view;
    bool started;
    bool ran_short;      /* this machine had no port, descriptor or memory for a request of it */
    struct mono arrived; /* when it was due to start */
    struct app_stream stream;
    struct app_background background;
    struct app_foreground foreground;
    struct deliveries deliveries;
};

enum err app_init(struct app *a, struct worker *w, uint32_t index, struct errinfo *ei) WARN_UNUSED;
/* Connections and a login alone: no view, no stream, no lanes. What calls are made with by those who are no desktop
 * app; app_done frees it. timeout_us 0: the worker's. */
enum err app_init_bare(struct app *a, struct worker *w, uint32_t index, int64_t timeout_us,
                       struct errinfo *ei) WARN_UNUSED;
/* The same without connections of its own: calls are made by the login's own client, which stays the login's. Owns
 * nothing: not for app_done. */
void app_init_shared(struct app *a, struct worker *w, struct login *l);
void app_start(struct app *a, struct mono due);
void app_begin(struct app *a, uint32_t actions);
void app_stop(struct app *a);
void app_close(struct app *a); /* the stream; after the lanes have ended */
void app_done(struct app *a);
/* Actions of its plan that were never started. */
uint64_t app_not_started(const struct app *a);

/* Lets a lane run if it has something to do. */
void app_kick_background(struct app *a);
void app_kick_foreground(struct app *a);
/* Nothing runs, nothing is gathered or known to be out of date. */
bool app_quiet(const struct app *a);
/* Asks what has changed; without a feed everything open is listed again. */
void app_look_again(struct app *a);
/* Its event stream is to come back: what happened meanwhile it does not know yet. */
bool app_deaf(const struct app *a);
/* Puts the login's newest session to use. */
void app_take_session(struct app *a);
#endif
