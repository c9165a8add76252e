#ifndef BASE_PRIVATE_FILE_H
#define BASE_PRIVATE_FILE_H
/* Small files with secrets in a folder that is ours alone. Nobody else may own, read or write either of them, and
 * neither may be a link: whatever is not so is refused, never mended and never read. Layer 0. */
#include "base/str.h"

const char *private_home(void); /* HOME; NULL for users who have none to write to: those of cron, or of a container */
/* The folder "drivesim" of the user: in what the environment's variable xdg names, else in below (".local/state") of
 * the home. False when there is neither. */
bool private_folder_of_user(char *dst, size_t n, const char *xdg, const char *below);
/* Makes it (mode 0700) with the folders above it, where they are not there; ERR_IO. Whose one is that was there is
 * asked by the calls below. */
enum err private_folder_make(const char *folder, struct errinfo *ei) WARN_UNUSED;
/* Appends what the file holds. ERR_NOTFOUND when it is not there, ERR_SAFETY when it or its folder is not ours alone,
 * ERR_LIMIT when it is larger than out may grow, ERR_IO. */
enum err private_file_read(const char *folder, const char *name, struct buf *out, struct errinfo *ei) WARN_UNUSED;
/* Makes the folder if need be, and the file (mode 0600), whole or not at all: a reader never meets half of it. Takes
 * the place of whatever had the name, a link as well. ERR_SAFETY when the folder is not ours alone, ERR_IO. */
enum err private_file_replace(const char *folder, const char *name, struct sv text, struct errinfo *ei) WARN_UNUSED;
void private_file_remove(const char *folder, const char *name); /* fine when it is not there */
#endif
