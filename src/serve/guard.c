/* serve/guard: who may come in, and what a page of elsewhere may not do.
 *
 * - Somebody else of this machine, or of the network: no token, and the socket is not of this user.
 * - A name of elsewhere that was turned to this address (DNS rebinding): without a token the host
 *   has to be a loopback name. With one it does not matter: the browser has it for our own name.
 * - A page of elsewhere that posts in the person's name: an Origin that is not the request's own
 *   host, or a Sec-Fetch-Site that says so; and the header X-Twagent-Confirm, or a body that says
 *   it is JSON, which no form can send and no other origin may, since we never answer a preflight.
 */
#include "serve/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* ---- whose socket ---- */

/* Whether the connection's other end is a socket of this user or of root on this machine the kernel
 * says (proc/net/tcp).
 *
 * As proc/net/tcp and tcp6 write an address: words in the machine's order, in hexadecimal. */
static void as_proc(const struct sockaddr *address, char text[48])
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    uint32_t words[4];
    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof four);
        snprintf(text, 48, "%08X:%04X", four.sin_addr.s_addr, ntohs(four.sin_port));
        return;
    }
    memcpy(&six, address, sizeof six);
    memcpy(words, &six.sin6_addr, sizeof words);
    snprintf(text, 48, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
             ntohs(six.sin6_port));
}

/* "0: 0100007F:1B5F 0100007F:C350 01 00000000:00000000 00:00000000 00000000 1000 0 12345 ..." */
static bool is_line_of_ours(char *line, const char *peer, const char *own)
{
    enum { LOCAL = 1, REMOTE, STATE, USER = 7, INODE = 9, WORDS };
    char *words[WORDS] = {NULL}, *rest = NULL;
    for (int i = 0; i < WORDS; i++)
        if (!(words[i] = strtok_r(i ? NULL : line, " \n", &rest)))
            return false;
    unsigned long user = strtoul(words[USER], NULL, 10);
    return strcmp(words[LOCAL], peer) == 0 && strcmp(words[REMOTE], own) == 0 &&
           strcmp(words[STATE], "01") == 0 && /* established: else it is said to be root's */
           strtoul(words[INODE], NULL, 10) != 0 && (user == geteuid() || user == 0);
}

/* By both ends: a port may be this user's towards another address and somebody else's towards ours,
 * with a listener of theirs at the same port of 127.0.0.2 that this user's browser was led to. */
static bool peer_is_ours(int fd)
{
    struct sockaddr_storage from = {0}, to = {0};
    socklen_t from_length = sizeof from, to_length = sizeof to;
    const struct sockaddr *peer = (struct sockaddr *)&from, *own = (struct sockaddr *)&to;
    char line[512], from_text[48], to_text[48];
    bool is = false;
    if (getpeername(fd, (struct sockaddr *)&from, &from_length) ||
        getsockname(fd, (struct sockaddr *)&to, &to_length))
        return false;
    as_proc(peer, from_text);
    as_proc(own, to_text);
    FILE *file = fopen(peer->sa_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
    while (file && !is && fgets(line, sizeof line, file))
        is = is_line_of_ours(line, from_text, to_text);
    if (file)
        fclose(file);
    return is;
}

/* ---- tokens ---- */

bool guard_token(const struct serve *serve, const char *text)
{
    unsigned char differs = 0;
    if (!text || strnlen(text, SERVE_TOKEN + 1) != SERVE_TOKEN)
        return false;
    for (size_t i = 0; i < SERVE_TOKEN; i++) /* all of them, however early one differs */
        differs = (unsigned char)(differs | (text[i] ^ serve->token[i]));
    return differs == 0;
}

static bool has_token(const struct serve *serve, struct MHD_Connection *connection)
{
    char name[32];
    const char *bearer = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    snprintf(name, sizeof name, "twagent_%u", serve->port); /* cookies know no ports */
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
        return guard_token(serve, bearer + 7);
    return guard_token(serve, MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name)) ||
           guard_token(serve,
                       MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"));
}

/* ---- names ---- */

/* Any port: one that ssh forwards is another. */
static bool is_loopback_name(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        const char *rest = host + length;
        if (strncasecmp(host, names[i], length) == 0 &&
            (*rest == '\0' || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1))))
            return true;
    }
    return false;
}

static bool is_own_origin(const char *origin, const char *host)
{
    const char *rest = strncmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                             : NULL;
    return rest && host && strcasecmp(rest, host) == 0;
}

static unsigned guard_post(struct MHD_Connection *connection, const char **why)
{
    const char *origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    const char *site = header(connection, "Sec-Fetch-Site");
    *why = "not from a page of elsewhere\n";
    if ((origin && !is_own_origin(origin, header(connection, MHD_HTTP_HEADER_HOST))) ||
        (site && strcmp(site, "same-origin") != 0))
        return MHD_HTTP_FORBIDDEN;
    *why = "the header X-Twagent-Confirm has to name the run (or Content-Type has to be "
           "application/json, where there is a body)\n";
    const char *type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    bool json = type && strncasecmp(type, "application/json", 16) == 0 && !strpbrk(type, ",");
    return json || header(connection, "X-Twagent-Confirm") ? 0 : MHD_HTTP_FORBIDDEN;
}

unsigned guard(const struct serve *serve, struct MHD_Connection *connection, const char *method,
               const char **why)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool post = strcmp(method, "POST") == 0;
    if (!has_token(serve, connection)) {
        *why = "a token is needed: open the address that twagent serve printed, or send "
               "Authorization: Bearer TOKEN\n";
        if (!serve->local || !info || !peer_is_ours(info->connect_fd))
            return MHD_HTTP_UNAUTHORIZED;
        *why = "this server is not known by that name\n";
        if (!is_loopback_name(header(connection, MHD_HTTP_HEADER_HOST)))
            return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    *why = "GET, HEAD and POST are understood\n";
    if (!get && !post)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    return post ? guard_post(connection, why) : 0;
}
