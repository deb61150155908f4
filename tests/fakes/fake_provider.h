/* fake_provider: a server that speaks OpenAI's, Anthropic's and Gemini's formats and misbehaves on
 * request. fake_provider.c moves bytes, fake_route.c says who answers, fake_script.c which fault is
 * next, fake_faults.c what each is, fake_answers.c and fake_content.c what the good ones say,
 * fake_{openai,anthropic,gemini,responses,embeddings}.c how, fake_batch.c many at once,
 * fake_counts.c remembers. A response is
 * one run of raw bytes with a way to end. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- fake_bytes.c --- */
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
uint64_t bytes_hash(uint64_t seed, const void *data, size_t length); /* FNV-1a, stirred */

enum ending {
    END_KEEP,  /* the next request may follow */
    END_CLOSE, /* FIN */
    END_RESET, /* RST */
    END_STALL, /* neither a byte nor an end */
    END_DEAD   /* the next request on this connection meets RST */
};

struct tally; /* what happened to requests of one text */

struct response {
    struct bytes *bytes;
    enum ending ending;
    long rate; /* bytes a second; 0: as fast as they go; -1: a byte a write */
    size_t repeat_from;
    long repeat_times;   /* bytes from repeat_from on are sent so often again; -1: for ever */
    long delay_ms;       /* before the first byte */
    struct tally *tally; /* counts it once its last byte is sent; or NULL */
};

struct request {
    const char *method, *path, *headers, *body;
    size_t body_length;
};

/* The value of a header; "" where it is absent. */
void request_header(const struct request *request, const char *name, char *value, size_t size);

struct options {
    const char *answers, *by_content, *script, *key, *record, *model, *latency, *fail_rate;
    long size, piece, rate, seed, batch_looks;
};

/* --- formats --- */
enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_REFUSED, FINISH_FILTERED, FINISHES };
enum usage {
    USAGE_RIGHT,
    USAGE_MISSING,
    USAGE_WRONG,
    USAGE_NEGATIVE,
    USAGE_TEXT,
    USAGE_HUGE,
    USAGE_ONE,
    USAGE_CUT
};
enum line_end { LINE_LF, LINE_CRLF, LINE_CR };

struct answer { /* all zero: a good one */
    const char *text;
    long prompt_tokens;
    enum finish finish;
    enum usage usage;
    bool empty;        /* no choices */
    bool null_content; /* a choice that says nothing */
    bool no_end;       /* no terminal event; a body cut in its JSON */
    bool whole;        /* the text in one event */
    long error;        /* a status: an error in place of the end */
    const char *kind;  /* of that error */
    enum line_end line_end;
    bool split, comments; /* several data lines an event; comments and unknown fields between */
    int garbled;          /* this event (from 1) is cut in its JSON */
    bool as_tool;         /* Anthropic: as a tool's input, as the request asked */
};

struct chat { /* one request for a completion, read */
    const struct format *format;
    bool stream, usage, as_tool;
    char *text;    /* system and prompt, to free() */
    uint64_t hash; /* of the body */
    size_t answer; /* which, by order */
};

struct events; /* a stream of server-sent events that is being built */
void event_add(struct events *events, const char *name, json_t *data); /* takes it */
void event_add_raw(struct events *events, const char *name, const char *data);
bool event_piece(const struct answer *answer, const char **text, const char **piece,
                 size_t *length); /* the next part of the text */

struct format {
    const char *name;
    const char *key_header, *key_prefix; /* "authorization", "Bearer " */
    /* NULL, or what is wrong with it; reads stream, usage and text. */
    const char *(*read)(const json_t *document, const struct request *request, struct chat *chat);
    json_t *(*plain)(const struct answer *answer);
    void (*stream)(struct events *events, const struct answer *answer, bool usage);
    json_t *(*error)(long code, const char *kind);
    json_t *(*model)(const char *name);
};
struct error_row {
    const char *kind; /* or NULL: for this code */
    long code;
    const char *type, *detail, *message; /* @KEY@ in it: what the request had for a key */
};
/* The row of that kind, else of that code; else the last, or for 5xx the one before it. */
const struct error_row *error_find(const struct error_row *rows, size_t count, long code,
                                   const char *kind);
extern const struct format format_openai, format_anthropic, format_gemini, format_responses;
enum { FORMATS = 4 };
extern const struct format *const formats[FORMATS];
extern const struct format format_embeddings; /* answers no chat: not among them */

/* --- fake_answers.c; ends the program with a message where it cannot read its folder --- */
void answers_init(const struct options *options);
void answers_key(const char *key); /* what @KEY@ stands for from now on */
struct response answer_good(const struct chat *chat);
char *answer_text(const struct chat *chat); /* to free() */
struct response answer_build(const struct chat *chat, const struct answer *answer);
struct bytes *page(long code, const char *type, const char *extra, const char *body, size_t length);
struct response json_page(long code, const char *extra, json_t *document); /* takes the document */
struct bytes *stream_head(void);
void usage_tokens(const struct answer *answer, json_int_t *prompt, json_int_t *completion);

/* --- fake_content.c: an answer as a function of the request's text --- */
void content_init(const struct options *options);
char *content_answer(const char *text); /* to free() */

/* --- fake_faults.c --- */
struct fault {
    const struct fault_type *type;
    long code;      /* code=429 */
    long after;     /* after=BYTES of the response, head included */
    long times;     /* times=N; 0: for ever */
    long ms;        /* ms=N: retry-after-ms; -1: none */
    long date;      /* date=N: Retry-After as a date, N seconds from now; 0: none */
    long delay;     /* delay=N: ms before the first byte */
    char text[256]; /* text=...: blanks are written _; Retry-After's value, Location's value */
    char kind[32];  /* kind=quota */
};

struct fault_type {
    const char *name, *help;
    struct response (*respond)(const struct fault *fault, const struct chat *chat);
    bool delivers; /* the whole answer: the next request gets the next one */
};
extern const struct fault_type fault_types[]; /* ends with a name of NULL; the first is "ok" */

/* --- fake_script.c --- */
void script_init(const struct options *options);
void script_add(const char *line);
void script_add_batch(const char *line); /* "STEP FAULT": of a batch's own requests */
const struct fault *script_batch(const char *step);
void script_add_embedding(const char *line); /* of the requests for embeddings, in their order */
const struct fault *script_next(const struct chat *chat, unsigned attempt);

/* --- fake_counts.c --- */
struct counts {
    unsigned batches, requests, chats, embeddings, streams, models, faults, refused, keys, answered;
    unsigned by_format[FORMATS + 1], answered_by_format[FORMATS + 1];
};
extern struct counts counts;
struct tally *tally_of(const struct format *format, const char *path, uint64_t hash);
unsigned tally_request(struct tally *tally); /* returns which it is, from 0 */
void tally_answered(struct tally *tally);
json_t *counts_page(unsigned connections_open, unsigned connections_accepted);
json_t *answered_page(void);

/* --- fake_batch.c --- */
void batch_init(const struct options *options);
void batch_release(void);
bool batch_route(const struct request *request, const struct format *format,
                 struct response *response); /* false: it is about no batch */

/* --- fake_route.c --- */
void route_init(const struct options *options);
struct response route(const struct request *request, unsigned connections_open,
                      unsigned connections_accepted);
