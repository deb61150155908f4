/* bench_bare URL [COUNT [CA_FILE]]: the same streams with libcurl's multi interface and nothing
 * else: no task, no text kept, no disk. What is left is what libcurl itself needs for that many at
 * once: the floor of anything that is built on it. */
#include "../loop/measure.h"

#include <curl/curl.h>

enum { PROMPT_BYTES = 4096, READ_BYTES = 1024, READ_BYTES_TLS = 65536 };

static size_t drop(char *bytes, size_t size, size_t count, void *total)
{
    (void)bytes;
    *(size_t *)total += size * count;
    return size * count;
}

static CURL *stream(const char *url, const char *body, struct curl_slist *headers, const char *ca,
                    size_t *total)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body); /* shared, not copied */
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, total);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, ca != NULL ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                     ca != NULL ? (long)READ_BYTES_TLS : (long)READ_BYTES);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    if (ca != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    return easy;
}

static char *request_body(void)
{
    char prompt[PROMPT_BYTES * 2 + 1], *body = malloc(sizeof prompt + 512);
    size_t length = 0;
    for (size_t i = 0; i < PROMPT_BYTES; i++) {
        if (i % 64 == 63)
            prompt[length++] = '\\';
        prompt[length++] = (char)(i % 64 == 63 ? 'n' : 'a' + i % 26);
    }
    prompt[length] = '\0';
    if (body != NULL)
        sprintf(body,
                "{\"model\":\"fake-model\",\"stream\":true,\"stream_options\":{\"include_usage\":"
                "true},\"messages\":["
                "{\"role\":\"system\",\"content\":\"You make kernels "
                "fast.\"},{\"role\":\"user\",\"content\":\"%s\"}]}",
                prompt);
    return body;
}

/* Drives all of them to their ends; returns how many failed. */
static long drive(CURLM *multi)
{
    long failed = 0;
    int running = 1, left;
    while (running > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK ||
            curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK)
            return -1;
        for (CURLMsg *message; (message = curl_multi_info_read(multi, &left)) != NULL;)
            failed += message->msg == CURLMSG_DONE && message->data.result != CURLE_OK;
    }
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_bare URL [COUNT [CA_FILE]]\n");
        return 2;
    }
    char url[512], *body = request_body();
    size_t total = 0;
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
    raise_descriptor_limit();
    snprintf(url, sizeof url, "%s/chat/completions", argv[1]);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    CURL **easies = calloc((size_t)count, sizeof(CURL *));
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Authorization: Bearer sk-bench");
    if (body == NULL || multi == NULL || easies == NULL || headers == NULL)
        return 1;
    long before = status_kb("VmRSS:");
    for (long i = 0; i < count; i++)
        curl_multi_add_handle(
            multi, easies[i] = stream(url, body, headers, argc > 3 ? argv[3] : NULL, &total));
    long failed = drive(multi);
    printf("completions %ld\nfailed %ld\nwire_bytes %zu\n", count - failed, failed, total);
    printf("cpu_seconds %.3f\n", cpu_seconds());
    printf("resident_mb_before %.1f\n", (double)before / 1024);
    printf("resident_mb_most %.1f\n", (double)status_kb("VmHWM:") / 1024);
    for (long i = 0; i < count; i++) {
        curl_multi_remove_handle(multi, easies[i]);
        curl_easy_cleanup(easies[i]);
    }
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    free(easies);
    free(body);
    curl_global_cleanup();
    return failed != 0;
}
