#ifndef BASE_FILE_H
#define BASE_FILE_H
/* Files that somebody names. Layer 0. */
#include "base/str.h"
#include <stdio.h>

/* Appends what the file holds. Whatever goes wrong is `failure`, with a sentence; ei->os_errno is ENOENT when there is
 * no such file, 0 when it is larger than out may grow, or no file: a folder, a device, a pipe that nothing comes out of
 * for 5 s. */
enum err file_read(const char *path, struct buf *out, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* The same for what a person wrote: a byte order mark of UTF-8, which some editors put in front, is left out, and a
 * text in UTF-16 is refused. Lines may end in CR LF: sv_trim takes the CR. */
enum err file_read_text(const char *path, struct buf *out, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* As file_read to begin with, for one that is read bit by bit: *out is the caller's to fclose. */
enum err file_open(const char *path, FILE **out, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* For one that a library opens by its name, perhaps many times: that it is a file, no pipe, of at most 16 MiB, and may
 * be read. */
enum err file_readable(const char *path, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* Whether file_replace can write there, as far as can be told before: it can be made or written, and is no folder. */
enum err file_replaceable(const char *path, enum err failure, struct errinfo *ei) WARN_UNUSED;
/* Writes text beside the file, as PATH.new, then puts it in its place with the mode of the old one: a reader meets the
 * old or the new one whole, a full disk does not cost what is there. Pipes and devices are written to, links followed.
 * Secrets are hidden (secret.h). ERR_IO. */
enum err file_replace(const char *path, const struct buf *text, struct errinfo *ei) WARN_UNUSED;
/* The same for its owner alone (mode 0600), whatever the umask; in place of a link, not through it. */
enum err file_replace_private(const char *path, const struct buf *text, struct errinfo *ei) WARN_UNUSED;
/* The same for what is no text: nothing in it could be read, nor hidden. */
enum err file_replace_packed(const char *path, const struct buf *text, struct errinfo *ei) WARN_UNUSED;
/* Writes all of it, through interruptions: false with errno. */
bool file_write_all(int fd, struct sv text) WARN_UNUSED;
/* Closes what was written through stdio, whose earlier failures left no errno behind: ERR_IO when any byte of it did
 * not get there. *f becomes NULL. */
enum err file_close(FILE **f, const char *path, struct errinfo *ei) WARN_UNUSED;
/* Cuts the next line, which LF, CRLF or CR alone ends, off the text of a file; false when there is none left. */
bool file_line(struct sv *rest, struct sv *line);
#endif
