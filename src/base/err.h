/* base/err: one error type for everything that can fail while operating.
 * Any thread. A function that can fail returns int: 0 on success, -1 with *err filled in.
 * Programmer's errors assert; running out of memory aborts (base/mem), since the state is on disk.
 */
#pragma once

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_code {
    ERR_NONE = 0,
    ERR_USAGE,       /* a bad option, file, key or expression: the user can mend it; exit code 2 */
    ERR_ENVIRONMENT, /* something this machine lacks or refuses; exit code 3 */
    ERR_IO,          /* a system call failed in a way that is not the user's input */
    ERR_PARSE,       /* text that does not follow its format */
    ERR_NOT_FOUND,
    ERR_EXISTS,
    ERR_LIMIT, /* a bound of ours was reached: bytes, depth, count */
    ERR_ROOM,  /* the device has less of something than a kernel's numbers ask for */
    ERR_TIMEOUT,
    ERR_CANCELLED,
    ERR_NETWORK,  /* connect, TLS, reset */
    ERR_PROTOCOL, /* a peer (provider, worker, runner, reference) broke its contract */
    ERR_CORRUPT,  /* stored bytes do not match their checksum or version */
    ERR_FULL,     /* disk or map is full */
    ERR_BUSY,     /* somebody else owns it */
    ERR_UNSUPPORTED,
    ERR_CHILD, /* a child process failed: status or signal in the message */
    ERR_CODES
};

struct err {
    enum err_code code;
    char message[480]; /* for people; one line; never holds a secret */
};

/* Fills *err (NULL is allowed) and returns -1, so that `return err_set(...)` reads as one move. */
int err_set(struct err *err, enum err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* As err_set(), with strerror(errno_value) appended after ": ". */
int err_set_errno(struct err *err, enum err_code code, int errno_value, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Puts "context: " before the message on the way up; keeps the code. Returns -1. */
int err_wrap(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

const char *err_code_name(enum err_code code); /* "usage", "timeout", ...; static text */

/* The process exit code that a command ends with for this error: 2 usage, 3 everything else. */
int err_exit_code(enum err_code code);

/* Blanks for what would not be seen as it is (base/utf8.h's `hidden`), '?' for what is no UTF-8: a
 * message is one line, and no escape sequence of a child's or a model's text may reach a terminal.
 */
void err_one_line(char *text);
