/* serve/listen: the words of --listen as a bound socket. */
#include "serve/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_port(const char *text)
{
    return *text && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text) &&
           strtol(text, NULL, 10) <= 65535;
}

/* "[::1]:80", "::1", "host:80", "host", "80" */
static int split(const char *listen, char host[64], char port[8], struct err *err)
{
    const char *colon = strrchr(listen, ':'), *close = strchr(listen, ']');
    bool bracketed = *listen == '[' && close;
    const char *name = bracketed ? listen + 1 : listen;
    size_t length = strlen(name);
    snprintf(port, 8, "%d", SERVE_PORT);
    snprintf(host, 64, "127.0.0.1");
    if (!bracketed && is_port(listen)) {
        snprintf(port, 8, "%s", listen);
        return 0;
    }
    if (bracketed)
        length = (size_t)(close - name);
    else if (colon && strchr(listen, ':') == colon) /* one colon alone */
        length = (size_t)(colon - name);
    const char *rest = name + length + (bracketed ? 1 : 0);
    if (length == 0 || length >= 64 || (*rest && (*rest != ':' || !is_port(rest + 1))))
        return err_set(err, ERR_USAGE, "--listen: expected ADDRESS:PORT, not \"%s\"", listen);
    snprintf(host, 64, "%.*s", (int)length, name);
    if (*rest)
        snprintf(port, 8, "%s", rest + 1);
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof four);
        return ntohl(four.sin_addr.s_addr) >> 24 == 127;
    }
    memcpy(&six, address, sizeof six);
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

static void name_it(struct serve *serve, int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    char port[8] = "0";
    (void)getsockname(fd, (struct sockaddr *)&bound, &length);
    (void)getnameinfo((struct sockaddr *)&bound, length, serve->host, sizeof serve->host, port,
                      sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    serve->port = (unsigned)strtoul(port, NULL, 10);
    serve->local = is_loopback((struct sockaddr *)&bound);
    char machine[64] = "";
    const char *host = serve->host;
    bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    if (any && gethostname(machine, sizeof machine - 1) == 0)
        host = machine;
    bool six = strchr(host, ':') != NULL;
    snprintf(serve->url, sizeof serve->url, "http://%s%s%s:%u/%s%s", six ? "[" : "", host,
             six ? "]" : "", serve->port,
             serve->local ? "" : "?token=", serve->local ? "" : serve->token);
}

int serve_listen(struct serve *serve, const char *words, int *result, struct err *err)
{
    char host[64], port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (split(words, host, port, err))
        return -1;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code)
        return err_set(err, ERR_USAGE, "--listen %s: %s", words, gai_strerror(code));
    int one = 1, bytes = SOCKET_BYTES;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failed = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
                 setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) ||
                 bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 128);
    int saved = errno;
    freeaddrinfo(found);
    if (failed) {
        if (fd >= 0)
            close(fd);
        return err_set_errno(err, ERR_ENVIRONMENT, saved, "cannot listen at %s port %s%s", host,
                             port,
                             saved == EADDRINUSE ? " (--listen 0 takes any that is free)" : "");
    }
    name_it(serve, fd);
    *result = fd;
    return 0;
}
