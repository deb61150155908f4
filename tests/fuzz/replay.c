/* replay CORPUS COUNT [FILE]: runs the fuzzer that is linked in over every file of the folder
 * CORPUS and over COUNT mutations of them, the same ones each time. With FILE, each input is
 * written there before it is run, so that the last one is what crashed. */
#include "fuzz.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"

#include <dirent.h>
#include <string.h>

enum { INPUTS_MOST = 256, BYTES_MOST = 1 << 16 };

static struct buf inputs[INPUTS_MOST];
static size_t input_count;

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of names, and not in that of locale or file system: mutations must not differ. */
static int read_corpus(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, by_name);
    int result = count > 0 && count <= INPUTS_MOST ? 0 : -1;
    for (int i = 0; i < count; i++) {
        struct err err;
        char *path = file_join(folder, entries[i]->d_name);
        if (result == 0) {
            struct buf *input = &inputs[input_count++];
            buf_init(input, BYTES_MOST);
            result = file_read(path, input, &err);
            if (result != 0)
                fprintf(stderr, "%s\n", err.message);
        }
        mem_free(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return result;
}

static size_t below(struct random *random, size_t bound)
{
    return bound > 0 ? (size_t)random_below(random, bound) : 0;
}

/* Puts `length` bytes of `from` into `input` at `at`, in place of `removed` ones. */
static void replace(struct buf *input, size_t at, size_t removed, const char *from, size_t length)
{
    struct buf result;
    buf_init(&result, BYTES_MOST);
    buf_add(&result, buf_text(input), at);
    buf_add(&result, from, length);
    buf_add(&result, buf_text(input) + at + removed, input->length - at - removed);
    buf_free(input);
    *input = result;
}

static void mutate(struct buf *input, struct random *random)
{
    static const char interesting[] =
        "\0\n\t \"'\\(){}[]<>=!&|,:;#-+*/%.~?@$_0129aEexnN\x7f\x80\xff";
    size_t at = below(random, input->length + 1);
    size_t left = input->length - at;
    char byte = interesting[below(random, sizeof interesting)];
    const struct buf *other = &inputs[below(random, input_count)];
    size_t from = below(random, other->length + 1);
    size_t length = below(random, other->length - from + 1);
    if (length > 64 && below(random, 4) > 0)
        length = below(random, 64);
    switch (below(random, 7)) {
    case 0: /* another byte */
        replace(input, at, left > 0, &byte, 1);
        break;
    case 1: /* one more byte */
        replace(input, at, 0, &byte, 1);
        break;
    case 2: /* a bit flips */
        if (left > 0)
            byte = (char)(buf_text(input)[at] ^ (1 << below(random, 8)));
        replace(input, at, left > 0, &byte, 1);
        break;
    case 3: /* some bytes fewer */
        replace(input, at, below(random, left < 32 ? left + 1 : 32), NULL, 0);
        break;
    case 4: /* cut short */
        replace(input, at, below(random, 4) == 0 ? left : 0, NULL, 0);
        break;
    default: /* a piece of another input */
        replace(input, at, below(random, 2) ? below(random, left + 1) : 0, buf_text(other) + from,
                length);
        break;
    }
}

/* In memory of exactly its size, so that the address sanitizer sees a read past the end. */
static int run(const struct buf *input, const char *keep)
{
    struct err err;
    if (keep != NULL && file_write(keep, buf_text(input), input->length, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    uint8_t *exact = (uint8_t *)mem_alloc(input->length);
    memcpy(exact, buf_text(input), input->length);
    LLVMFuzzerTestOneInput(exact, input->length);
    mem_free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || read_corpus(argv[1]) != 0) {
        fprintf(stderr, "usage: %s CORPUS COUNT [FILE]; CORPUS holds 1 to %d files\n", argv[0],
                INPUTS_MOST);
        return 2;
    }
    const char *keep = argc > 3 ? argv[3] : NULL;
    long count = strtol(argv[2], NULL, 10);
    struct random random;
    random_init(&random, 1);
    int result = 0;
    for (size_t i = 0; i < input_count && result == 0; i++)
        result = run(&inputs[i], keep);
    for (long i = 0; i < count && result == 0; i++) {
        const struct buf *base = &inputs[below(&random, input_count)];
        struct buf input;
        buf_init(&input, BYTES_MOST);
        buf_add(&input, buf_text(base), base->length);
        size_t mutations = 1 + below(&random, 8);
        for (size_t k = 0; k < mutations; k++)
            mutate(&input, &random);
        result = run(&input, keep);
        buf_free(&input);
    }
    for (size_t i = 0; i < input_count; i++)
        buf_free(&inputs[i]);
    printf("%zu inputs and %ld mutations\n", input_count, count);
    return result == 0 ? 0 : 1;
}
