/* loop/http_private: what the files of loop/http share; no libcurl type goes further. */
#ifndef LOOP_HTTP_PRIVATE_H
#define LOOP_HTTP_PRIVATE_H

#include "base/buf.h"
#include "base/list.h"
#include "loop/http.h"
#include "loop/loop.h"

#include <curl/curl.h>
#include <uv.h>

enum { HTTP_READ_BYTES = 1024 }; /* at once: a thousand slow streams fit in memory */

struct http {
    struct loop *loop;
    CURLM *multi;
    uv_timer_t timer;    /* what libcurl asked for with its timer callback */
    uv_timer_t pace;     /* of the sockets in `paced` */
    struct list sockets; /* struct http_socket that libcurl wants polled (http_multi.c) */
    struct list paced;   /* those of them that are read at intervals instead */
    uint64_t received;   /* bytes of all bodies */
    unsigned running;    /* requests that are not done */
    unsigned handles;    /* that are still closing */
};

enum http_limit { LIMIT_CONNECT, LIMIT_FIRST_BYTE, LIMIT_BETWEEN_BYTES, LIMIT_TOTAL, LIMITS };

struct http_request {
    struct http *http;
    struct task *owner;
    CURL *easy; /* NULL once done */
    struct curl_slist *headers_out;
    bool done, tls, over_limit, stale, unresolved;
    bool late; /* a limit has passed; the sockets get one more look before it counts */
    int status;
    bool head_ended;    /* the blank line after the headers has come */
    struct buf headers; /* of the last answer: lines, each ended by a NUL */
    struct buf body;
    size_t consumed;   /* of the body, still in the buffer */
    uint64_t received; /* body bytes in all, after decoding */
    size_t body_max;
    size_t unsent; /* bytes of the request's body that libcurl keeps */
    struct err error;
    char what[160]; /* "POST api.example.com": for messages; no path, no query */
    char curl_message[CURL_ERROR_SIZE];
    struct timer timer;
    uint64_t limit_ms[LIMITS];
    uint64_t started_ns, connected_ns, last_byte_ns; /* 0: not yet */
};

/* --- http_multi.c --- */
void http_multi_add(struct http *http, struct http_request *request);
void http_multi_remove(struct http *http, struct http_request *request);
/* Reads what waits in sockets that are not polled; may end any request. */
void http_multi_look(struct http *http);

/* --- http.c: called by http_multi.c when libcurl is done with a transfer --- */
void http_transfer_done(struct http_request *request, CURLcode code);

/* --- http_easy.c --- */
/* Makes request->easy from the spec; on failure what was made is left for http_drop_easy(). */
int http_make_easy(struct http_request *request, const struct http_spec *spec,
                   struct err *err) MUST_USE;
void http_drop_easy(struct http_request *request);
void http_drop_sent(struct http_request *request); /* its own body, if nobody needs it any more */
/* Called on what libcurl delivers. */
void http_on_connected(struct http_request *request);
size_t http_on_header(struct http_request *request, const char *line, size_t length);
size_t http_on_body(struct http_request *request, const char *bytes, size_t length);

#endif
