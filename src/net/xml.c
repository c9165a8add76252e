/* The push parser, because answers come in pieces and listings are long. A document type is refused outright: nothing
 * that servers answer us has one, and every known attack by XML begins with it. */
#include "net/xml.h"
#include "base/mem.h"
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <string.h>

#define DEPTH_MAX 64

struct xml {
    xmlParserCtxtPtr parser; /* NULL: libxml2 had no memory */
    struct xml_ops ops;
    void *arg;
    unsigned depth;
    bool failed;
};

void xml_init(void)
{
    xmlInitParser();
}

static void refuse(struct xml *x)
{
    x->failed = true;
    xmlStopParser(x->parser);
}

static void on_start(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int n_namespaces,
                     const xmlChar **namespaces, int n_attributes, int n_defaulted, const xmlChar **attributes)
{
    struct xml *x = ctx;
    (void)prefix, (void)n_namespaces, (void)namespaces, (void)n_attributes, (void)n_defaulted, (void)attributes;
    if (x->failed)
        return;
    if (x->depth++ == DEPTH_MAX || !x->ops.start(x->arg, uri ? (const char *)uri : "", (const char *)name))
        refuse(x);
}

static void on_end(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct xml *x = ctx;
    (void)prefix;
    if (x->failed)
        return;
    x->depth--;
    if (!x->ops.end(x->arg, uri ? (const char *)uri : "", (const char *)name))
        refuse(x);
}

static void on_text(void *ctx, const xmlChar *text, int n)
{
    struct xml *x = ctx;
    if (!x->failed && x->ops.text && !x->ops.text(x->arg, (struct sv){(const char *)text, (size_t)n}))
        refuse(x);
}

static void on_document_type(void *ctx, const xmlChar *name, const xmlChar *external_id, const xmlChar *system_id)
{
    (void)name, (void)external_id, (void)system_id;
    refuse(ctx);
}

/* The caller gets ERR_PARSE; libxml2 would print. */
static void on_error(void *ctx, xmlErrorPtr error)
{
    (void)ctx, (void)error;
}

struct xml *xml_new(const struct xml_ops *ops, void *arg)
{
    struct xml *x = mem_zalloc(sizeof *x);
    xmlSAXHandler sax = {.initialized = XML_SAX2_MAGIC,
                         .startElementNs = on_start,
                         .endElementNs = on_end,
                         .characters = on_text,
                         .cdataBlock = on_text,
                         .ignorableWhitespace = on_text,
                         .internalSubset = on_document_type,
                         .serror = on_error};
    x->ops = *ops;
    x->arg = arg;
    x->parser = xmlCreatePushParserCtxt(&sax, x, NULL, 0, NULL);
    if (x->parser)
        xmlCtxtUseOptions(x->parser, XML_PARSE_NONET);
    x->failed = !x->parser;
    return x;
}

void xml_free(struct xml **x)
{
    if (!*x)
        return;
    if ((*x)->parser)
        xmlFreeParserCtxt((*x)->parser);
    MEM_FREE(*x);
}

static enum err push(struct xml *x, const char *p, size_t n, int last)
{
    while (!x->failed && (n > 0 || last)) {
        size_t part = n < (1u << 20) ? n : 1u << 20;
        int end = last && part == n;
        /* A namespace that is no good URI is complained of and yet well-formed. */
        if (xmlParseChunk(x->parser, p, (int)part, end) != XML_ERR_OK && !x->parser->wellFormed)
            x->failed = true;
        p += part;
        n -= part;
        if (end)
            break;
    }
    return x->failed ? ERR_PARSE : ERR_OK;
}

enum err xml_feed(struct xml *x, const char *p, size_t n)
{
    return push(x, p, n, 0);
}

enum err xml_end(struct xml *x)
{
    return push(x, "", 0, 1);
}
