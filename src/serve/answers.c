/* serve/answers: responses, each with the headers that keep a browser from doing more with it. */
#include "base/hash.h"
#include "base/mem.h"
#include "serve/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct blob *blob_take(struct buf *buf)
{
    struct blob *blob = MEM_NEW(struct blob);
    blob->length = buf->length;
    blob->hash = hash_checksum(buf_text(buf), buf->length, 1);
    blob->bytes = buf_take(buf);
    blob->references = 1;
    return blob;
}

struct blob *blob_hold(struct blob *blob)
{
    blob->references++;
    return blob;
}

void blob_drop(void *context)
{
    struct blob *blob = context;
    if (!blob || --blob->references > 0)
        return;
    mem_free(blob->bytes);
    mem_free(blob);
}

void answer_headers(struct MHD_Response *response, const char *type)
{
    const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache, private"},
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        (void)MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static struct MHD_Response *copied(const char *text, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    answer_headers(response, type);
    return response;
}

enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = copied(text, "text/plain; charset=utf-8");
    if (status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, POST");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "5");
    return queue(connection, status, response);
}

enum MHD_Result answer_failure(struct MHD_Connection *connection, const struct err *err)
{
    char text[sizeof err->message + 2];
    unsigned status = err->code == ERR_NOT_FOUND ? MHD_HTTP_NOT_FOUND
                      : err->code == ERR_USAGE   ? MHD_HTTP_BAD_REQUEST
                      : err->code == ERR_BUSY    ? MHD_HTTP_CONFLICT
                                                 : MHD_HTTP_INTERNAL_SERVER_ERROR;
    snprintf(text, sizeof text, "%s\n", err->message);
    return answer_text(connection, status, text);
}

enum MHD_Result answer_post(struct MHD_Connection *connection, const struct serve_post *post)
{
    char seconds[16];
    bool good = post->status >= 200 && post->status < 300;
    struct MHD_Response *response =
        copied(buf_text(&post->out), good ? "application/json" : "text/plain; charset=utf-8");
    snprintf(seconds, sizeof seconds, "%u", post->retry_s);
    if (post->retry_s > 0)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    return queue(connection, post->status, response);
}

enum MHD_Result answer_blob(struct MHD_Connection *connection, struct blob *blob, const char *type)
{
    char tag[32];
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", blob->hash);
    bool same = known && strcmp(known, tag) == 0;
    struct MHD_Response *response =
        same ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
             : MHD_create_response_from_buffer_with_free_callback_cls(blob->length, blob->bytes,
                                                                      blob_drop, blob_hold(blob));
    answer_headers(response, type);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
    return queue(connection, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}

/* By a page, not by a redirect: a browser that came from elsewhere would not send it a cookie that
 * is SameSite=Strict. `path` has no character that HTML minds. */
enum MHD_Result answer_cookie(const struct serve *serve, struct MHD_Connection *connection,
                              const char *path)
{
    char page[PATH_MOST + 128], cookie[128];
    snprintf(page, sizeof page,
             "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">go "
             "on</a>\n",
             path, path);
    snprintf(cookie, sizeof cookie, "twagent_%u=%s; HttpOnly; SameSite=Strict; Path=/", serve->port,
             serve->token);
    struct MHD_Response *response = copied(page, "text/html; charset=utf-8");
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    return queue(connection, MHD_HTTP_OK, response);
}
