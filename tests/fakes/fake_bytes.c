/* fake_provider: bytes that several connections share. */
#include "fake_provider.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes *bytes_new(void)
{
    struct bytes *bytes = calloc(1, sizeof *bytes);
    if (bytes == NULL)
        abort();
    bytes->users = 1;
    return bytes;
}

void bytes_release(struct bytes *bytes)
{
    if (bytes == NULL || --bytes->users > 0)
        return;
    free(bytes->data);
    free(bytes);
}

void bytes_add(struct bytes *bytes, const void *data, size_t length)
{
    if (length == 0)
        return;
    if (bytes->length + length > bytes->capacity) {
        bytes->capacity = (bytes->length + length) * 2;
        bytes->data = realloc(bytes->data, bytes->capacity);
        if (bytes->data == NULL)
            abort();
    }
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
}

void bytes_addf(struct bytes *bytes, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        abort();
    bytes_add(bytes, text, (size_t)length);
    free(text);
}

char *bytes_read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    struct bytes *bytes = bytes_new();
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;)
        bytes_add(bytes, chunk, got);
    bytes_add(bytes, "", 1);
    fclose(file);
    char *text = bytes->data;
    free(bytes);
    return text;
}

uint64_t bytes_hash(uint64_t seed, const void *data, size_t length)
{
    const unsigned char *at = data;
    uint64_t hash = 0xcbf29ce484222325 ^ seed;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001b3;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93; /* FNV's low bits alone are poor */
    return hash ^ hash >> 32;
}
