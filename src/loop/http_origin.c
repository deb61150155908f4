/* loop/http: who may open a connection to an https server. With HTTP/2 a connection takes a hundred
 * requests; but those that start while none is known to be free open one each, and a connection is
 * 100 KB and a handshake.
 *
 *   UNKNOWN, one at a time --two share a connection--> MULTIPLEXED, a few at a time
 *           \------a second needs its own----> SINGLE, all at once
 *
 * "At a time" are those that libcurl has and that have no connection yet. The others are staged:
 * theirs is the connect limit while nothing is known (a server that cannot be reached ends them
 * all), and none while others get through. What the answers' first lines say counts at any time. */
#include "loop/http_private.h"

#include "base/mem.h"

#include <string.h>

enum { CONNECTING_MAX = 2 };

struct http_origin *http_origin_find(struct http *http, const char *host, const char *port)
{
    BUF_LOCAL(name, 1024);
    buf_addf(&name, "%s:%s", host, port);
    list_each (link, &http->origins) {
        struct http_origin *origin = container_of(link, struct http_origin, link);
        if (strcmp(origin->name, buf_text(&name)) == 0)
            return origin;
    }
    struct http_origin *origin = MEM_NEW(struct http_origin);
    origin->name = buf_take(&name);
    list_init(&origin->staged);
    list_append(&http->origins, &origin->link);
    return origin;
}

void http_origins_free(struct http *http)
{
    for (struct link *link; (link = list_pop(&http->origins)) != NULL;) {
        struct http_origin *origin = container_of(link, struct http_origin, link);
        mem_free(origin->name);
        mem_free(origin);
    }
}

static bool has_room(const struct http_origin *origin)
{
    return origin->kind == ORIGIN_SINGLE ||
           origin->connecting < (origin->kind == ORIGIN_UNKNOWN ? 1 : CONNECTING_MAX);
}

static void begin(struct http_request *request)
{
    if (request->origin != NULL) {
        request->place = PLACE_CONNECTING;
        request->origin->connecting++;
    }
    http_multi_add(request->http, request);
}

void http_origin_enter(struct http_request *request)
{
    struct http_origin *origin = request->origin;
    if (origin == NULL || (list_empty(&origin->staged) && has_room(origin))) {
        begin(request);
        return;
    }
    request->place = PLACE_STAGED;
    list_append(&origin->staged, &request->staged_link);
}

static void release(struct http_origin *origin)
{
    while (has_room(origin)) {
        struct link *link = list_pop(&origin->staged);
        if (link == NULL)
            return;
        struct http_request *request = container_of(link, struct http_request, staged_link);
        if (origin->kind == ORIGIN_MULTIPLEXED)
            http_begin_limits(request);
        begin(request);
    }
}

void http_origins_release(struct http *http)
{
    list_each (link, &http->origins)
        release(container_of(link, struct http_origin, link));
}

void http_origin_connected(struct http_request *request)
{
    struct http_origin *origin = request->origin;
    long opened = 0;
    if (origin == NULL)
        return;
    (void)curl_easy_getinfo(request->easy, CURLINFO_NUM_CONNECTS, &opened);
    origin->opened += opened > 0;
    if (request->place != PLACE_CONNECTING) /* again, on a fresh connection */
        return;
    request->place = PLACE_ACTIVE;
    origin->connecting--;
    origin->active++;
    if (origin->kind != ORIGIN_UNKNOWN)
        return;
    if (origin->active > origin->opened) /* than ever there were */
        origin->kind = ORIGIN_MULTIPLEXED;
    else if (origin->active > 1)
        origin->kind = ORIGIN_SINGLE;
}

void http_origin_speaks(struct http_request *request, char version)
{
    if (request->origin != NULL)
        request->origin->kind = version >= '2' ? ORIGIN_MULTIPLEXED : ORIGIN_SINGLE;
}

bool http_origin_holds(const struct http_request *request)
{
    return request->place == PLACE_STAGED && request->origin->kind == ORIGIN_MULTIPLEXED;
}

void http_origin_leave(struct http_request *request)
{
    struct http_origin *origin = request->origin;
    if (origin == NULL)
        return;
    list_remove(&request->staged_link);
    origin->connecting -= request->place == PLACE_CONNECTING;
    origin->active -= request->place == PLACE_ACTIVE;
    request->place = PLACE_OUTSIDE;
    release(origin);
}
