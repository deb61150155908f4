#include "eval/data/npy.h"

#include <ctype.h>
#include <string.h>

static const char magic[6] = "\x93NUMPY";
enum { ALIGN = 64, EXTENT_DIGITS = 18 };

/* numpy has no bfloat16; ml_dtypes saves it as two bytes of anything. */
static const char *const descrs[DTYPES] = {[DTYPE_FLOAT32] = "<f4",
                                           [DTYPE_FLOAT64] = "<f8",
                                           [DTYPE_INT32] = "<i4",
                                           [DTYPE_FLOAT16] = "<f2",
                                           [DTYPE_BFLOAT16] = "<V2"};

struct reader { /* of the header: a dictionary as Python writes one */
    const char *at, *end;
};

static char peek(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n'))
        reader->at++;
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool take(struct reader *reader, char c)
{
    bool there = peek(reader) == c;
    reader->at += there;
    return there;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    (void)peek(reader);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool take_text(struct reader *reader, char *text, size_t most)
{
    char quote = peek(reader);
    size_t length = 0;
    if (quote != '\'' && quote != '"')
        return false;
    for (reader->at++; reader->at < reader->end && *reader->at != quote; reader->at++) {
        if (length + 1 >= most || !isprint((unsigned char)*reader->at) || *reader->at == '\\')
            return false;
        text[length++] = *reader->at;
    }
    text[length] = '\0';
    return take(reader, quote);
}

static bool take_shape(struct reader *reader, struct npy *npy)
{
    if (!take(reader, '('))
        return false;
    while (!take(reader, ')')) {
        int64_t number = 0;
        int digits = 0;
        (void)peek(reader);
        for (; reader->at < reader->end && isdigit((unsigned char)*reader->at); reader->at++) {
            if (++digits > EXTENT_DIGITS)
                return false;
            number = 10 * number + (*reader->at - '0');
        }
        if (digits == 0 || npy->rank == NPY_RANK_MAX)
            return false;
        npy->extents[npy->rank++] = number;
        if (!take(reader, ',') && peek(reader) != ')')
            return false;
    }
    return true;
}

/* A structured type is a list: its array is none of ours, and what it is need not be read. */
static bool take_descr(struct reader *reader, struct npy *npy)
{
    if (peek(reader) == '[') {
        const char *last = memchr(reader->at, ']', (size_t)(reader->end - reader->at));
        for (const char *more = last; more != NULL;
             more = memchr(more + 1, ']', (size_t)(reader->end - more - 1)))
            last = more;
        if (last == NULL)
            return false;
        reader->at = last + 1;
        strcpy(npy->descr, "?");
        return true;
    }
    return take_text(reader, npy->descr, sizeof npy->descr);
}

static bool take_items(struct reader *reader, struct npy *npy)
{
    bool descr = false, order = false, shape = false, fine = take(reader, '{');
    while (fine && !take(reader, '}')) {
        char key[16];
        fine = take_text(reader, key, sizeof key) && take(reader, ':');
        if (fine && strcmp(key, "descr") == 0 && !descr) {
            fine = descr = take_descr(reader, npy);
        } else if (fine && strcmp(key, "fortran_order") == 0 && !order) {
            npy->fortran = take_word(reader, "True");
            fine = order = npy->fortran || take_word(reader, "False");
        } else if (fine && strcmp(key, "shape") == 0 && !shape) {
            fine = shape = take_shape(reader, npy);
        } else {
            fine = false;
        }
        fine = fine && (take(reader, ',') || peek(reader) == '}');
    }
    return fine && descr && order && shape && peek(reader) == '\0' && reader->at == reader->end;
}

int npy_parse(const char *name, const void *bytes, size_t length, struct npy *npy, struct err *err)
{
    const unsigned char *at = bytes;
    *npy = (struct npy){.known = false};
    if (length < 10 || memcmp(at, magic, sizeof magic) != 0)
        return err_set(err, ERR_USAGE, "%s: is no .npy file: numpy.save() writes one", name);
    bool small = at[6] == 1;
    size_t before = small ? 10 : 12;
    if (at[6] < 1 || at[6] > 3 || at[7] != 0)
        return err_set(err, ERR_USAGE, "%s: is of version %d.%d of the .npy format, not 1.0 to 3.0",
                       name, at[6], at[7]);
    size_t header = length < before ? SIZE_MAX : (size_t)at[8] | (size_t)at[9] << 8;
    if (!small && length >= before)
        header |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
    if (header > NPY_HEADER_MOST || header > length - before)
        return err_set(err, ERR_USAGE, "%s: its header is cut, or longer than %d bytes", name,
                       NPY_HEADER_MOST);
    struct reader reader = {(const char *)at + before, (const char *)at + before + header};
    if (!take_items(&reader, npy))
        return err_set(err, ERR_USAGE, "%s: its header is not as numpy.save() writes it", name);
    npy->offset = before + header;
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(npy->descr, descrs[i]) == 0 ||
            (i == DTYPE_BFLOAT16 && strcmp(npy->descr, "|V2") == 0)) {
            npy->known = true;
            npy->dtype = (enum dtype)i;
        }
    return 0;
}

void npy_header(enum dtype dtype, size_t rank, const int64_t *extents, struct buf *out)
{
    BUF_LOCAL(text, NPY_HEADER_MOST);
    buf_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descrs[dtype]);
    for (size_t i = 0; i < rank; i++)
        buf_addf(&text, "%s%lld", i ? ", " : "", (long long)extents[i]);
    buf_add_text(&text, rank == 1 ? ",), }" : "), }");
    while ((10 + text.length + 1) % ALIGN != 0)
        buf_add_char(&text, ' ');
    buf_add_char(&text, '\n');
    const unsigned char head[4] = {1, 0, (unsigned char)(text.length & 255),
                                   (unsigned char)(text.length >> 8)};
    buf_add(out, magic, sizeof magic);
    buf_add(out, head, sizeof head);
    buf_add(out, buf_text(&text), text.length);
}
