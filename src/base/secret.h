#ifndef BASE_SECRET_H
#define BASE_SECRET_H
/* All that a command knows and must not tell: passwords, keys, tokens. Whatever gives it one adds it here; whatever
 * leaves the program for somebody to read (the log, stdout, stderr, every form of a result, a run's folder) passes
 * secret_hide, most of it by way of the streams below. Layer 0, thread-safe.
 *
 * A secret is found wherever it stands and in every way it may be written: percent-encoded, escaped for JSON, HTML or a
 * log, quoted for a shell; also its beginning where a text was cut with "…". Secrets that overlap or hold one another
 * are hidden together, so that no tail is left. What is shorter than SECRET_MIN bytes, a number of less than 12 digits,
 * or part of what the program itself says ("test", "healthy") is not looked for: nothing else would be legible. It is
 * left out by its place alone: where a URL, a header or a setting is told (secret_parts). */
#include "base/str.h"
#include <stdio.h>

#define SECRET_MIN  4
#define SECRET_MARK "***" /* what stands in its place */

void secret_add(struct sv value);  /* copied; also as often as it is dropped again */
void secret_drop(struct sv value); /* a token that is in force no more: one of those added */
/* "user:password" as it stands and as sign-in by Basic has it in base64. */
void secret_add_basic(struct sv user, struct sv password);
/* The value of a header by this name: what follows "Bearer", the pair of "Basic", each cookie, each parameter. Harmless
 * ones (Accept, Content-Type, …) are passed over. */
void secret_add_header(struct sv name, struct sv value);
/* Those parts of a URL, or of a database's settings ("password=…"), that nobody may see, well-formed or not. */
void secret_add_url(const char *text);

/* Where they stand in a word: user and password of a URL, the values of its query, what follows "password=". With
 * header, the word is a header line, or ends in one: its value. In order; returns how many of at most max. */
size_t secret_parts(struct sv word, bool header, struct sv *parts, size_t max);

/* Appends text without any. ERR_LIMIT. */
enum err secret_hide(struct buf *out, struct sv text) WARN_UNUSED;
/* The same in place; size is that of the memory, and what would not fit is cut. */
void secret_hide_in(char *text, size_t size);

/* From now on, what the program's own text holds is no secret worth looking for. Called once, by main. */
void secret_learn_program(void);
/* stdout and stderr become streams that hide secrets: called once, by main, before anything is printed. secret_flush
 * lets go of what might have been the beginning of one; false when stdout could not be written. */
void secret_guard_streams(void);
bool secret_flush(void);
/* Between the two calls stdout tells all: for what is asked for because of its secrets. */
void secret_reveal(bool on);
/* A file for people that hides secrets likewise; mode "w" empties it, "a" goes on behind what it has, "wx" must make
 * it; "p" behind either: for its owner alone (mode 0600), and not through a link. The caller's to fclose. NULL with
 * errno. */
FILE *secret_fopen(const char *path, const char *mode);
#endif
