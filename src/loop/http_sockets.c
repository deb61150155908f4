/* loop/http: the connections that libcurl holds, kept alive ones too, as sockets. It replaces those
 * that end; one that is silent for ever, or that says what nobody asked for, is for us to find. */
#include "loop/http_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A peer that is gone without a word is found after IDLE + COUNT * INTERVAL seconds, one that does
 * not take what we send after GONE_MS. libcurl cannot ping an HTTP/2 connection of a multi handle
 * (curl_easy_upkeep() does nothing there), so it is TCP that asks. */
enum { IDLE_S = 20, INTERVAL_S = 10, COUNT = 3, GONE_MS = 60 * 1000 };

static void set(curl_socket_t fd, int option, int value)
{
    (void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value); /* without it is as before */
}

static int on_opened(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct http *http = context;
    int one = 1;
    (void)purpose;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    set(fd, TCP_KEEPIDLE, IDLE_S);
    set(fd, TCP_KEEPINTVL, INTERVAL_S);
    set(fd, TCP_KEEPCNT, COUNT);
    set(fd, TCP_USER_TIMEOUT, GONE_MS);
    /* libcurl closes some that it has not finished to open without a word: their number comes again
     */
    struct http_connection *connection = http_connection_of(http, fd);
    if (connection == NULL) {
        connection = MEM_NEW(struct http_connection);
        connection->fd = fd;
        list_append(&http->connections, &connection->link);
    }
    connection->heard_ns = 0;
    return CURL_SOCKOPT_OK;
}

static int on_closed(void *context, curl_socket_t fd)
{
    struct http *http = context;
    struct http_connection *connection = http_connection_of(http, fd);
    if (connection != NULL) {
        list_remove(&connection->link);
        mem_free(connection);
    }
    return close(fd);
}

void http_forget_connections(struct http *http)
{
    list_each_safe (link, &http->connections) {
        list_remove(link);
        mem_free(container_of(link, struct http_connection, link));
    }
}

CURLcode http_watch_sockets(struct http *http, CURL *easy)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_opened);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, http);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_closed);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http);
    return code;
}

struct http_connection *http_connection_of(struct http *http, int fd)
{
    list_each (link, &http->connections) {
        struct http_connection *connection = container_of(link, struct http_connection, link);
        if (connection->fd == fd)
            return connection;
    }
    return NULL;
}

static int port_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    memcpy(&six, address, sizeof six);
    memcpy(&four, address, sizeof four);
    return ntohs(address->ss_family == AF_INET6 ? six.sin6_port : four.sin_port);
}

/* libcurl tells a request the ports of its connection, and nothing else by which to know it. */
static struct http_connection *find(const struct http_request *request)
{
    list_each (link, &request->http->connections) {
        struct http_connection *connection = container_of(link, struct http_connection, link);
        struct sockaddr_storage own = {0}, peer = {0};
        socklen_t own_length = sizeof own, peer_length = sizeof peer;
        if (getsockname(connection->fd, (struct sockaddr *)&own, &own_length) == 0 &&
            getpeername(connection->fd, (struct sockaddr *)&peer, &peer_length) == 0 &&
            port_of(&own) == request->own_port && port_of(&peer) == request->peer_port)
            return connection;
    }
    return NULL;
}

bool http_connection_spoke(const struct http_request *request)
{
    char byte;
    const struct http_connection *connection = find(request);
    return connection != NULL && recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void http_connection_retire(const struct http_request *request, uint64_t since_ns)
{
    const struct http_connection *connection = request->own_port > 0 ? find(request) : NULL;
    if (connection != NULL && connection->heard_ns < since_ns)
        (void)shutdown(connection->fd, SHUT_RDWR); /* libcurl sees an end, and so do those on it */
}
