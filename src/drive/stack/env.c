/* What a stack is called from outside: its URLs, and the variables that commands and the server read. */
#include "drive/stack/env.h"

const char *stack_database_url_as(const struct stack *s, struct arena *mem, const char *user, const char *password,
                                  const char *database)
{
    return arena_printf(mem, "postgresql://%s:%s@127.0.0.1:%d/%s", user, password, s->parts[PART_POSTGRES].port,
                        database);
}

const char *stack_database_url(const struct stack *s, struct arena *mem, const char *database)
{
    return stack_database_url_as(s, mem, STACK_DB_USER, s->password, database);
}

const char *stack_redis_url(const struct stack *s, struct arena *mem)
{
    return arena_printf(mem, "redis://127.0.0.1:%d/0", s->parts[PART_REDIS].port);
}

static const char *s3_endpoint(const struct stack *s, struct arena *mem)
{
    return arena_printf(mem, "http://127.0.0.1:%d", s->parts[PART_STORE].port);
}

struct blob_conf stack_blob_conf(const struct stack *s, struct arena *mem)
{
    return (struct blob_conf){.endpoint = s3_endpoint(s, mem),
                              .bucket = STACK_BUCKET,
                              .access_key = STACK_ACCESS_KEY,
                              .secret_key = s->s3_secret,
                              .path_style = true};
}

const char *stack_server_url(const struct stack *s, struct arena *mem)
{
    return arena_printf(mem, "http://127.0.0.1:%d", s->parts[PART_SERVER].port);
}

struct stack_var {
    const char *name, *value;
};

static size_t stack_vars(const struct stack *s, struct arena *mem, struct stack_var *out, size_t max)
{
    const struct stack_var all[] = {
        {"TMA_URL", s->parts[PART_SERVER].wanted ? stack_server_url(s, mem) : NULL},
        {"DATABASE_URL", stack_database_url(s, mem, STACK_DATABASE)},
        {"REDIS_URL", stack_redis_url(s, mem)},
        {"TMA_LOAD_S3_ENDPOINT", s3_endpoint(s, mem)},
        {"TMA_LOAD_S3_BUCKET", STACK_BUCKET},
        {"TMA_LOAD_S3_ACCESS_KEY", STACK_ACCESS_KEY},
        {"TMA_LOAD_S3_SECRET_KEY", s->s3_secret},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && n < max; i++)
        if (all[i].value)
            out[n++] = all[i];
    return n;
}

enum err stack_print_env(const struct stack *s, FILE *out, bool export, struct errinfo *ei)
{
    struct stack_var vars[16];
    struct arena *mem = arena_new(4096);
    size_t n = stack_vars(s, mem, vars, 16);
    for (size_t i = 0; i < n; i++) /* none of the values needs quoting: made here, of plain characters */
        fprintf(out, "%s%s=%s\n", export ? "export " : "", vars[i].name, vars[i].value);
    arena_free(&mem);
    return fflush(out) == 0 ? ERR_OK : err_sys(ei, ERR_IO, "cannot write the variables");
}
