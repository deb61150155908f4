/* loop/http: one transfer as libcurl sees it. */
#include "base/mem.h"
#include "loop/http_private.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* Where this system keeps the authorities that it trusts. libcurl has one path built in,
 * its distribution's; a program that carries its libcurl along meets the others. */

static const char *const known[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL and their kin */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* the same, older */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE */
    "/etc/ssl/ca-bundle.pem",                            /* the same, older */
};

/* A file of certificates; NULL: libcurl's own is right, or none. */
static const char *http_trusted(void)
{
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
    if (built->cainfo != NULL && access(built->cainfo, R_OK) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (access(known[i], R_OK) == 0)
            return known[i];
    return NULL;
}

static size_t write_body(char *bytes, size_t size, size_t count, void *context)
{
    return http_on_body(context, bytes, size * count);
}

static size_t write_header(char *bytes, size_t size, size_t count, void *context)
{
    return http_on_header(context, bytes, size * count);
}

static int before_request(void *context, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    struct http_request *request = context;
    (void)peer_ip;
    (void)own_ip;
    request->peer_port = peer_port;
    request->own_port = own_port;
    return http_on_connected(request) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static bool is_method(const char *method)
{
    if (method == NULL || method[0] == '\0')
        return false;
    size_t length = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return method[length] == '\0' && length <= 16;
}

/* "name: value" with a token for a name and no line break, so that no value can add a header. */
static bool is_header(const char *line)
{
    const char *colon = strchr(line, ':');
    if (colon == NULL || colon == line)
        return false;
    for (const char *c = line; c < colon; c++) {
        if (!isalnum((unsigned char)*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
            return false;
    }
    for (const char *c = colon; *c != '\0'; c++) {
        if (*c == '\r' || *c == '\n')
            return false;
    }
    return true;
}

/* Notes "METHOD host" for messages. The URL itself may hold a key. */
static int check_url(struct http_request *request, const struct http_spec *spec, bool *tls,
                     struct err *err)
{
    CURLU *url = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    int result = -1;
    if (url == NULL || spec->url == NULL ||
        curl_url_set(url, CURLUPART_URL, spec->url, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        err_set(err, ERR_USAGE, "not a URL of the form https://host/path");
    } else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
        err_set(err, ERR_USAGE, "a URL must start with http:// or https://, not %s://", scheme);
    } else {
        *tls = request->tls_url = strcmp(scheme, "https") == 0;
        if (*tls && !spec->fresh)
            request->origin = http_origin_find(request->http, host, port);
        snprintf(request->what, sizeof request->what, "%s %s", spec->method, host);
        result = 0;
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return result;
}

static int add_header(struct http_request *request, const char *line, struct err *err)
{
    struct curl_slist *longer = curl_slist_append(request->headers_out, line);
    if (longer == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libcurl is out of memory");
    request->headers_out = longer;
    return 0;
}

/* "REGION/SERVICE ID:SECRET[:TOKEN]". The token's header is signed, too. */
static int sign(struct http_request *request, const char *with, struct err *err)
{
    char *own = mem_strdup(with), *rest = own, line[4096];
    const char *region = strsep(&rest, "/"), *service = strsep(&rest, " ");
    const char *id = strsep(&rest, ":"), *secret = strsep(&rest, ":"), *token = rest;
    int status = 0;
    bool well = secret != NULL &&
                snprintf(line, sizeof line, "aws:amz:%s:%s", region, service) > 0 &&
                curl_easy_setopt(request->easy, CURLOPT_AWS_SIGV4, line) == CURLE_OK &&
                curl_easy_setopt(request->easy, CURLOPT_USERNAME, id) == CURLE_OK &&
                curl_easy_setopt(request->easy, CURLOPT_PASSWORD, secret) == CURLE_OK;
    if (!well)
        status = err_set(err, ERR_USAGE, "a request cannot be signed: expected ID:SECRET[:TOKEN]");
    else if (token != NULL &&
             snprintf(line, sizeof line, "X-Amz-Security-Token: %s", token) >= (int)sizeof line)
        status = err_set(err, ERR_USAGE, "a request cannot be signed: its token is too long");
    else if (token != NULL)
        status = add_header(request, line, err);
    explicit_bzero(line, sizeof line);
    explicit_bzero(own, strlen(with));
    mem_free(own);
    return status;
}

static int set_headers(struct http_request *request, const struct http_spec *spec, struct err *err)
{
    for (size_t i = 0; spec->headers != NULL && spec->headers[i] != NULL; i++) {
        if (!is_header(spec->headers[i])) /* which one, not what it holds */
            return err_set(err, ERR_USAGE, "request header %zu is not \"name: value\"", i + 1);
        static const char signs[] = "authorization: " HTTP_SIGNS;
        int status = strncmp(spec->headers[i], signs, sizeof signs - 1) == 0
                         ? sign(request, spec->headers[i] + sizeof signs - 1, err)
                         : add_header(request, spec->headers[i], err);
        if (status != 0)
            return -1;
    }
    return 0;
}

/* Each option with its reason; returns the first refusal, so that none is dropped in silence. */
static CURLcode set_options(struct http_request *request, const struct http_spec *spec, bool tls)
{
    CURL *easy = request->easy;
    CURLcode code = CURLE_OK;
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(easy, option, value);                                          \
    } while (0)
    SET(CURLOPT_URL, spec->url);
    SET(CURLOPT_PRIVATE, request);
    SET(CURLOPT_ERRORBUFFER, request->curl_message);
    SET(CURLOPT_HTTPHEADER, request->headers_out);
    SET(CURLOPT_USERAGENT, "twagent");
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    const char *trusted = spec->ca_file != NULL ? spec->ca_file : http_trusted();
    if (trusted != NULL)
        SET(CURLOPT_CAINFO, trusted);
    /* Else a body above 1 MiB waits a second for a "100 Continue" that few servers send. Not by an
     * empty "Expect:", which libcurl signs and does not send. */
    SET(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* a cancelled request does not wait for its name look-up */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_PIPEWAIT, tls ? 1L : 0L); /* rather a stream of a connection than another one */
    SET(CURLOPT_FRESH_CONNECT, spec->fresh ? 1L : 0L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (code == CURLE_OK)
        code = http_watch_sockets(request->http, easy);
    SET(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    SET(CURLOPT_BUFFERSIZE, tls ? (long)HTTP_READ_BYTES_TLS : (long)HTTP_READ_BYTES);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L); /* the least; kept for as long as the request */
    SET(CURLOPT_CONNECTTIMEOUT_MS, 24L * 3600 * 1000); /* ours is LIMIT_CONNECT */
    SET(CURLOPT_WRITEFUNCTION, write_body);
    SET(CURLOPT_WRITEDATA, request);
    SET(CURLOPT_HEADERFUNCTION, write_header);
    SET(CURLOPT_HEADERDATA, request);
    SET(CURLOPT_PREREQFUNCTION, before_request);
    SET(CURLOPT_PREREQDATA, request);
    if (spec->body != NULL || strcmp(spec->method, "POST") == 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body_length);
        SET(CURLOPT_COPYPOSTFIELDS, spec->body != NULL ? spec->body : "");
    }
    if (strcmp(spec->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    else if (strcmp(spec->method, "GET") != 0 && strcmp(spec->method, "POST") != 0)
        SET(CURLOPT_CUSTOMREQUEST, spec->method);
#undef SET
    return code;
}

int http_make_easy(struct http_request *request, const struct http_spec *spec, struct err *err)
{
    bool tls = false;
    if (!is_method(spec->method))
        return err_set(err, ERR_USAGE, "not an HTTP method");
    bool no_body = strcmp(spec->method, "GET") == 0 || strcmp(spec->method, "HEAD") == 0;
    if (no_body && spec->body != NULL)
        return err_set(err, ERR_USAGE, "a %s takes no body", spec->method);
    if (check_url(request, spec, &tls, err) != 0)
        return -1;
    request->easy = curl_easy_init();
    if (request->easy == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libcurl gives no handle");
    if (set_headers(request, spec, err) != 0)
        return -1;
    request->unsent = spec->body != NULL ? spec->body_length : 0;
    CURLcode code = set_options(request, spec, tls);
    if (code != CURLE_OK)
        return err_set(err, ERR_ENVIRONMENT, "libcurl refuses an option: %s",
                       curl_easy_strerror(code));
    return 0;
}

/* With an answer begun, libcurl does not start over on another connection. */
void http_drop_sent(struct http_request *request)
{
    curl_off_t sent = 0;
    if (request->unsent == 0 ||
        curl_easy_getinfo(request->easy, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK ||
        (uint64_t)sent < request->unsent)
        return;
    curl_easy_setopt(request->easy, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(request->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    request->unsent = 0;
}

void http_drop_easy(struct http_request *request)
{
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers_out);
    request->easy = NULL;
    request->headers_out = NULL;
}
