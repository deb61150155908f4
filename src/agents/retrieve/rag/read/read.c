#include "agents/retrieve/rag/read/read.h"

#include "agents/retrieve/rag/read/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *extension;
    enum document_kind kind;
} extensions[] = {
    {"md", DOCUMENT_MARKDOWN}, {"markdown", DOCUMENT_MARKDOWN}, {"html", DOCUMENT_HTML},
    {"htm", DOCUMENT_HTML},    {"xhtml", DOCUMENT_HTML},        {"rst", DOCUMENT_RST},
    {"txt", DOCUMENT_PLAIN},   {"text", DOCUMENT_PLAIN},        {"h", DOCUMENT_SOURCE},
    {"hh", DOCUMENT_SOURCE},   {"hpp", DOCUMENT_SOURCE},        {"hxx", DOCUMENT_SOURCE},
    {"cuh", DOCUMENT_SOURCE},  {"inl", DOCUMENT_SOURCE},        {"c", DOCUMENT_SOURCE},
    {"cc", DOCUMENT_SOURCE},   {"cpp", DOCUMENT_SOURCE},        {"cxx", DOCUMENT_SOURCE},
    {"cu", DOCUMENT_SOURCE},   {"pdf", DOCUMENT_PDF},           {"cl", DOCUMENT_SOURCE},
    {"rs", DOCUMENT_SOURCE},   {"wgsl", DOCUMENT_SOURCE},       {"py", DOCUMENT_SCRIPT},
    {"pyi", DOCUMENT_SCRIPT},  {"ptx", DOCUMENT_PLAIN},         {"ipynb", DOCUMENT_NOTEBOOK},
};

static bool contains(const struct buf *bytes, size_t within, const char *word)
{
    size_t length = bytes->length < within ? bytes->length : within;
    return length > 0 && memmem(bytes->data, length, word, strlen(word)) != NULL;
}

/* By the extension; without one by what a header of C++ or a README begins with. */
static bool find_kind(const char *path, bool named, const struct buf *bytes,
                      enum document_kind *kind)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof extensions / sizeof extensions[0]; i++) {
        if (strcasecmp(dot + 1, extensions[i].extension) == 0) {
            *kind = extensions[i].kind;
            return true;
        }
    }
    *kind = DOCUMENT_PLAIN;
    if (dot == NULL && bytes != NULL &&
        (contains(bytes, 4096, "\n#include ") || contains(bytes, 4096, "\n#ifndef ") ||
         contains(bytes, 4096, "\n#pragma once") || contains(bytes, 4096, "-*- C++ -*-"))) {
        *kind = DOCUMENT_SOURCE;
        return true;
    }
    if (dot == NULL && bytes == NULL)
        return true; /* to be seen */
    return named || strncasecmp(name, "README", 6) == 0;
}

static bool is_pdf(const struct buf *bytes)
{
    return bytes->length >= 5 && memcmp(bytes->data, "%PDF-", 5) == 0;
}

/* Archives and objects hold NULs early; so does text in UTF-16, which is none to us. */
static bool is_binary(const struct buf *bytes)
{
    return bytes->length > 0 &&
           memchr(bytes->data, '\0', bytes->length < 65536 ? bytes->length : 65536) != NULL;
}

static enum read_result read_all(int fd, off_t size, struct buf *bytes)
{
    char block[65536];
    (void)size;
    for (;;) {
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return READ_UNREADABLE;
        if (got == 0)
            return READ_WELL;
        buf_add(bytes, block, (size_t)got);
        if (bytes->length > RAG_FILE_BYTES_MOST) /* it grew while it was read */
            return READ_TOO_LARGE;
    }
}

enum read_result read_raw(const char *path, bool named, struct buf *bytes, struct read_file *file,
                          const char **why)
{
    struct stat status;
    buf_reset(bytes);
    *why = "no kind of document by its name";
    if (!find_kind(path, named, NULL, &file->kind))
        return READ_OTHER;
    *why = "cannot be opened";
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return READ_UNREADABLE;
    enum read_result result = READ_OTHER;
    *why = "no regular file";
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        *why = "larger than the limit \"file size\", 32 MiB";
        result = status.st_size > RAG_FILE_BYTES_MOST ? READ_TOO_LARGE
                                                      : read_all(fd, status.st_size, bytes);
    }
    close(fd);
    if (result != READ_WELL)
        return result;
    if (!find_kind(path, named, bytes, &file->kind))
        return READ_OTHER;
    *why = "not text";
    if (file->kind == DOCUMENT_PDF ? !is_pdf(bytes) : is_binary(bytes))
        return READ_NOT_TEXT;
    *why = "empty";
    if (bytes->length == 0)
        return READ_NOT_TEXT;
    file->content = hash_bytes(bytes->data, bytes->length);
    file->bytes = bytes->length;
    return READ_WELL;
}

/* Bytes of the letter at `at`, 0 where it is no valid UTF-8 (overlong, surrogate, beyond U+10FFFF).
 */
static size_t valid_letter(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char first, last, low, high;
        size_t length;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                 {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (at[0] < forms[i].first || at[0] > forms[i].last)
            continue;
        if (left < forms[i].length || at[1] < forms[i].low || at[1] > forms[i].high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((at[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

void read_clean(const char *bytes, size_t length, struct buf *out)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t at = length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < length) {
        size_t run = at;
        while (run < length && ((from[run] >= ' ' && from[run] < 0x7f) || from[run] == '\n' ||
                                from[run] == '\t' || from[run] == '\f'))
            run++;
        buf_add(out, bytes + at, run - at);
        if ((at = run) == length)
            break;
        size_t letter = from[at] >= 0x80 ? valid_letter(from + at, length - at) : 0;
        if (letter > 0)
            buf_add(out, bytes + at, letter);
        else if (from[at] >= 0x80)
            buf_add(out, "\xef\xbf\xbd", 3);
        else if (from[at] != '\r')
            buf_add_char(out, ' ');
        else if (at + 1 == length || from[at + 1] != '\n')
            buf_add_char(out, '\n');
        at += letter > 0 ? letter : 1;
    }
}

enum read_result read_text(const char *path, const struct read_file *file, struct buf *bytes,
                           const char **why)
{
    struct buf text;
    buf_init(&text, (size_t)3 * RAG_FILE_BYTES_MOST + 16);
    enum read_result result = READ_WELL;
    if (file->kind == DOCUMENT_PDF) {
        BUF_LOCAL(pdf, (size_t)RAG_FILE_BYTES_MOST + 16);
        result = read_pdf(path, &pdf, why);
        read_clean(buf_text(&pdf), pdf.length, &text);
    } else {
        read_clean(bytes->data, bytes->length, &text);
    }
    buf_free(bytes);
    *bytes = text;
    return result;
}
