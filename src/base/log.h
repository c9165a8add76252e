#ifndef BASE_LOG_H
#define BASE_LOG_H
/* The log: stderr, one line a message, stamped in UTC with Z. Control bytes in the message are escaped and secrets
 * hidden (secret.h). Thread-safe. Layer 0. */
#include "base/err.h"
enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
void log_set_level(enum log_level level);
bool log_level_parse(const char *s, enum log_level *out);
/* "httpc,-pg": switches debug lines of single modules on or off. */
void log_set_trace(const char *spec);
bool log_enabled(enum log_level level, const char *module);
void log_write(enum log_level level, const char *module, const char *fmt, ...) PRINTF_LIKE(3, 4);
#define LOGE(mod, ...) log_write(LOG_ERROR, mod, __VA_ARGS__)
#define LOGW(mod, ...) log_write(LOG_WARN, mod, __VA_ARGS__)
#define LOGI(mod, ...) log_write(LOG_INFO, mod, __VA_ARGS__)
#define LOGD(mod, ...)                                                                                                 \
    do {                                                                                                               \
        if (log_enabled(LOG_DEBUG, mod))                                                                               \
            log_write(LOG_DEBUG, mod, __VA_ARGS__);                                                                    \
    } while (0)
#endif
