#ifndef SSH_SETUP_H
#define SSH_SETUP_H
/* A loop and an SSH client of it, one of each a test, checked for leftovers at its end. */
#include "net/ssh.h"
#include "unit.h"

static struct loop *loop;
static struct ssh_client *client;
static struct errinfo why;

static inline int ssh_up(const struct ssh_client_conf *conf)
{
    return loop_new(&loop, &why) != ERR_OK || ssh_client_new(&client, loop, conf, &why) != ERR_OK;
}

static int teardown(void **state)
{
    (void)state;
    int left = (int)coro_count();
    ssh_client_free(&client);
    coro_pool_trim();
    loop_free(&loop);
    return left;
}
#endif
