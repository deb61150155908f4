/* serve/viewers: streams of server-sent events. A viewer holds one frame, the one that it is being
 * sent; when that has gone it gets the document's last one, whatever came between. While there is
 * nothing new its connection is suspended. */
#include "base/mem.h"
#include "serve/private.h"

#include <string.h>

static const char beat[] = ": \n\n";

struct blob *viewer_frame(const struct document *document)
{
    struct buf out;
    const char *text = document->blob->bytes ? document->blob->bytes : "";
    buf_init(&out, 2 * (size_t)DOCUMENT_BYTES);
    while (*text) {
        size_t length = strcspn(text, "\r\n");
        buf_add_text(&out, "data: ");
        buf_add(&out, text, length);
        buf_add_text(&out, document->feed ? "\n\n" : "\n"); /* of a feed each line is an event */
        text += length + strspn(text + length, "\r\n");
    }
    if (document->left == FEED_ENDS)
        buf_add_text(&out, "event: end\ndata: {}\n");
    if (!document->feed || document->left == FEED_ENDS)
        buf_add_char(&out, '\n');
    return blob_take(&out);
}

/* The document's last frame, unless that is what was sent last. Compared by its bytes: what was
 * made again and says the same is no news. */
static bool begin(struct viewer *viewer)
{
    struct document *document = viewer->document;
    if (!document->blob)
        return false;
    if (!document->frame)
        document->frame = viewer_frame(document);
    if (!document->feed && viewer->seen && viewer->seen->hash == document->frame->hash)
        return false;
    blob_drop(viewer->seen);
    viewer->seen = blob_hold(document->frame);
    viewer->frame = viewer->seen;
    viewer->sent = 0;
    return true;
}

static ssize_t read_events(void *context, uint64_t position, char *out, size_t most)
{
    struct viewer *viewer = context;
    (void)position;
    if (viewer->serve->task.cancel_requested || viewer->gone)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!viewer->frame && !begin(viewer)) {
        if (viewer->document->left == FEED_ENDS)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (viewer->beat && most >= sizeof beat - 1) {
            viewer->beat = false;
            memcpy(out, beat, sizeof beat - 1);
            return sizeof beat - 1;
        }
        viewer->suspended = true;
        MHD_suspend_connection(viewer->connection);
        return 0;
    }
    viewer->beat = false;
    size_t left = viewer->frame->length - viewer->sent;
    size_t length = left < most ? left : most;
    memcpy(out, viewer->frame->bytes + viewer->sent, length);
    viewer->sent += length;
    if (viewer->sent == viewer->frame->length) {
        viewer->frame = NULL;
        if (viewer->document->feed) {
            blob_drop(viewer->seen); /* it may be the last for hours */
            viewer->seen = NULL;
            document_told(viewer->serve, viewer->document);
        }
    }
    return (ssize_t)length;
}

static void end(void *context)
{
    struct viewer *viewer = context;
    viewer->serve->viewer_count--;
    list_remove(&viewer->link);
    document_leave(viewer->serve, viewer->document);
    blob_drop(viewer->seen);
    mem_free(viewer);
}

enum MHD_Result viewer_start(struct serve *serve, struct MHD_Connection *connection,
                             struct document *document)
{
    enum { BLOCK = 4096 };
    if (serve->viewer_count >= VIEWERS_MOST)
        return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many viewers\n");
    struct viewer *viewer = MEM_NEW(struct viewer);
    viewer->serve = serve;
    viewer->document = document;
    viewer->connection = connection;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, viewer, end);
    answer_headers(response, "text/event-stream; charset=utf-8");
    list_append(&document->viewers, &viewer->link);
    serve->viewer_count++;
    document->users++;
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static void resume(struct viewer *viewer)
{
    if (!viewer->suspended)
        return;
    viewer->suspended = false;
    MHD_resume_connection(viewer->connection);
}

void viewers_wake(struct document *document)
{
    list_each (link, &document->viewers)
        resume(container_of(link, struct viewer, link));
}

/* libmicrohttpd does not look at a connection that is suspended. */
static bool has_gone(const struct viewer *viewer)
{
    char byte;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(viewer->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void viewers_look(struct serve *serve)
{
    list_each (link, &serve->documents) {
        struct document *document = container_of(link, struct document, link);
        list_each (inner, &document->viewers) {
            struct viewer *viewer = container_of(inner, struct viewer, link);
            if (viewer->suspended && has_gone(viewer)) {
                viewer->gone = true;
                resume(viewer);
            }
        }
    }
}

static void each_viewer(struct serve *serve, bool beats)
{
    list_each (link, &serve->documents) {
        struct document *document = container_of(link, struct document, link);
        list_each (inner, &document->viewers) {
            struct viewer *viewer = container_of(inner, struct viewer, link);
            viewer->beat = beats;
            resume(viewer);
        }
    }
}

void viewers_beat(struct serve *serve)
{
    each_viewer(serve, true);
}

void viewers_resume_all(struct serve *serve)
{
    each_viewer(serve, false);
}
