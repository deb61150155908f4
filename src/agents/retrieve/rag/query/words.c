#include "agents/retrieve/rag/query/words.h"

#include "base/mem.h"

#include <ctype.h>
#include <libstemmer.h>
#include <stdbool.h>
#include <string.h>

/* Stemming takes longer than everything else together, and few words make up most of a text. */
enum { CACHE_SLOTS = 8192, CACHE_WORD = 24, PARTS_MOST = 24 };

struct cached {
    char word[CACHE_WORD], stem[CACHE_WORD];
    size_t length; /* of the stem; 0: a stop word */
};

struct words {
    struct sb_stemmer *stemmer;
    struct cached *cache;
};

/* Sorted. Words of questions too: "how do I ..." says nothing about where the answer stands. */
static const char *const stop_words[] = {
    "a",       "about", "an",    "and",   "any",    "are",   "as",    "at",   "be",
    "because", "been",  "but",   "by",    "can",    "could", "did",   "do",   "does",
    "for",     "from",  "get",   "had",   "has",    "have",  "how",   "if",   "in",
    "instead", "into",  "is",    "it",    "its",    "may",   "me",    "my",   "of",
    "on",      "or",    "our",   "shall", "should", "so",    "some",  "such", "than",
    "that",    "the",   "their", "them",  "then",   "there", "these", "they", "this",
    "those",   "to",    "us",    "was",   "we",     "were",  "what",  "when", "where",
    "which",   "while", "who",   "why",   "will",   "with",  "would", "you",  "your"};

struct words *words_new(void)
{
    struct words *words = MEM_NEW(struct words);
    words->stemmer = sb_stemmer_new("english", "UTF_8");
    words->cache = mem_array(CACHE_SLOTS, sizeof *words->cache);
    return words;
}

void words_free(struct words *words)
{
    if (words == NULL)
        return;
    sb_stemmer_delete(words->stemmer);
    mem_free(words->cache);
    mem_free(words);
}

bool words_among(const char *const *sorted, size_t count, const char *word, size_t length)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strncmp(word, sorted[middle], length);
        if (order == 0 && sorted[middle][length] != '\0')
            order = -1;
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* Bytes of the letter at `text`: 0 where none starts there. Signs beyond ASCII (dashes, quotes,
 * arrows, degrees) begin with C2 or E2 in UTF-8 nearly always, letters do not. */
static size_t letter(const unsigned char *text, size_t left)
{
    if (isalnum(text[0]) && text[0] < 0x80)
        return 1;
    if (text[0] == '_')
        return 1;
    if (text[0] < 0xc3 || text[0] == 0xe2 || text[0] > 0xf4)
        return 0;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Where the token that starts at 0 ends: letters, joined by "::" or by single dots. */
static size_t token_end(const unsigned char *text, size_t length)
{
    size_t at = 0, step;
    while (at < length) {
        if ((step = letter(text + at, length - at)) > 0)
            at += step;
        else if (text[at] == '.' && at + 1 < length && letter(text + at + 1, length - at - 1) > 0)
            at += 1;
        else if (at + 2 < length && text[at] == ':' && text[at + 1] == ':' &&
                 letter(text + at + 2, length - at - 2) > 0)
            at += 2;
        else
            break;
    }
    return at;
}

static size_t stem_word(struct words *words, char *stem, const char *word, size_t length)
{
    const char *found =
        (const char *)sb_stemmer_stem(words->stemmer, (const sb_symbol *)word, (int)length);
    size_t found_length = (size_t)sb_stemmer_length(words->stemmer);
    if (found == NULL || found_length == 0 || found_length >= CACHE_WORD) {
        found = word;
        found_length = length;
    }
    memcpy(stem, found, found_length);
    stem[found_length] = '\0';
    return found_length;
}

static void emit_plain(struct words *words, const char *word, size_t length, enum word_kind kind,
                       word_visit *visit, void *context)
{
    if (length < 2 || length > TERM_MAX)
        return;
    if (length >= CACHE_WORD) {
        visit(context, word, length, kind);
        return;
    }
    unsigned hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 + (unsigned char)word[i];
    struct cached *cached = &words->cache[hash % CACHE_SLOTS];
    if (strncmp(cached->word, word, length) != 0 || cached->word[length] != '\0') {
        memcpy(cached->word, word, length);
        cached->word[length] = '\0';
        cached->length =
            words_among(stop_words, sizeof stop_words / sizeof stop_words[0], word, length)
                ? 0
                : stem_word(words, cached->stem, word, length);
    }
    if (cached->length > 0)
        visit(context, cached->stem, cached->length, kind);
}

struct part {
    size_t start, end;
};

static bool case_boundary(const char *text, size_t at, size_t end)
{
    unsigned char before = (unsigned char)text[at - 1], here = (unsigned char)text[at];
    if (!isupper(here))
        return false;
    if (islower(before) || isdigit(before))
        return true;
    return isupper(before) && at + 1 < end && islower((unsigned char)text[at + 1]);
}

/* Cuts at '_', '.', ':' and where the case says that a word begins. */
static size_t split(const char *text, size_t length, struct part *parts)
{
    size_t count = 0, start = 0;
    for (size_t at = 0; at <= length; at++) {
        bool joint = at == length || text[at] == '_' || text[at] == '.' || text[at] == ':';
        if (!joint && (at == start || !case_boundary(text, at, length)))
            continue;
        if (at > start && count < PARTS_MOST)
            parts[count++] = (struct part){start, at};
        start = joint ? at + 1 : at;
    }
    return count;
}

static void emit_prefixes(const char *lower, size_t length, word_visit *visit, void *context)
{
    size_t dots = 0;
    for (size_t i = 0; i < length; i++) {
        if (lower[i] != '.')
            continue;
        if (++dots >= 2 && i <= TERM_MAX)
            visit(context, lower, i, WORD_PREFIX);
    }
    for (size_t i = length; i-- > 2;) { /* std::atomic_ref is asked for as atomic_ref */
        if (lower[i] != ':' || lower[i - 1] != ':')
            continue;
        size_t rest = length - i - 1;
        if (memchr(lower + i + 1, '_', rest) != NULL && rest <= TERM_MAX)
            visit(context, lower + i + 1, rest, WORD_PREFIX);
        break;
    }
}

/* `text` is the token without the underscores and dots around it. */
static void emit_token(struct words *words, const char *text, size_t length, word_visit *visit,
                       void *context)
{
    char lower[512];
    struct part parts[PARTS_MOST];
    if (length == 0 || length > sizeof lower)
        return;
    for (size_t i = 0; i < length; i++)
        lower[i] =
            (char)((unsigned char)text[i] < 0x80 ? tolower((unsigned char)text[i]) : text[i]);
    size_t count = split(text, length, parts);
    if (count <= 1) {
        emit_plain(words, lower, length, WORD_PLAIN, visit, context);
        return;
    }
    if (length <= TERM_MAX)
        visit(context, lower, length, WORD_WHOLE);
    emit_prefixes(lower, length, visit, context);
    for (size_t i = 0; i < count; i++)
        emit_plain(words, lower + parts[i].start, parts[i].end - parts[i].start, WORD_PART, visit,
                   context);
}

size_t words_each(struct words *words, const char *text, size_t length, word_visit *visit,
                  void *context)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t count = 0;
    for (size_t at = 0; at < length;) {
        if (letter(bytes + at, length - at) == 0) {
            at++;
            continue;
        }
        size_t end = at + token_end(bytes + at, length - at);
        size_t from = at, to = end;
        while (from < to && (text[from] == '_' || text[from] == '.'))
            from++;
        while (to > from && (text[to - 1] == '_' || text[to - 1] == '.'))
            to--;
        emit_token(words, text + from, to - from, visit, context);
        count += to > from;
        at = end;
    }
    return count;
}
