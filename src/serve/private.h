/* serve/private: what the files of src/serve know of each other; nobody else includes it. */
#pragma once

#include "base/list.h"
#include "loop/loop.h"
#include "loop/readable.h"
#include "loop/task.h"
#include "loop/work.h"
#include "serve/serve.h"

#include <microhttpd.h>
#include <sys/socket.h>

enum {
    PATH_MOST = 128,
    DOCUMENTS_MOST = 64,       /* kept, but for those that are in use */
    DOCUMENT_BYTES = 64 << 20, /* of one */
    CONNECTIONS_MOST = 256,
    VIEWERS_MOST = 128,
    CONNECTION_BYTES = 16 << 10, /* of a request's line and headers; more is 431 */
    BODY_MOST = 4 << 10,
    POST_MOST = 4 << 20,     /* of a body that is read */
    POSTS_MOST = 64 << 20,   /* and of all of them */
    SOCKET_BYTES = 64 << 10, /* what the kernel keeps of what a client has not read */
    HEADER_MS = 5000,        /* longest for a whole request to arrive */
    ANSWER_MS = 60000,       /* longest for its answer to be taken */
    IDLE_S = 30,             /* longest without a byte where one is waited for */
    TICK_MS = 1000,
    HEARTBEAT_MS = 15000,
    FRESH_MS = 250, /* least between two looks at a document */
    COST_SHARE = 20 /* so many times as long as it took to make is it not made again */
};

/* Bytes that several responses hold. Loop thread only. */
struct blob {
    unsigned references;
    size_t length;
    char *bytes;
    uint64_t hash;
};
struct blob *blob_take(struct buf *buf); /* one reference; buf is empty after */
struct blob *blob_hold(struct blob *blob);
void blob_drop(void *blob); /* NULL is fine */

struct document {
    struct link link; /* of serve->documents, latest use first */
    char path[PATH_MOST];
    struct blob *blob, *frame; /* the last that was made, and as an event; NULL: none */
    struct err err;            /* why there is none */
    const char *type;
    uint64_t version, looked_ms, cost_ms;
    bool looked, wanted;
    size_t users; /* requests and viewers that point here */
    bool feed;    /* one viewer's own: `blob` is what it has to be told next */
    enum serve_feed left;
    char note[SERVE_NOTE];
    struct list waiting, viewers;
};

struct viewer { /* one stream of events */
    struct link link;
    struct serve *serve;
    struct document *document;
    struct MHD_Connection *connection;
    struct blob *frame; /* being sent; NULL: nothing */
    size_t sent;
    struct blob *seen; /* the last that was begun */
    bool suspended, beat, gone;
};

struct client { /* one connection */
    struct link link;
    int fd;
    uint64_t deadline_ms; /* what it owes us is late then; 0: it owes nothing */
};

struct request {      /* of one connection, from its first line to its answer */
    struct link link; /* of document->waiting */
    struct document *document;
    struct MHD_Connection *connection;
    struct client *client;
    size_t body;
    struct serve_post *post; /* or NULL */
    bool suspended;
    bool reserved; /* a viewer's place, before its POST is accepted */
};

struct serve {
    struct task task;
    const struct serve_site *site;
    char token[SERVE_TOKEN + 1];
    char host[64]; /* as bound */
    char url[192];
    unsigned port;
    bool local; /* bound to a loopback address: who is of this user needs no token */
    struct MHD_Daemon *daemon;
    int epoll_fd;
    struct readable readable;
    struct timer timer;
    struct signal_watch interrupt, terminate;
    struct list documents, clients;
    size_t viewer_count;
    size_t post_bytes; /* of bodies that are kept */
    unsigned posts;    /* that the site has to answer */
    bool told_end;     /* the site was */
    uint64_t ticked_ms, beaten_ms;
    struct work work; /* making one document */
    struct job {
        struct serve *serve;
        struct document *document;
        uint64_t version, cost_ms;
        struct buf out;
        const char *type;
        bool made;
        enum serve_feed left;
        struct err err;
    } job;
    struct err err;
};

/* ---- listen.c ---- */
int serve_listen(struct serve *serve, const char *listen, int *fd, struct err *err) MUST_USE;

/* ---- guard.c: who may come in ---- */
/* 0, or the status to refuse with, and why. */
unsigned guard(const struct serve *serve, struct MHD_Connection *connection, const char *method,
               const char **why);
bool guard_token(const struct serve *serve, const char *text);

/* ---- documents.c ---- */
struct document *document_of(struct serve *serve, const char *path); /* found or made */
struct document *document_feed(struct serve *serve, const char *path);
void document_leave(struct serve *serve, struct document *document); /* by one of its users */
void document_told(struct serve *serve, struct document *feed);      /* its viewer was sent all */
bool document_is_fresh(const struct document *document);
void documents_want(struct serve *serve, struct document *document);
void documents_step(struct serve *serve); /* takes what was made, begins with the next */
void documents_tick(struct serve *serve);
/* The last call: whoever waits is resumed, and finds that the server ends. */
void documents_end(struct serve *serve);
void documents_free(struct serve *serve);

/* ---- requests.c: libmicrohttpd's calls ---- */
enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_bytes, void **state);
void request_done(void *context, struct MHD_Connection *connection, void **state,
                  enum MHD_RequestTerminationCode code);
void connection_changed(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
void request_resume(struct request *request);

/* The request's document as a stream, or why not, once it is made. */
enum MHD_Result request_follow(struct serve *serve, struct request *request,
                               struct document *document);

/* ---- posts.c: those with a body ---- */
/* 0, or the status to refuse with, and why. */
unsigned post_begin(struct serve *serve, struct request *request, const char *path,
                    unsigned long length, const char **why);
bool post_add(struct request *request, const char *bytes, size_t count); /* false: too large */
enum MHD_Result post_step(struct request *request);                      /* it is whole */
void post_forget(struct request *request);                               /* the request is over */

/* ---- viewers.c ---- */
enum MHD_Result viewer_start(struct serve *serve, struct MHD_Connection *connection,
                             struct document *document);
void viewers_wake(struct document *document); /* there is a new frame */
void viewers_look(struct serve *serve);       /* lets those go whose client has gone */
void viewers_beat(struct serve *serve);
void viewers_resume_all(struct serve *serve); /* at the end: each finds that */
struct blob *viewer_frame(const struct document *document);

/* ---- answers.c ---- */
enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *text);
enum MHD_Result answer_failure(struct MHD_Connection *connection, const struct err *err);
enum MHD_Result answer_post(struct MHD_Connection *connection, const struct serve_post *post);
enum MHD_Result answer_blob(struct MHD_Connection *connection, struct blob *blob, const char *type);
enum MHD_Result answer_cookie(const struct serve *serve, struct MHD_Connection *connection,
                              const char *path);
void answer_headers(struct MHD_Response *response, const char *type);
