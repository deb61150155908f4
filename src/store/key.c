#include "store/key.h"

#include <string.h>

enum { SHORT_RUN = 9, LONG_RUN = 255, ZEROS_MAX = 255 };

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool append(struct store_key *key, const void *bytes, size_t length)
{
    if (length > STORE_KEY_MAX - key->length)
        return false;
    memcpy(key->bytes + key->length, bytes, length);
    key->length += length;
    return true;
}

static bool append_byte(struct store_key *key, size_t byte)
{
    unsigned char c = (unsigned char)byte;
    return append(key, &c, 1);
}

/* `run` holds only digits. */
static bool append_run(struct store_key *key, const char *run, size_t length)
{
    size_t zeros = 0;
    while (zeros + 1 < length && run[zeros] == '0')
        zeros++;
    size_t digits = length - zeros;
    if (digits > LONG_RUN || zeros > ZEROS_MAX)
        return false;
    bool fits = digits <= SHORT_RUN ? append_byte(key, '0' + digits - 1)
                                    : append_byte(key, '9') && append_byte(key, digits);
    if (!fits || !append(key, run + zeros, digits))
        return false;
    return zeros == 0 || (append_byte(key, 0) && append_byte(key, zeros));
}

static bool encode(const char *text, size_t length, struct store_key *key)
{
    key->length = 0;
    if (length > STORE_KEY_MAX)
        return false;
    for (size_t i = 0; i < length;) {
        size_t end = i;
        while (end < length && is_digit((unsigned char)text[end]))
            end++;
        bool fits =
            end > i ? append_run(key, text + i, end - i) : append_byte(key, (unsigned char)text[i]);
        if (!fits)
            return false;
        i = end > i ? end : i + 1;
    }
    return true;
}

int store_key_encode(const char *text, struct store_key *key, struct err *err)
{
    if (text[0] == '\0')
        return err_set(err, ERR_LIMIT, "a key may not be empty");
    if (!encode(text, strlen(text), key))
        return err_set(err, ERR_LIMIT, "key %.40s... is too long: at most %d bytes as stored", text,
                       STORE_KEY_MAX);
    return 0;
}

int store_key_prefix(const char *prefix, struct store_key *key, struct err *err)
{
    size_t length = strlen(prefix);
    while (length > 0 && is_digit((unsigned char)prefix[length - 1]))
        length--; /* "r3-c1" begins r3-c1, r3-c17 and r3-c100, which lie apart */
    if (!encode(prefix, length, key))
        return err_set(err, ERR_LIMIT, "prefix %.40s... is too long", prefix);
    return 0;
}

/* Reads the run at bytes[*at], a digit; appends its text. */
static bool decode_run(const unsigned char *bytes, size_t length, size_t *at, char *text,
                       size_t *used)
{
    size_t digits = (size_t)(bytes[*at] - '0') + 1;
    size_t i = *at + 1;
    if (digits > SHORT_RUN) {
        if (i >= length || bytes[i] <= SHORT_RUN)
            return false;
        digits = bytes[i++];
    }
    if (digits > length - i || (digits > 1 && bytes[i] == '0'))
        return false;
    for (size_t d = 0; d < digits; d++)
        if (!is_digit(bytes[i + d]))
            return false;
    size_t zeros = 0, end = i + digits;
    if (end < length && bytes[end] == 0) {
        if (end + 1 >= length || bytes[end + 1] == 0)
            return false;
        zeros = bytes[end + 1];
        end += 2;
    }
    if (zeros + digits > STORE_KEY_MAX - *used || (end < length && is_digit(bytes[end])))
        return false;
    memset(text + *used, '0', zeros);
    memcpy(text + *used + zeros, bytes + i, digits);
    *used += zeros + digits;
    *at = end;
    return true;
}

bool store_key_decode(const void *stored, size_t length, char text[STORE_KEY_MAX + 1])
{
    const unsigned char *bytes = stored;
    size_t used = 0;
    if (length == 0 || length > STORE_KEY_MAX)
        return false;
    for (size_t i = 0; i < length;) {
        if (is_digit(bytes[i])) {
            if (!decode_run(bytes, length, &i, text, &used))
                return false;
        } else if (bytes[i] == 0 || used >= STORE_KEY_MAX) {
            return false;
        } else {
            text[used++] = (char)bytes[i++];
        }
    }
    text[used] = '\0';
    return true;
}
