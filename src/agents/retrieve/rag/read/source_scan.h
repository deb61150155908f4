/* rag/source_scan: where comments, directives and declarations of C and C++ end, and what they are
 * called. Pure; any bytes; every call is linear in what it passes. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* `at` is at the slash; runs of // lines are one comment. Returns the end, past its last newline.
 */
size_t source_comment_end(const char *text, size_t length, size_t at);
/* `at` is at #; backslashes at the end of lines continue it. */
size_t source_directive_end(const char *text, size_t length, size_t at);
bool source_directive_is(const char *line, size_t length, const char *name);
/* False for include guards and empty #defines. */
bool source_define_says_something(const char *line, size_t length);

struct source_declaration {
    size_t end;  /* past ';' or the closing brace and what follows it up to ';' */
    size_t body; /* at the opening brace; 0: none */
    bool type;   /* a struct, class, union, enum, or something with an initializer */
    bool scope;  /* a namespace or extern "C": end is just past the brace */
};
void source_declaration_end(const char *text, size_t length, size_t at,
                            struct source_declaration *found);

/* Is what stands before the brace a class or struct, whose members are worth a look each? */
bool source_has_members(const char *head, size_t length);

bool source_is_enum(const char *head, size_t length);
/* `at` is at an enumerator's name; at the comma behind it, or `length`. */
size_t source_enumerator_end(const char *text, size_t length, size_t at);

/* The declared name: what stands before the first parenthesis, else after struct, #define, ...;
 * its length, 0: none found. */
size_t source_name(const char *code, size_t length, const char **name);
/* "namespace a::b" -> "a::b", "class c : d" -> "c"; "" for extern "C" and namespaces without a
 * name. */
void source_scope_name(const char *head, size_t length, char *name, size_t size);

/* Adds the words of a comment, without its decoration. */
void source_plain_comment(const char *text, size_t length, struct buf *out);
/* "\defgroup CUDART_MEMORY Memory Management": the title. */
bool source_group(const char *text, size_t length, const char **title, size_t *title_length);
bool source_is_licence(const char *text, size_t length);
