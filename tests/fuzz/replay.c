/* Runs a fuzz target over files and folders given as arguments, else over its corpus in git: what `make test` does. */
#include "base/buf.h"
#include "fuzz.h"
#include <dirent.h>
#include <sys/stat.h>

static unsigned long replayed;

static void replay_file(const char *path)
{
    struct buf b = BUF_INIT(64 << 20);
    char chunk[65536];
    size_t n;
    FILE *f = fopen(path, "rb");

    MUST(f);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        MUST(buf_append(&b, chunk, n) == ERR_OK);
    fclose(f);
    /* A copy of the exact size: a read past the end is then seen. */
    uint8_t *data = mem_dup(b.data ? b.data : "", b.len);
    LLVMFuzzerTestOneInput(data, b.len);
    mem_free(data);
    buf_done(&b);
    replayed++;
}

static void replay(const char *path)
{
    struct stat st;

    MUST(stat(path, &st) == 0);
    if (!S_ISDIR(st.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    MUST(n >= 0);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            replay(inner);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    char corpus[512];

    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    if (argc == 1) {
        const char *slash = strrchr(argv[0], '/');
        snprintf(corpus, sizeof corpus, "tests/fuzz/corpus/%s", slash ? slash + 1 : argv[0]);
        replay(corpus);
    }
    MUST(replayed > 0); /* an empty corpus proves nothing */
    printf("1..1\nok 1 - %lu inputs replayed\n", replayed);
    return 0;
}
