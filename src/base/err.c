#include "base/err.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_one_line(char *text)
{
    char *to = text;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        uint32_t hidden;
        length = utf8_shown(text, left, &hidden);
        if (length == 0 || hidden) {
            *to++ = length == 0 ? '?' : ' ';
            length += length == 0;
        } else {
            memmove(to, text, length);
            to += length;
        }
    }
    *to = '\0';
}

/* Formats aside first, since an argument may be the old message. */
static void format_message(struct err *err, const char *format, va_list arguments)
{
    char text[sizeof err->message];
    vsnprintf(text, sizeof text, format, arguments);
    err_one_line(text);
    memcpy(err->message, text, sizeof text);
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
    assert(code != ERR_NONE);
    if (err == NULL)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    format_message(err, format, arguments);
    va_end(arguments);
    err->code = code;
    return -1;
}

int err_set_errno(struct err *err, enum err_code code, int errno_value, const char *format, ...)
{
    assert(code != ERR_NONE);
    if (err == NULL)
        return -1;
    va_list arguments;
    va_start(arguments, format);
    format_message(err, format, arguments);
    va_end(arguments);

    char reason_memory[128];
    const char *reason = strerror_r(errno_value, reason_memory, sizeof reason_memory);
    /* The reason matters more than the end of a long path. */
    size_t room = sizeof err->message - 1;
    size_t tail = strlen(reason) + 2;
    size_t head = strlen(err->message);
    if (head + tail > room)
        head = room - tail;
    snprintf(err->message + head, sizeof err->message - head, ": %s", reason);
    err->code = code;
    return -1;
}

int err_wrap(struct err *err, const char *format, ...)
{
    if (err == NULL)
        return -1;
    struct err context;
    va_list arguments;
    va_start(arguments, format);
    format_message(&context, format, arguments);
    va_end(arguments);

    char inner[sizeof err->message];
    memcpy(inner, err->message, sizeof inner);
    size_t head = strlen(context.message);
    size_t room = sizeof err->message - 1;
    /* Where both do not fit, the context gives way down to 80 bytes: the cause is what helps. */
    size_t wanted = head + 2 + strlen(inner);
    if (wanted > room && head > 80)
        head = head - 80 > wanted - room ? head - (wanted - room) : 80;
    memcpy(err->message, context.message, head);
    snprintf(err->message + head, sizeof err->message - head, ": %s", inner);
    return -1;
}

static const char *const code_names[ERR_CODES] = {
    [ERR_NONE] = "none",
    [ERR_USAGE] = "usage",
    [ERR_ENVIRONMENT] = "environment",
    [ERR_IO] = "io",
    [ERR_PARSE] = "parse",
    [ERR_NOT_FOUND] = "not_found",
    [ERR_EXISTS] = "exists",
    [ERR_LIMIT] = "limit",
    [ERR_ROOM] = "room",
    [ERR_TIMEOUT] = "timeout",
    [ERR_CANCELLED] = "cancelled",
    [ERR_NETWORK] = "network",
    [ERR_PROTOCOL] = "protocol",
    [ERR_CORRUPT] = "corrupt",
    [ERR_FULL] = "full",
    [ERR_BUSY] = "busy",
    [ERR_UNSUPPORTED] = "unsupported",
    [ERR_CHILD] = "child",
};

const char *err_code_name(enum err_code code)
{
    if ((unsigned)code >= ERR_CODES)
        return "unknown";
    return code_names[code];
}

int err_exit_code(enum err_code code)
{
    return code == ERR_USAGE ? 2 : 3;
}
