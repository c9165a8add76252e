#include "server/access/password.h"
#include "base/digest.h"
#include "base/mem.h"
#include <crypt.h>
#include <string.h>

struct job {
    const char *password;
    char setting[PASSWORD_HASH_MAX]; /* salt, or a whole hash to compare with */
    char out[PASSWORD_HASH_MAX];
};

static void run_crypt(void *arg)
{
    struct job *j = arg;
    struct crypt_data *data = mem_zalloc(sizeof *data);
    const char *hash = crypt_r(j->password, j->setting, data);
    /* Failure is NULL or a text that starts with '*': neither is ever a hash. */
    if (hash && hash[0] != '*')
        (void)str_fit(j->out, sizeof j->out, hash);
    mem_free(data);
}

static MAY_YIELD void run(struct work *w, struct job *j)
{
    work_run(w, run_crypt, j);
}

enum err password_hash(struct work *w, const char *password, unsigned cost, char *out, struct errinfo *ei)
{
    unsigned char salt[16];
    struct job j = {.password = password};
    digest_random(salt, sizeof salt);
    if (!crypt_gensalt_rn("$2b$", cost, (const char *)salt, sizeof salt, j.setting, sizeof j.setting))
        return err_sys(ei, ERR_IO, "no bcrypt of cost %u here", cost);
    run(w, &j);
    if (!j.out[0])
        return err_set(ei, ERR_IO, "bcrypt failed");
    memcpy(out, j.out, sizeof j.out);
    return ERR_OK;
}

bool password_fits(struct work *w, const char *password, const char *hash)
{
    struct job j = {.password = password};
    if (strlen(password) > PASSWORD_BYTES_MAX || !str_fit(j.setting, sizeof j.setting, hash))
        return false;
    run(w, &j);
    return j.out[0] && strlen(j.out) == strlen(hash) && digest_equal(j.out, hash, strlen(hash));
}
