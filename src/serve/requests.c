/* serve/requests: what libmicrohttpd calls, on the loop's thread. */
#include "base/clock.h"
#include "base/mem.h"
#include "serve/private.h"

#include <stdlib.h>
#include <string.h>

/* A document's name, and nothing that a file system, HTML or a header would read otherwise. */
static bool is_path(const char *url)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    return *url == '/' && strspn(url, allowed) == strlen(url) && strlen(url) < PATH_MOST &&
           !strstr(url, "//") && !strstr(url, "..");
}

static bool wants_events(struct MHD_Connection *connection)
{
    const char *accept =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    return accept && strcmp(accept, "text/event-stream") == 0;
}

/* Once its document is made. */
static enum MHD_Result answer(struct serve *serve, struct request *request, bool events)
{
    struct document *document = request->document;
    if (serve->task.cancel_requested && request->reserved) /* what it posted is accepted */
        return answer_text(request->connection, MHD_HTTP_ACCEPTED, document->path);
    if (serve->task.cancel_requested)
        return answer_text(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
    if (!document->blob)
        return answer_failure(request->connection, &document->err);
    if (request->client)
        request->client->deadline_ms = events ? 0 : clock_now_ms() + ANSWER_MS;
    if (!events)
        return answer_blob(request->connection, document->blob, document->type);
    serve->viewer_count -= request->reserved;
    request->reserved = false;
    return viewer_start(serve, request->connection, document);
}

enum MHD_Result request_follow(struct serve *serve, struct request *request,
                               struct document *document)
{
    request->document = document;
    document->users++;
    list_append(&document->waiting, &request->link);
    documents_want(serve, document);
    request->suspended = true;
    MHD_suspend_connection(request->connection);
    return MHD_YES;
}

static enum MHD_Result get(struct serve *serve, struct request *request, const char *url)
{
    struct MHD_Connection *connection = request->connection;
    bool events = wants_events(connection);
    if (guard_token(serve, MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token")))
        return answer_cookie(serve, connection, url);
    if (serve->task.cancel_requested)
        return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
    struct document *document =
        events && serve->site->feeds(url) ? document_feed(serve, url) : document_of(serve, url);
    if (!document_is_fresh(document))
        return request_follow(serve, request, document);
    request->document = document;
    document->users++;
    return answer(serve, request, events);
}

static enum MHD_Result post(struct serve *serve, struct request *request, const char *url)
{
    BUF_LOCAL(out, 1 << 16);
    struct err err = {0};
    const char *confirmed =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "X-Twagent-Confirm");
    if (!confirmed)
        return answer_text(request->connection, MHD_HTTP_FORBIDDEN,
                           "the header X-Twagent-Confirm has to name the run\n");
    if (serve->site->act(serve->site->context, url, confirmed, &out, &err))
        return answer_failure(request->connection, &err);
    struct blob *blob = blob_take(&out);
    enum MHD_Result result = answer_blob(request->connection, blob, "application/json");
    blob_drop(blob);
    return result;
}

static enum MHD_Result first(struct serve *serve, struct request *request, const char *url,
                             const char *method)
{
    const char *why, *length = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                           MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned status = guard(serve, request->connection, method, &why);
    if (status)
        return answer_text(request->connection, status, why);
    if (!is_path(url))
        return answer_text(request->connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
    unsigned long bytes = length ? strtoul(length, NULL, 10) : 0;
    if (strcmp(method, "POST") == 0 && serve->site->post_path &&
        strcmp(url, serve->site->post_path) == 0) {
        bool events = wants_events(request->connection);
        if (events && serve->viewer_count >= VIEWERS_MOST)
            return answer_text(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                               "too many viewers: ask for no events, or come again\n");
        request->reserved = events;
        serve->viewer_count += request->reserved;
        status = post_begin(serve, request, serve->site->post_path, bytes, &why);
        return status ? answer_text(request->connection, status, why) : MHD_YES;
    }
    if (bytes > BODY_MOST)
        return answer_text(request->connection, MHD_HTTP_CONTENT_TOO_LARGE, "too large\n");
    return MHD_YES;
}

enum MHD_Result request_handle(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_bytes, void **state)
{
    struct serve *serve = context;
    struct request *request = *state;
    (void)version;
    if (!request) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        request = MEM_NEW(struct request);
        request->connection = connection;
        request->client = info ? info->socket_context : NULL;
        *state = request;
        return first(serve, request, url, method);
    }
    if (*upload_bytes > 0) {
        size_t count = *upload_bytes;
        *upload_bytes = 0;
        request->body += count;
        if (request->post)
            return post_add(request, upload, count) ? MHD_YES : MHD_NO;
        return request->body > BODY_MOST ? MHD_NO : MHD_YES; /* which nobody reads */
    }
    if (request->client)
        request->client->deadline_ms = clock_now_ms() + ANSWER_MS;
    if (request->document)
        return answer(serve, request, wants_events(connection));
    if (request->post)
        return post_step(request);
    return strcmp(method, "POST") == 0 ? post(serve, request, url) : get(serve, request, url);
}

void request_resume(struct request *request)
{
    request->suspended = false;
    MHD_resume_connection(request->connection);
}

void request_done(void *context, struct MHD_Connection *connection, void **state,
                  enum MHD_RequestTerminationCode code)
{
    struct serve *serve = context;
    struct request *request = *state;
    (void)connection, (void)code;
    if (!request)
        return;
    if (request->client)
        request->client->deadline_ms = clock_now_ms() + HEADER_MS;
    list_remove(&request->link);
    if (request->document)
        document_leave(serve, request->document);
    if (request->post)
        post_forget(request);
    serve->viewer_count -= request->reserved;
    mem_free(request);
    *state = NULL;
}

void connection_changed(void *context, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct serve *serve = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct client *client = MEM_NEW(struct client);
        client->fd = info ? info->connect_fd : -1;
        client->deadline_ms = clock_now_ms() + HEADER_MS;
        list_append(&serve->clients, &client->link);
        *socket_context = client;
    } else if (*socket_context) {
        struct client *client = *socket_context;
        list_remove(&client->link);
        mem_free(client);
        *socket_context = NULL;
    }
}
