/* loop/http_private: what the files of loop/http share; no libcurl type goes further. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "loop/http.h"
#include "loop/loop.h"

#include <curl/curl.h>
#include <uv.h>

enum {
    HTTP_READ_BYTES = 1024, /* at once: a thousand slow streams fit in memory */
    /* libcurl 7.88 forgets the end of an HTTP/2 answer whose last frame does not fit in what is
     * left of the buffer (until the connection has more to say), so this holds several. Only the
     * pages that were written to count. */
    HTTP_READ_BYTES_TLS = 64 << 10
};

struct http {
    struct loop *loop;
    CURLM *multi;
    uv_timer_t timer;        /* what libcurl asked for with its timer callback */
    uv_timer_t pace;         /* of the sockets in `paced` */
    struct list sockets;     /* struct http_socket that libcurl wants polled (http_multi.c) */
    struct list origins;     /* struct http_origin */
    struct list connections; /* struct http_connection: all that are open */
    struct list paced;       /* those of them that are read at intervals instead */
    uint64_t received;       /* bytes of all bodies */
    unsigned socket_count;
    unsigned running; /* requests that are not done */
    unsigned handles; /* that are still closing */
};

struct http_connection { /* http_sockets.c */
    struct link link;
    int fd;
    uint64_t heard_ns; /* when it last brought a part of a body; 0: never */
};

struct http_origin { /* an https server: host and port (http_origin.c) */
    struct link link;
    char *name;
    enum { ORIGIN_UNKNOWN, ORIGIN_MULTIPLEXED, ORIGIN_SINGLE } kind;
    unsigned opened;             /* connections, ever */
    unsigned connecting, active; /* requests */
    struct list staged;          /* requests that libcurl has not got yet */
};

enum http_place { PLACE_OUTSIDE, PLACE_STAGED, PLACE_CONNECTING, PLACE_ACTIVE };

enum http_limit { LIMIT_CONNECT, LIMIT_FIRST_BYTE, LIMIT_BETWEEN_BYTES, LIMIT_TOTAL, LIMITS };

struct http_request {
    struct http *http;
    struct task *owner;
    CURL *easy;                 /* NULL once done */
    struct http_origin *origin; /* NULL: http, and whoever wants a connection of its own */
    enum http_place place;      /* there */
    struct link staged_link;
    struct curl_slist *headers_out;
    bool done, tls, over_limit, stale, unresolved;
    bool tls_url; /* https:// */
    bool late;    /* a limit has passed; the sockets get one more look before it counts */
    int own_port, peer_port; /* of its connection; 0: not known */
    bool unsolicited;        /* that one had said what nobody had asked for */
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

/* --- http_sockets.c --- */
CURLcode http_watch_sockets(struct http *http, CURL *easy) MUST_USE;
void http_forget_connections(struct http *http); /* once libcurl has none any more */
struct http_connection *http_connection_of(struct http *http, int fd); /* NULL: not libcurl's */
/* Bytes wait on the request's connection, before anything was sent for it. */
bool http_connection_spoke(const struct http_request *request);
/* Ends the request's connection, with all that is on it, where that was silent since then. */
void http_connection_retire(const struct http_request *request, uint64_t since_ns);

/* --- http_origin.c --- */
struct http_origin *http_origin_find(struct http *http, const char *host, const char *port);
void http_origins_free(struct http *http);
void http_origin_enter(struct http_request *request); /* gives it to libcurl, now or later */
void http_origin_leave(struct http_request *request);
/* Called on what libcurl delivers; */
void http_origin_connected(struct http_request *request);
void http_origin_speaks(struct http_request *request, char version); /* '1', '2' */
void http_origins_release(struct http *http);                        /* and after that. */
bool http_origin_holds(const struct http_request *request); /* it waits for others: no limit */

/* --- http.c --- */
/* Called by http_multi.c when libcurl is done with a transfer. */
void http_transfer_done(struct http_request *request, CURLcode code);
void http_begin_limits(struct http_request *request); /* from now on */

/* --- http_easy.c --- */
/* Makes request->easy from the spec; on failure what was made is left for http_drop_easy(). */
int http_make_easy(struct http_request *request, const struct http_spec *spec,
                   struct err *err) MUST_USE;
void http_drop_easy(struct http_request *request);
void http_drop_sent(struct http_request *request); /* its own body, if nobody needs it any more */
/* Called on what libcurl delivers. */
/* False: not on this connection. */
bool http_on_connected(struct http_request *request);
size_t http_on_header(struct http_request *request, const char *line, size_t length);
size_t http_on_body(struct http_request *request, const char *bytes, size_t length);
