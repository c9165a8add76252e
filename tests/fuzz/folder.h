#ifndef FOLDER_H
#define FOLDER_H
/* A private folder for targets that read files; it goes with the process. Files are written whole, each anew. */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

static char folder[64]; /* "" until the first file */
static const char *folder_files[8];

static void folder_remove(void)
{
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(folder_files) && folder_files[i]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folder_files[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* name: a literal. Its path, until the next call. */
static const char *folder_write(const char *name, const void *p, size_t n)
{
    static char path[128];
    size_t i = 0;
    if (!folder[0]) {
        /* In memory where that can be had: a target lives from how often it runs. */
        strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/drivesim-fuzz-XXXXXX" : "/tmp/drivesim-fuzz-XXXXXX");
        MUST(mkdtemp(folder));
        atexit(folder_remove);
    }
    while (i < ARRAY_LEN(folder_files) && folder_files[i] && strcmp(folder_files[i], name) != 0)
        i++;
    MUST(i < ARRAY_LEN(folder_files));
    folder_files[i] = name;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0 && write(fd, p, n) == (ssize_t)n);
    close(fd);
    return path;
}
#endif
