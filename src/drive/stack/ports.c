/* Ports on loopback. A stack keeps its ports while a part of it is down, so being free is not enough: each stack claims
 * its ports by a file of that number that names its folder, in one folder for all users of the machine. A claim whose
 * stack is gone counts for nothing. */
#include "drive/stack/ports.h"
#include "drive/stack/impl.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORT_TRIES     400
#define CLAIM_TRIES    5
#define OUTGOING_PORTS 32768
/* Never TMPDIR: it differs from shell to shell, and the machine's ports are the same for all of them. */
#define CLAIMS "/tmp/drivesim-ports"

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

bool stack_port_free(int port)
{
    struct sockaddr_in a = loopback(port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
              bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* ---- claims ---- */

static const char *claim_path(struct arena *mem, int port)
{
    return arena_printf(mem, CLAIMS "/%d", port);
}

/* Whose it is: the folder of a stack that still exists, or that only its user may look into. */
static bool claim_holder(struct arena *mem, const char *path, const char **home)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    *home = arena_strdup(mem, text);
    return access(arena_printf(mem, "%s/stack.json", text), F_OK) == 0 || errno == EACCES;
}

/* A new file in the folder of claims, which is made where it is missing, as /tmp is: whoever is there may claim, and
 * only its user removes a claim. A stack that goes down takes the folder away when it is empty: then once more. -1:
 * cannot be. */
static int new_claim(struct arena *mem, char **path)
{
    int fd = -1;
    for (int attempt = 0; attempt < CLAIM_TRIES && fd < 0; attempt++) {
        if (mkdir(CLAIMS, 01777) == 0 && chmod(CLAIMS, 01777) < 0)
            break;
        *path = arena_strdup(mem, CLAIMS "/claim-XXXXXX");
        fd = mkostemp(*path, O_CLOEXEC);
    }
    return fd;
}

/* The claim of s as a file, to be linked to its number: so nobody ever reads half of one. NULL: cannot be written. */
static const char *claim_written(const struct stack *s, struct arena *mem)
{
    char *path = NULL;
    int fd = new_claim(mem, &path);
    bool ok = fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, s->home, strlen(s->home)) == (ssize_t)strlen(s->home);
    if (fd >= 0)
        close(fd);
    return ok ? path : NULL;
}

/* True when it is ours now. */
static bool claim(const struct stack *s, struct arena *mem, const char *written, int port)
{
    const char *path = claim_path(mem, port), *holder;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (link(written, path) == 0)
            return true;
        if (claim_holder(mem, path, &holder))
            return strcmp(holder, s->home) == 0;
        unlink(path);
    }
    return false;
}

void stack_release_port(struct part *p)
{
    struct arena *mem = arena_new(4096);
    const char *path = claim_path(mem, p->port), *holder = "";
    if (claim_holder(mem, path, &holder) ? strcmp(holder, p->stack->home) == 0 : *holder)
        unlink(path);
    arena_free(&mem);
    p->port = 0;
}

void stack_release_ports(const struct stack *s)
{
    struct arena *mem = arena_new(4096);
    DIR *d = opendir(CLAIMS);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        const char *path = arena_printf(mem, CLAIMS "/%s", e->d_name), *holder = "";
        (void)!claim_holder(mem, path, &holder);
        if (strcmp(holder, s->home) == 0)
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(CLAIMS); /* when they were the last */
    arena_free(&mem);
}

/* Among the ports that the kernel gives to outgoing connections it gives the even ones (it keeps the odd ones for
 * bind): an odd one of ours is not in use by somebody's connection when a part is started again. */
static int usable_from(int port)
{
    return port < OUTGOING_PORTS ? port : port | 1;
}

enum err stack_choose_port(struct part *p, int from, struct errinfo *ei)
{
    struct arena *mem = arena_new(4096);
    bool found = false;
    const char *written = claim_written(p->stack, mem); /* where it cannot be, nobody has claims */
    for (int port = usable_from(from); port < from + PORT_TRIES && port < 65536 && !found;
         port = usable_from(port + 1)) {
        if (!stack_port_free(port) || (written && !claim(p->stack, mem, written, port)))
            continue;
        p->port = port;
        found = true;
    }
    if (written)
        unlink(written);
    arena_free(&mem);
    return found ? ERR_OK : err_set(ei, ERR_ENV, "no free port between %d and %d", from, from + PORT_TRIES - 1);
}
