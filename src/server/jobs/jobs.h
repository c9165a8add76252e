#ifndef SERVER_JOBS_JOBS_H
#define SERVER_JOBS_JOBS_H
/* Work that outlives its request, kept in the table jobs (sql/560_jobs.sql): jobs of one account one after the other,
 * those of different accounts side by side. A job is claimed with a lease; a server that dies leaves it to whoever
 * comes next, and each step may be done twice. Layer 3. */
#include "server/http/http.h"
#include "server/server.h"

extern const struct server_part jobs_part;

enum job_kind { JOB_COPY, JOB_PURGE, JOB_EMPTY, JOB_TRASH, JOB_RESTORE };
/* Queues a job in the name of the request's login and answers: 202 {"message", "queued", "jobId"}, or what stands
 * against it. ids NULL for JOB_EMPTY; target for JOB_COPY, NULL is the top level. */
MAY_YIELD void jobs_queue(struct request *r, enum job_kind kind, const char *const *ids, size_t n, const char *target);
#endif
