#ifndef DRIVE_API_API_H
#define DRIVE_API_API_H
/* The client's calls, as a dialect: a table of operations over one signed-in peer, with the capabilities of the server
 * behind it. Scenarios, seeder, ledger and checks call these and never ask which dialect it is. Layer 2. */
#include "drive/api/accounts.h"
#include "drive/api/events.h"
#include "drive/api/files.h"
#include "drive/api/session.h"
#include "drive/api/writes.h"
#endif
