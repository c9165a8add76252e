#ifndef NET_XML_H
#define NET_XML_H
/* XML taken apart while it comes in, by libxml2's push parser: no tree, no network, no document type and so no entities
 * of the document's own, a bounded depth. The owner of libxml2's headers. Layer 1, any thread once xml_init has run. */
#include "base/err.h"
#include "base/str.h"

void xml_init(void); /* once, before threads start; again does nothing */

/* Names are local ones, ns the namespace's URI ("" for none). Text comes in pieces. false ends the parsing. */
struct xml_ops {
    bool (*start)(void *arg, const char *ns, const char *name);
    bool (*text)(void *arg, struct sv text); /* NULL: none is wanted */
    bool (*end)(void *arg, const char *ns, const char *name);
};
struct xml;
struct xml *xml_new(const struct xml_ops *ops, void *arg);
void xml_free(struct xml **x);
/* ERR_PARSE from the first byte on that is no well-formed XML, has a document type, is too deep, or was refused by a
 * callback; then for ever. */
enum err xml_feed(struct xml *x, const char *p, size_t n) WARN_UNUSED;
enum err xml_end(struct xml *x) WARN_UNUSED; /* ERR_PARSE: it is not whole */
#endif
