/* fake_provider: an OpenAI-like server that misbehaves on request. fake_provider.c moves bytes,
 * fake_script.c says which, fake_answers.c builds the good ones. A response is one run of raw bytes
 * with a way to end. */
#ifndef TESTS_FAKES_FAKE_PROVIDER_H
#define TESTS_FAKES_FAKE_PROVIDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data;
    size_t length, capacity;
    int users; /* shared by connections; freed with the last */
};

struct bytes *bytes_new(void);
void bytes_release(struct bytes *bytes);
void bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_addf(struct bytes *bytes, const char *format, ...) __attribute__((format(printf, 2, 3)));

char *bytes_read_file(const char *path); /* as text to free(); NULL where it cannot be read */

enum ending {
    END_KEEP,  /* the next request may follow */
    END_CLOSE, /* FIN */
    END_RESET, /* RST */
    END_STALL  /* neither a byte nor an end */
};

struct response {
    struct bytes *bytes;
    enum ending ending;
    long rate; /* bytes a second; 0: as fast as they go; -1: a byte a write */
};

struct request {
    const char *method, *path, *authorization, *body;
    size_t body_length;
};

struct options {
    const char *answers, *script, *key, *record, *model;
    long size, piece, rate;
};

struct chat { /* one request for a completion, read */
    bool stream, usage;
    size_t answer; /* which */
};

/* --- fake_answers.c; ends the program with a message where it cannot read its folder --- */
void answers_init(const struct options *options);
const char *answers_text(const struct chat *chat);
struct response good_answer(const struct chat *chat);
struct bytes *plain_answer(const char *text, const char *finish_reason);
struct bytes *stream_answer(const char *text, const char *finish_reason, bool with_usage,
                            bool with_end);
struct bytes *page(long code, const char *type, const char *extra, const char *body, size_t length);
struct response json_page(long code, json_t *document); /* takes the document */
struct response error_page(long code, const char *type, const char *message);

/* --- fake_script.c --- */
void script_init(const struct options *options);
void script_add(const char *line);
struct response script_respond(const struct request *request, unsigned connections_open,
                               unsigned connections_accepted);

#endif
