#include "agents/llm/providers/fault.h"

#include "agents/llm/providers/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_BYTES_MAX = 16 << 20, TEXT_BYTES_MAX = 300 };

struct word {
    const char *word;
    enum fault fault;
};

/* What an error's code, type, status or reason contains; the first row that fits wins. */
static const struct word words[] = {
    {"insufficient_quota", FAULT_QUOTA},
    {"billing", FAULT_QUOTA},
    {"spend_limit", FAULT_QUOTA},
    {"budget_exceeded", FAULT_QUOTA},
    {"context_length", FAULT_TOO_LONG},
    {"exceed_context_size", FAULT_TOO_LONG}, /* llama.cpp */
    {"string_above_max_length", FAULT_TOO_LONG},
    {"request_too_large", FAULT_TOO_LONG},
    {"rate_limit", FAULT_LIMITED},
    {"tokens_per_min", FAULT_LIMITED},
    {"too_many_requests", FAULT_LIMITED},
    {"resource_exhausted", FAULT_LIMITED},
    {"overloaded", FAULT_RETRY},
    {"server_error", FAULT_RETRY},
    {"api_error", FAULT_RETRY},
    {"timeout", FAULT_RETRY},
    {"unavailable", FAULT_RETRY},
    {"deadline_exceeded", FAULT_RETRY},
    {"invalid_api_key", FAULT_KEY},
    {"api_key_invalid", FAULT_KEY},
    {"authentication", FAULT_KEY},
    {"unauthenticated", FAULT_KEY},
    {"permission", FAULT_KEY},
    {"not_found", FAULT_MODEL},
    {"content_filter", FAULT_REFUSED},
    {"content_policy", FAULT_REFUSED},
};

/* What only the message tells: these come with a class as wide as "invalid request". */
static const struct word phrases[] = {
    {"credit balance", FAULT_QUOTA},              /* Anthropic, 400 */
    {"API usage limits", FAULT_QUOTA},            /* Anthropic, 400: the organization's cap */
    {"spend limit", FAULT_QUOTA},                 /* of a project or workspace */
    {"spending limit", FAULT_QUOTA},              /* xAI, gateways */
    {"enable billing", FAULT_QUOTA},              /* Gemini, FAILED_PRECONDITION */
    {"prepayment credits", FAULT_QUOTA},          /* Gemini, 429 RESOURCE_EXHAUSTED */
    {"spending cap", FAULT_QUOTA},                /* Gemini, 429 RESOURCE_EXHAUSTED */
    {"prompt is too long", FAULT_TOO_LONG},       /* Anthropic */
    {"exceed context limit", FAULT_TOO_LONG},     /* Anthropic: prompt and max_tokens together */
    {"maximum context length", FAULT_TOO_LONG},   /* OpenAI, vLLM */
    {"context window", FAULT_TOO_LONG},           /* OpenAI, gateways */
    {"available context size", FAULT_TOO_LONG},   /* llama.cpp */
    {"maximum number of tokens", FAULT_TOO_LONG}, /* Gemini: input token count exceeds the ... */
    {"Request too large", FAULT_TOO_LONG},        /* OpenAI, 429: above a minute's whole limit */
    {"API key not valid", FAULT_KEY},             /* Gemini, 400 */
    {"API key expired", FAULT_KEY},               /* Gemini, 400 */
    {"not a valid model", FAULT_MODEL},           /* OpenRouter, 400 */
};

static bool look_up(const struct word *table, size_t count, const char *text, enum fault *fault)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(text, table[i].word) == NULL)
            continue;
        *fault = table[i].fault;
        return true;
    }
    return false;
}

static enum fault by_status(int64_t status)
{
    switch (status) {
    case 401:
    case 403:
        return FAULT_KEY;
    case 402:
        return FAULT_QUOTA;
    case 404:
        return FAULT_MODEL;
    case 408:
    case 409:
        return FAULT_RETRY;
    case 413:
        return FAULT_TOO_LONG;
    case 429:
        return FAULT_LIMITED;
    default:
        return status >= 500 && status <= 599 ? FAULT_RETRY : FAULT_FATAL;
    }
}

const char *fault_message(const struct value *error)
{
    if (error->kind == VALUE_TEXT)
        return error->text;
    return value_text(error, "message", value_text(error, "detail", ""));
}

/* Gemini has one status for a minute's limit and a day's: the quota's id tells. A day's is nothing
 * to wait for, though the same error speaks of seconds. */
static bool is_daily(const struct value *error)
{
    const struct value *details = value_get(error, "details");
    for (size_t i = 0; details != NULL && details->kind == VALUE_LIST && i < details->count; i++) {
        const struct value *violations = value_get(details->items[i], "violations");
        if (violations == NULL || violations->kind != VALUE_LIST)
            continue;
        for (size_t j = 0; j < violations->count; j++)
            if (strstr(value_text(violations->items[j], "quotaId", ""), "PerDay") != NULL)
                return true;
    }
    return false;
}

static bool by_words(const struct value *error, enum fault *fault)
{
    static const char *const keys[] = {"code", "type", "status"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (look_up(words, sizeof words / sizeof *words, value_text(error, keys[i], ""), fault))
            return true;
    return false;
}

enum fault fault_of_error(const struct value *error, int64_t status)
{
    enum fault fault;
    /* Elsewhere the status says all that matters, whatever the words. */
    bool vague = status == 0 || status == 400 || status == 403 || status == 422 || status == 429;
    if (vague && is_daily(error))
        return FAULT_QUOTA;
    if (vague && look_up(phrases, sizeof phrases / sizeof *phrases, fault_message(error), &fault))
        return fault;
    if (vague && by_words(error, &fault))
        return fault;
    if (status != 0)
        return by_status(status);
    int64_t code = value_int(error, "code", 0);
    if (code >= 400 && code <= 599)
        return by_status(code);
    bool ours =
        strstr(value_text(error, "type", ""), "invalid_request") != NULL || /* a 400 */
        strncmp(value_text(error, "code", ""), "invalid_", 8) == 0; /* invalid_prompt, too */
    return ours ? FAULT_FATAL : FAULT_RETRY;
}

void fault_add_text(struct buf *reason, const char *text)
{
    size_t length = strnlen(text, TEXT_BYTES_MAX + 1);
    if (length > TEXT_BYTES_MAX)
        for (length = TEXT_BYTES_MAX; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--;
    for (size_t i = 0; i < length; i++) {
        bool blank = isspace((unsigned char)text[i]) || iscntrl((unsigned char)text[i]);
        if (!blank)
            buf_add_char(reason, text[i]);
        else if (i == 0 || !isspace((unsigned char)text[i - 1]))
            buf_add_char(reason, ' ');
    }
}

/* The error object of a body, or NULL. Some servers put it into a list, some at the top. */
static const struct value *error_in(struct arena *arena, const char *body, size_t length)
{
    struct value *root = NULL;
    struct err ignored;
    BUF_LOCAL(clean, ERROR_BYTES_MAX);
    text_clean_json(body, length, &clean);
    int status = value_parse_json(arena, "error", buf_text(&clean), clean.length, &root, &ignored);
    if (status != 0)
        return NULL;
    const struct value *holder =
        root->kind == VALUE_LIST && root->count > 0 ? root->items[0] : root;
    const struct value *error = value_get(holder, "error");
    return error != NULL && error->kind != VALUE_NULL ? error : holder;
}

enum fault fault_classify(int status, const char *body, size_t length, struct buf *reason)
{
    ARENA_LOCAL(arena);
    const struct value *error = error_in(arena, body, length);
    enum fault fault = error != NULL ? fault_of_error(error, status) : by_status(status);
    buf_addf(reason, "HTTP %d", status);
    /* The message of 401 and 403 quotes the key, so it is not repeated. */
    if (error != NULL && fault != FAULT_KEY && *fault_message(error) != '\0') {
        buf_add_text(reason, ": ");
        fault_add_text(reason, fault_message(error));
    }
    return fault;
}

enum fault fault_described(const char *model, int status, const char *body, size_t length,
                           struct buf *reason)
{
    if (status == 200)
        return FAULT_NONE;
    enum fault fault = fault_classify(status, body, length, reason);
    if (status != 404)
        return status == 405 || status == 501 ? FAULT_NONE : fault;
    ARENA_LOCAL(arena);
    const struct value *error = error_in(arena, body, length);
    enum fault by_word = FAULT_NONE;
    if (error != NULL && (strstr(fault_message(error), model) != NULL ||
                          strcasestr(fault_message(error), "model not found") != NULL))
        by_word = FAULT_MODEL;
    else if (error != NULL && by_words(error, &by_word))
        by_word = by_word == FAULT_MODEL ? FAULT_MODEL : FAULT_NONE;
    return by_word;
}

int64_t fault_patience_ms(const char *body, size_t length)
{
    ARENA_LOCAL(arena);
    const struct value *error = error_in(arena, body, length);
    const struct value *details = error != NULL ? value_get(error, "details") : NULL;
    int64_t patience = -1;
    for (size_t i = 0; details != NULL && details->kind == VALUE_LIST && i < details->count; i++) {
        const char *delay = value_text(details->items[i], "retryDelay", "");
        char *end;
        double seconds = strtod(delay, &end); /* "36s", "36.429760048s" */
        if (end == delay || strcmp(end, "s") != 0 || !isfinite(seconds))
            continue;
        patience = seconds <= 0 ? 0 : (int64_t)ceil(fmin(seconds, 86400) * 1000);
        break;
    }
    return patience;
}
