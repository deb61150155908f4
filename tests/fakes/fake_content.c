/* fake_provider: answers that are a function of the request's text alone, so that a search against
 * them is a function of its prompts, however often it is killed and in whatever order it asks.
 *
 * A prompt that speaks of {"ideas": ...} gets ideas: as many as it asks for, of titles, categories
 * and parents drawn from the text's hash. Any other gets a file of the folder, by the hash, in a
 * fence; @HASH@ in it becomes the hash, so that equal files can be different sources. */
#include "fake_provider.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCES_MOST = 256, PARENTS_MOST = 64, ID_MOST = 32 };

static char *sources[SOURCES_MOST];
static size_t source_count;

static int plain_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void content_init(const struct options *options)
{
    struct dirent **names;
    if (options->by_content == NULL)
        return;
    int count = scandir(options->by_content, &names, plain_file, alphasort);
    if (count < 1 || count > SOURCES_MOST) {
        fprintf(stderr, "fake_provider: no sources, or too many, in %s\n", options->by_content);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", options->by_content, names[i]->d_name);
        sources[source_count] = bytes_read_file(path);
        source_count += sources[source_count] != NULL;
        free(names[i]);
    }
    free(names);
}

/* How many ideas: the number before "idea" or "different", whichever the prompt has first. */
static long ideas_wanted(const char *text)
{
    for (const char *at = text; (at = strpbrk(at, "0123456789")) != NULL;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (number > 0 && number <= 64 &&
            (strncmp(end, " idea", 5) == 0 || strncmp(end, " different", 10) == 0 ||
             strncmp(end, " new", 4) == 0))
            return number;
        at = end;
    }
    return 4;
}

/* The candidates' ids ("r3-c17") that the text names, in its order. */
static size_t find_parents(const char *text, char ids[][ID_MOST])
{
    size_t count = 0;
    for (const char *at = text; *at != '\0' && count < PARENTS_MOST; at++) {
        int run, candidate, length = 0;
        bool inside = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '-');
        if (*at != 'r' || inside || sscanf(at, "r%d-c%d%n", &run, &candidate, &length) != 2 ||
            length <= 0 || length >= ID_MOST)
            continue;
        snprintf(ids[count], ID_MOST, "%.*s", length, at);
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known = known || strcmp(ids[i], ids[count]) == 0;
        count += !known;
    }
    return count;
}

static json_t *idea(uint64_t hash, char parents[][ID_MOST], size_t parent_count)
{
    static const char *const verbs[] = {"Tile",       "Vectorize", "Unroll",  "Prefetch", "Pack",
                                        "Interleave", "Split",     "Reorder", "Pipeline", "Block",
                                        "Transpose",  "Hoist",     "Stagger", "Peel"};
    static const char *const things[] = {
        "the inner loop",      "rows of the first input", "columns of the second input",
        "the reduction",       "output stores",           "the accumulators",
        "the remainder",       "the outermost loop",      "loads of the second input",
        "the panel copy",      "boundary elements",       "partial sums",
        "threads over blocks", "address arithmetic"};
    static const char *const means[] = {"for the first cache level",
                                        "with wide registers",
                                        "by a power of two",
                                        "across cores",
                                        "in registers",
                                        "without temporaries",
                                        "with aligned loads",
                                        "a cache line at a time",
                                        "by halves",
                                        "two steps ahead",
                                        "in a separate pass",
                                        "with fewer branches"};
    static const char *const categories[] = {"memory", "compute",    "parallelism", "algorithm",
                                             "fusion", "asynchrony", "precision",   "tuning"};
    char title[200];
    snprintf(title, sizeof title, "%s %s %s", verbs[hash % 14], things[hash / 16 % 14],
             means[hash / 256 % 12]);
    double expected = 1.05 + (double)(hash / 65536 % 20) / 20;
    const char *parent = parent_count > 0 ? parents[hash / 16777216 % parent_count] : "";
    return json_pack("{s:s,s:s,s:s,s:f,s:s}", "title", title, "category",
                     categories[hash / 4096 % 8], "why", "The parent's profile says so.",
                     "expected", expected, "parent", parent);
}

static char *ideas(const char *text, uint64_t hash)
{
    static char parents[PARENTS_MOST][ID_MOST];
    size_t parent_count = find_parents(text, parents);
    json_t *list = json_array();
    for (long i = 0; i < ideas_wanted(text); i++)
        json_array_append_new(list, idea(bytes_hash(hash, &i, sizeof i), parents, parent_count));
    json_t *document = json_pack("{s:o}", "ideas", list);
    char *answer = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(4));
    json_decref(document);
    return answer;
}

char *content_answer(const char *text)
{
    uint64_t hash = bytes_hash(0, text, strlen(text));
    if (strstr(text, "\"ideas\"") != NULL)
        return ideas(text, hash);
    struct bytes *out = bytes_new();
    bytes_addf(out, "```c\n");
    const char *source = sources[hash % source_count];
    for (const char *mark; (mark = strstr(source, "@HASH@")) != NULL; source = mark + 6) {
        bytes_add(out, source, (size_t)(mark - source));
        bytes_addf(out, "%016llx", (unsigned long long)hash);
    }
    bytes_addf(out, "%s```\nIt does what the idea says.\n", source);
    bytes_add(out, "", 1);
    char *answer = strdup(out->data);
    bytes_release(out);
    return answer;
}
