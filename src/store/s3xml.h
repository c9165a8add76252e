#ifndef STORE_S3XML_H
#define STORE_S3XML_H
/* What S3 answers in XML. Layer 1, pure. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

struct s3xml_object {
    char *key;
    uint64_t size;
    struct wall modified;
};
struct s3xml_page { /* a ListBucketResult */
    struct s3xml_object *items;
    size_t n, cap;
    bool truncated, url_encoded;
    char *next; /* continuation token; NULL when there is none */
};
/* ERR_PARSE on anything that is not a whole ListBucketResult. Keys are decoded where the store encoded them. */
enum err s3xml_page_parse(struct sv xml, struct s3xml_page *out) WARN_UNUSED;
void s3xml_page_done(struct s3xml_page *p);

/* An Error document; both "" when it is none. */
struct s3xml_error {
    char code[64], message[160];
};
void s3xml_error_parse(struct sv xml, struct s3xml_error *out);

/* A DeleteResult: how many keys were refused for another reason than being absent, and the first reason. */
enum err s3xml_delete_parse(struct sv xml, size_t *failed, struct s3xml_error *first) WARN_UNUSED;
#endif
