/* loop/http: many requests at once over libcurl multi, on libuv's polls and timers.
 * Loop thread only. The body is stored as it arrives and wakes the owner; the owner takes it out
 * with http_consume(). Completions are reaped after every socket and timer action, also when no
 * transfer is left running. TLS is always verified; a redirect is never followed (its status is
 * the answer), so a key never travels to another host. Limits are ours, by the monotonic clock. The
 * environment's proxies are used, as libcurl does (https_proxy, no_proxy). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct task;
struct http;         /* the engine: one a loop */
struct http_request; /* one transfer */

struct http *http_new(struct loop *loop, struct err *err);
void http_free(struct http *http); /* NULL is fine; asserts that no transfer is running */

/* A header "authorization: " HTTP_SIGNS "REGION/SERVICE ID:SECRET[:TOKEN]" is not sent: the request
 * is signed with it, by libcurl (AWS Signature Version 4), each time that it is started. */
#define HTTP_SIGNS "AWS4-HMAC-SHA256 "

struct http_spec {              /* borrowed until http_start() returns */
    const char *method;         /* "POST" */
    const char *url;            /* http:// or https:// alone */
    const char *const *headers; /* NULL-terminated, "name: value"; a secret in it is not logged */
    const char *body;
    size_t body_length;
    uint64_t connect_ms;       /* 0: 10 s; name, TCP and TLS together */
    uint64_t first_byte_ms;    /* 0: 10 min; from connected to the answer's first body byte */
    uint64_t between_bytes_ms; /* 0: 2 min */
    uint64_t total_ms;         /* 0: 1 h */
    size_t body_max;           /* bytes after decoding; more aborts with ERR_LIMIT; 0: 16 MiB */
    const char *ca_file;       /* extra trust for tests; NULL: the system's */
    bool fresh;                /* on a connection of its own, not on one that was kept alive */
};

/* NULL with *err on a bad URL or method (then nothing is pending). */
struct http_request *http_start(struct http *http, struct task *owner, const struct http_spec *spec,
                                struct err *err);

bool http_done(const struct http_request *request);
/* 0 while unknown. The header is the last of that name, "" if absent; case-insensitive. */
int http_status(const struct http_request *request);
const char *http_header(const struct http_request *request, const char *name);

/* What has arrived and was not consumed; borrowed until the next turn of the loop. */
const char *http_body(const struct http_request *request, size_t *length);
void http_consume(struct http_request *request, size_t length);

/* ERR_NONE after a whole answer (any status). Else ERR_NETWORK (connect, reset, TLS: message says
 * which), ERR_TIMEOUT (message names the limit), ERR_LIMIT, ERR_CANCELLED. */
const struct err *http_error(const struct http_request *request);
/* The peer could not be trusted (certificate, name, chain): another try cannot help. */
bool http_error_is_tls(const struct http_request *request);
/* There is no such name (or nobody who could tell). */
bool http_error_is_unresolved(const struct http_request *request);
/* It failed on a connection that was kept alive, before a byte of an answer: the peer had let go of
 * it, and `fresh` will tell. libcurl has tried that by itself where it could see it. */
bool http_error_is_stale(const struct http_request *request);
/* It had a connection, so that the peer may have read it. */
bool http_connected(const struct http_request *request);

void http_free_request(struct http_request *request); /* cancels first if it must; no wake after */
