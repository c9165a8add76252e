#ifndef DRIVE_LIMITS_H
#define DRIVE_LIMITS_H
/* The numbers of drive-api.md that client, server and checks keep alike. Layer 2. */
#include "base/clock.h"

#define DRIVE_ID_MAX             63
#define DRIVE_NAME_MAX           255 /* bytes, uploads */
#define DRIVE_FOLDER_NAME_MAX    100 /* characters, folders and renames */
#define DRIVE_LIST_LIMIT_MAX     500
#define DRIVE_STREAMS_PER_LOGIN  20
#define DRIVE_REQUESTS_PER_15MIN 10000
#define DRIVE_UPLOADS_PER_30MIN  20000
#define DRIVE_LOGINS_PER_15MIN   25
#define DRIVE_HEARTBEAT_US       (60 * US_PER_S)
#define DRIVE_WAIT_MOST_US       (3600 * US_PER_S) /* windows are 15 and 30 min: who asks for more refuses */
#define DRIVE_LISTING_MOST                                                                                             \
    1000000 /* entries of one listing that are taken: memory must not be the server's to spend                         \
             */
#define DRIVE_EMAIL_DOMAIN "@load.test"
#endif
