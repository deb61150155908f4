/* serve/serve: documents over HTTP for people and programs of this machine: whole, or as a stream
 * of server-sent events whenever they change; and a few acts, by POST. libmicrohttpd stays inside,
 * driven by the loop.
 *
 * A document is made on a pool thread, once for all who want it, at most so often that making them
 * takes a twentieth of a core. Who watches one holds a single frame of it: whoever does not read
 * misses what lies between, and costs nothing more.
 *
 * Without a token only processes of the same user (or root) are let in, from this machine and by a
 * name of this machine: another user, and a page of elsewhere in the browser, are not. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct serve; /* opaque */

enum { SERVE_NOTE = 256, SERVE_FEED_BYTES = 256 << 10 }; /* about so much of a feed at once */
enum serve_feed { FEED_WAITS, FEED_MORE, FEED_ENDS }; /* until something changes; no; it is over */

struct serve_post { /* with a body, from its arrival until it was answered; the server's */
    const char *path;
    struct buf body;
    char peer[64]; /* the address it came from */
    /* the answer */
    bool answered;
    char follow[64];  /* a path of feed(), in place of `out` for who wants events; "": none */
    unsigned status;  /* of HTTP; 200 to 299: out is JSON, else a line for people */
    unsigned retry_s; /* come again after; 0: not said */
    struct buf out;
    struct serve *serve; /* from here on the server's own */
    struct request *request;
};

struct serve_site { /* borrowed for the server's life */
    void *context;
    /* Pool thread, one call at a time. Changes where a document may have changed. */
    uint64_t (*version)(void *context);
    /* Pool thread, one call at a time: the document at `path` ("/v1/runs/r3"), without its query;
     * *type is static. ERR_NOT_FOUND: 404; ERR_USAGE: 400; what else fails: 500. */
    int (*document)(void *context, const char *path, struct buf *out, const char **type,
                    struct err *err);
    /* Whether a stream of `path` is a feed: not its document whenever that changed, but events that
     * say what did. Any thread. */
    bool (*feeds)(const char *path);
    /* Pool thread, one call at a time: what changed since the last call with `note`, where the site
     * keeps what one viewer knows (zero at first): JSON values, a line each, some now and the rest
     * when it is asked again. Errors as document()'s, at the first call. */
    int (*feed)(void *context, const char *path, char note[SERVE_NOTE], struct buf *out,
                enum serve_feed *left, struct err *err);
    /* Loop thread, shortly: a POST to `path` by somebody who may; `confirmed` is what its header
     * X-Twagent-Confirm names. ERR_BUSY: 409. `out` is JSON. */
    int (*act)(void *context, const char *path, const char *confirmed, struct buf *out,
               struct err *err);
    /* Loop thread: a POST of JSON to `post_path` by somebody who may. serve_answer() is called
     * once, now or later. NULL: there is no such path. */
    const char *post_path;
    void (*post)(void *context, struct serve_post *post);
    void (*end)(void *context); /* loop thread: the server ends; posts that wait are answered */
};

struct serve_options {
    const char *listen; /* "127.0.0.1:7007", "7007", "[::1]:0", "0.0.0.0" */
    const char *token;  /* SERVE_TOKEN characters: lets in whoever has it */
};

enum { SERVE_TOKEN = 32, SERVE_PORT = 7007 };

/* Goes on until SIGINT or SIGTERM. ERR_USAGE for `listen`, ERR_ENVIRONMENT where the port is taken.
 */
int serve_new(struct loop *loop, const struct serve_options *options, const struct serve_site *site,
              struct serve **serve, struct err *err) MUST_USE;
void serve_free(struct serve *serve); /* after loop_run() */

/* Loop thread. With `status` and `out` set; the site forgets the post. */
void serve_answer(struct serve_post *post);
/* Loop thread: documents may have changed; viewers see it now, and not at the next look. */
void serve_changed(struct serve *serve);

/* "http://127.0.0.1:7007/", with the token where one is needed; for the server's life. */
const char *serve_url(const struct serve *serve);

/* 32 hexadecimal digits from the kernel. */
void serve_make_token(char token[SERVE_TOKEN + 1]);
