#include "store/s3xml.h"
#include "base/mem.h"
#include "net/xml.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8

/* Every S3 answer is records of leaves. leaf: <name>text</name> inside <parent>; record: </name> of an element that
 * has children. False ends the walk with ERR_PARSE. */
struct walk {
    bool (*leaf)(void *arg, const char *parent, const char *name, struct sv text);
    bool (*record)(void *arg, const char *name);
    void *arg;
};
struct cursor {
    const struct walk *walk;
    char names[MAX_DEPTH][40];
    bool has_children[MAX_DEPTH];
    int depth;
    struct buf text;
};

static bool element_start(void *arg, const char *ns, const char *name)
{
    struct cursor *c = arg;
    (void)ns;
    if (c->depth == MAX_DEPTH)
        return false;
    if (c->depth > 0)
        c->has_children[c->depth - 1] = true;
    snprintf(c->names[c->depth], sizeof c->names[0], "%s", name);
    c->has_children[c->depth++] = false;
    buf_reset(&c->text);
    return true;
}

static bool element_end(void *arg, const char *ns, const char *full_name)
{
    struct cursor *c = arg;
    (void)ns, (void)full_name;
    c->depth--;
    const struct walk *w = c->walk;
    const char *name = c->names[c->depth];
    if (c->has_children[c->depth])
        return w->record(w->arg, name);
    struct sv text = {buf_cstr(&c->text), c->text.len};
    return w->leaf(w->arg, c->depth > 0 ? c->names[c->depth - 1] : "", name, text);
}

static bool element_text(void *arg, struct sv text)
{
    struct cursor *c = arg;
    return buf_append(&c->text, text.p, text.n) == ERR_OK;
}

static enum err walk(struct sv text, const struct walk *w)
{
    static const struct xml_ops ops = {element_start, element_text, element_end};
    struct cursor c = {.walk = w, .text = BUF_INIT(64 * 1024)};
    struct xml *x = xml_new(&ops, &c);
    enum err err = text.n ? xml_feed(x, text.p, text.n) : ERR_OK;
    if (!err)
        err = xml_end(x);
    xml_free(&x);
    buf_done(&c.text);
    return err;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- listing ---- */

static struct s3xml_object *open_item(struct s3xml_page *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 128;
        p->items = mem_realloc_array(p->items, p->cap, sizeof *p->items);
        memset(p->items + p->n, 0, (p->cap - p->n) * sizeof *p->items);
    }
    return &p->items[p->n];
}

static bool object_leaf(struct s3xml_object *o, const char *name, struct sv text)
{
    if (is(name, "Key")) {
        mem_free(o->key);
        o->key = mem_strndup(text.p, text.n);
    } else if (is(name, "Size")) {
        return sv_to_u64(text, &o->size);
    } else if (is(name, "LastModified")) {
        return wall_parse(text.p, &o->modified);
    }
    return true;
}

struct page_walk {
    struct s3xml_page *page;
    bool is_one;
};

static bool page_leaf(void *arg, const char *parent, const char *name, struct sv text)
{
    struct page_walk *w = arg;
    struct s3xml_page *p = w->page;
    if (is(parent, "Contents"))
        return object_leaf(open_item(p), name, text);
    if (is(parent, "") && is(name, "ListBucketResult")) /* an empty element */
        w->is_one = true;
    if (!is(parent, "ListBucketResult"))
        return true; /* Owner and the like */
    if (is(name, "IsTruncated"))
        p->truncated = sv_eq_cstr(text, "true");
    else if (is(name, "EncodingType"))
        p->url_encoded = sv_eq_cstr(text, "url");
    else if (is(name, "NextContinuationToken") && text.n > 0) {
        mem_free(p->next);
        p->next = mem_strndup(text.p, text.n);
    }
    return true;
}

static bool page_record(void *arg, const char *name)
{
    struct page_walk *w = arg;
    if (is(name, "ListBucketResult"))
        w->is_one = true;
    return !is(name, "Contents") || (open_item(w->page)->key && ++w->page->n);
}

/* encoding-type=url is form encoding: a space is a plus. */
static bool decode_key(struct s3xml_object *o)
{
    struct buf b = BUF_INIT(8192);
    for (char *s = o->key; *s; s++)
        if (*s == '+')
            *s = ' ';
    bool fine = !str_url_decode(&b, sv_of(o->key));
    if (fine) {
        mem_free(o->key);
        o->key = buf_take(&b, NULL);
    }
    buf_done(&b);
    return fine;
}

enum err s3xml_page_parse(struct sv xml, struct s3xml_page *out)
{
    *out = (struct s3xml_page){0};
    struct page_walk pw = {.page = out};
    struct walk w = {page_leaf, page_record, &pw};
    enum err err = walk(xml, &w);
    if (!err && !pw.is_one)
        err = ERR_PARSE;
    for (size_t i = 0; i < out->n && !err && out->url_encoded; i++)
        err = decode_key(&out->items[i]) ? ERR_OK : ERR_PARSE;
    if (err)
        s3xml_page_done(out);
    return err;
}

void s3xml_page_done(struct s3xml_page *p)
{
    for (size_t i = 0; i < p->cap; i++) /* one beyond n may be half read */
        mem_free(p->items[i].key);
    mem_free(p->items);
    mem_free(p->next);
    *p = (struct s3xml_page){0};
}

/* ---- errors ---- */

static void error_leaf(struct s3xml_error *e, const char *name, struct sv text)
{
    if (is(name, "Code"))
        snprintf(e->code, sizeof e->code, SV_FMT, SV_ARG(text));
    else if (is(name, "Message"))
        snprintf(e->message, sizeof e->message, SV_FMT, SV_ARG(text));
}

static bool error_doc_leaf(void *arg, const char *parent, const char *name, struct sv text)
{
    if (is(parent, "Error"))
        error_leaf(arg, name, text);
    return true;
}

static bool any_record(void *arg, const char *name)
{
    (void)arg, (void)name;
    return true;
}

void s3xml_error_parse(struct sv xml, struct s3xml_error *out)
{
    *out = (struct s3xml_error){0};
    struct walk w = {error_doc_leaf, any_record, out};
    if (walk(xml, &w))
        *out = (struct s3xml_error){0};
}

struct delete_result {
    bool is_one;
    size_t failed;
    struct s3xml_error current, first;
};

static bool delete_leaf(void *arg, const char *parent, const char *name, struct sv text)
{
    struct delete_result *d = arg;
    if (is(parent, "Error"))
        error_leaf(&d->current, name, text);
    if (is(parent, "") && is(name, "DeleteResult")) /* quiet and nothing wrong: an empty element */
        d->is_one = true;
    return true;
}

static bool delete_record(void *arg, const char *name)
{
    struct delete_result *d = arg;
    if (is(name, "DeleteResult"))
        d->is_one = true;
    if (!is(name, "Error"))
        return true;
    if (!is(d->current.code, "NoSuchKey") && d->failed++ == 0)
        d->first = d->current;
    d->current = (struct s3xml_error){0};
    return true;
}

enum err s3xml_delete_parse(struct sv xml, size_t *failed, struct s3xml_error *first)
{
    struct delete_result d = {0};
    struct walk w = {delete_leaf, delete_record, &d};
    enum err err = walk(xml, &w);
    *failed = d.failed;
    *first = d.first;
    return err ? err : d.is_one ? ERR_OK : ERR_PARSE;
}
