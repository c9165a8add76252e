#ifndef DRIVE_TMA_EVENTS_H
#define DRIVE_TMA_EVENTS_H
/* Internal to the tma dialect: the event stream. All are rows of its table; api/dialect.h says what each is to do.
 * Layer 2. */
#include "drive/tma/tma.h"

enum err tma_stream_open(struct api_stream **out, struct api *a, struct api_stream_memory *memory,
                         const struct api_stream_ops *ops, void *arg, struct errinfo *ei) WARN_UNUSED;
void tma_stream_close(struct api_stream **s);
#endif
