/* serve/posts: bodies that the site reads, and answers when it likes; their connection is suspended
 * until then. */
#include "base/mem.h"
#include "serve/private.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { OUT_MOST = 1 << 20 };

static void name_peer(struct MHD_Connection *connection, char text[64])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    socklen_t length = address && address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                 : sizeof(struct sockaddr_in);
    if (!address || getnameinfo(address, length, text, 64, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(text, 64, "unknown");
}

unsigned post_begin(struct serve *serve, struct request *request, const char *path,
                    unsigned long length, const char **why)
{
    *why = "a body takes at most 4 MiB\n";
    if (length > POST_MOST)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    *why = "too many at once: come again in a second\n";
    if (serve->post_bytes + length > POSTS_MOST)
        return MHD_HTTP_TOO_MANY_REQUESTS;
    struct serve_post *post = MEM_NEW(struct serve_post);
    post->path = path; /* the site's own */
    post->serve = serve;
    post->request = request;
    buf_init(&post->body, POST_MOST);
    buf_init(&post->out, OUT_MOST);
    name_peer(request->connection, post->peer);
    request->post = post;
    return 0;
}

bool post_add(struct request *request, const char *bytes, size_t count)
{
    struct serve_post *post = request->post;
    if (post->serve->post_bytes + count > POSTS_MOST)
        return false;
    buf_add(&post->body, bytes, count);
    post->serve->post_bytes += count - post->body.dropped;
    return post->body.dropped == 0;
}

static void free_post(struct serve_post *post)
{
    buf_free(&post->body);
    buf_free(&post->out);
    mem_free(post);
}

enum MHD_Result post_step(struct request *request)
{
    struct serve_post *post = request->post;
    struct serve *serve = post->serve;
    if (!post->answered) {
        serve->posts++;
        task_expect(&serve->task);
        request->suspended = true;
        MHD_suspend_connection(request->connection);
        serve->site->post(serve->site->context, post);
        return MHD_YES;
    }
    bool follows = request->reserved && *post->follow && !serve->task.cancel_requested;
    if (!follows || post->status != MHD_HTTP_ACCEPTED)
        return answer_post(request->connection, post);
    struct document *feed = document_feed(serve, post->follow);
    post_forget(request); /* what was posted is not kept for as long as it is followed */
    return request_follow(serve, request, feed);
}

void serve_answer(struct serve_post *post)
{
    struct serve *serve = post->serve;
    struct request *request = post->request;
    serve->posts--;
    post->answered = true;
    if (request)
        request_resume(request);
    else
        free_post(post); /* its client has gone */
    task_complete(&serve->task);
}

void post_forget(struct request *request)
{
    struct serve_post *post = request->post;
    bool asked = request->suspended && !post->answered;
    post->serve->post_bytes -= post->body.length;
    post->request = NULL;
    request->post = NULL;
    if (!asked)
        free_post(post);
}
