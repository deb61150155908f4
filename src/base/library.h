/* base/library: a shared library that most processes never need, opened with the first call of a
 * function in it. Where it brings thirty others, those are most of what a start takes.
 *
 * Whoever calls such functions does so by their own names, as declared: one file of his room
 * defines each by CALL(), or by CALL_WITH(). One thread at a time. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct library {
    const char *name; /* "libcurl.so.4" */
    void *handle;     /* NULL: not opened yet */
};

/* Where a function of it is. Ends the process, saying why, where it or the library is missing. */
void *library_function(struct library *library, const char *name);

/* Defines `result name parameters` as a call of the real one; last come the parameters' names. */
#define CALL(library, result, name, parameters, ...)                                               \
    result name parameters                                                                         \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (real == NULL)                                                                          \
            *(void **)&real = library_function(&(library), #name);                                 \
        return real(__VA_ARGS__);                                                                  \
    }

/* The same of name(handle, option, ...), which takes one more: a long or a pointer, which travel
 * alike. */
#define CALL_WITH(library, result, name, handle, option)                                           \
    result name(handle of, option which, ...)                                                      \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        va_list more;                                                                              \
        va_start(more, which);                                                                     \
        void *value = va_arg(more, void *);                                                        \
        va_end(more);                                                                              \
        if (real == NULL)                                                                          \
            *(void **)&real = library_function(&(library), #name);                                 \
        return real(of, which, value);                                                             \
    }
