/* What the words of an idea are worth. A phrase of up to three stems that a table knows is one
 * word. A technique weighs most; a number little, since measurement chooses it; a word that any
 * idea could hold next to nothing. */
#include "agents/ideas/novelty_words.h"

#include <ctype.h>
#include <libstemmer.h>
#include <string.h>

#define WEIGHT_TECHNIQUE 2.0
#define WEIGHT_NUMBER    0.2
#define WEIGHT_COMMON    0.15

enum { TOKENS_MAX = 128, PHRASE_MAX = 3, NAME_LETTERS = 3, KIND_NAMES = NOVELTY_KINDS - 1 };

/* Stems and phrases of stems: bars between those of one meaning, of which the first stands for all,
 * slashes between meanings. They are written as the stemmer leaves them ("unrol"). */
static const char *const techniques[] = {
    "tile|block|chunk|strip|subblock|multiblock",
    "vector|vectoris|simd|avx|avx2|avx512|mm|zmm|ymm|mm512|mm256|autovector|float4",
    "parallel|parallelis|openmp|omp|multithread|multicor|thread|core",
    "tempor|nontempor|non tempor|stream|nt|bypass cach|bypass the cach",
    "pack|repack|prepack",
    "fuse|fusion|merg|combin|join",
    "fma|fmadd",
    "accumul|accum|acc",
    "microkernel|micro kernel|micro",
    "huge page|hugepag|thp|huge",
    "interchang|reorder|permut|swap|exchang",
    "align|misalign",
    "remaind|tail|edg|boundari|leftov|residu",
    "polynomi|approxim",
    "transpos|transposit|pre transpos|pretranspos",
    "schedul|balanc|steal",
    "split k|k split|splitk",
    "shuffl|permutevar|shfl|warp shuffl",
    "branch|branchless|branchfre|branch free",
    "mask|predic",
    "restrict|alias|alia|noalia",
    "mathemat|fastmath",
    "fft|fourier",
    "buffer|doublebuff|doubl buffer|stage",
    "kahan|compens",
    "layout|soa|ao",
    "workspac|scratch",
    "tensor core|mma|wmma|mma sync",
    "thread block cluster|cluster",
    "block swizzl|swizzl thread block",
    "warp special|produc|consum|produc warp|consum warp",
    "cuda graph|graph",
    "pin|thread pin|thread to core|affin",
    "unrol/prefetch/hardwar prefetch/reciproc/split/stream k/pipelin/winograd/strassen",
    "im2col/onlin/broadcast/panel/wgmma/cuda core/amx/bank conflict/pad/swizzl/multicast",
    "persist/occup/coalesc/launch bound/cuda stream/grid stride/ldmatrix/coarsen/numa",
    "first touch",
};

/* Meanings of one kind, of which an idea is about one or some. */
static const struct {
    double weight;
    const char *terms;
} kinds[] = {
    {2, "regist|reg/share memori|smem/distribut share memori|dsmem/constant memori/global memori"},
    {2, "gather/scatter"},
    {2, "bf16|bfloat16/fp16|float16|half/tf32/fp32|float32"},
    {2, "cp async|async copi|asynchron copi/tma"},
    {2, "warp|warp level|per warp/thread block|cta|per block|block level/one thread|per "
        "thread|each thread"},
    {2, "dynam/static"},
    {1, "inner/outer/middl"},
    {1, "inmost|innermost/outermost"},
    {1, "row/column|col/diagon"},
    {1, "load|read/store|write|written"},
    {1, "l1/l2/l3/tlb"},
    {1, "max|maximum/sum|summat/mean/varianc/exp|expon|exponenti/log|logarithm"},
    {1, "input/output"},
    {1, "first/second/third/last"},
    {1, "numer/denomin"},
    {1, "horizont/vertic"},
};

/* Stems that any idea could hold. */
static const char common[] =
    "use|usag|loop|kernel|code|data|valu|comput|calcul|add|make|appli|do|improv|optim|fast|better|"
    "instead|step|size|element|small|effici|avoid|explicit|manual|work|perform|run|line|way|set|"
    "tune|increas|rais|chang|iter|oper|operand|larg|larger|big|hot|main|whole|throughout|final|"
    "direct|replac|dimens|function|process|handl|non|pre|multi|keep|hold|introduc|implement|enabl|"
    "version|softwar|hardwar|factor|multipl|access|pattern|overhead|reduc|number|sever|independ|"
    "hand|contigu|togeth|current|between|across|memori|array|matrix|matric|tensor|onto|wide|full|"
    "time|cach|path|instruct|intrins|dedic|launch|given|assign|through|within|captur";

/* No words of an idea at all. */
static const char stop[] =
    "a|an|the|of|in|on|to|with|by|for|from|into|and|or|so|that|it|its|is|are|be|as|at|per|each|all|"
    "this|then|via|when|than|over|out|up|also|more|both|only|their|them|very|own|one|while|not|no|"
    "off|if|but|every|which|where|after|before";

static const char numbers[] = "two|three|four|five|six|eight|twice|double|sixteen|triple|single";

/* Tokens in capitals that are no names of the kernel's own. */
static const char acronyms[] = "cpu|ilp|rfo|gpu|ipc|io|sse|gcc|os";

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct token {
    char text[NOVELTY_WORD_BYTES], stem[NOVELTY_WORD_BYTES];
    bool capitals; /* it was written in capitals alone */
};

/* The term that stands for `text` in `terms`; NULL where it is none of them. */
static const char *find(const char *terms, const char *text)
{
    const char *first = terms;
    for (;;) {
        size_t size = strcspn(terms, "|/");
        if (strlen(text) == size && memcmp(terms, text, size) == 0)
            return first;
        terms += size;
        if (*terms == '\0')
            return NULL;
        if (*terms++ == '/')
            first = terms;
    }
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (c & 0x80) != 0;
}

static size_t read_tokens(const char *text, struct token *tokens)
{
    struct sb_stemmer *stemmer = sb_stemmer_new("english", "ISO_8859_1");
    size_t count = 0;
    for (; count < TOKENS_MAX; count++) {
        struct token token = {.capitals = true};
        size_t length = 0;
        while (*text != '\0' && !is_letter(*text))
            text++;
        if (*text == '\0')
            break;
        for (; is_letter(*text); text++) {
            token.capitals &= !islower((unsigned char)*text);
            if (length < sizeof token.text - 1)
                token.text[length++] = (char)tolower((unsigned char)*text);
        }
        const sb_symbol *stem =
            sb_stemmer_stem(stemmer, (const sb_symbol *)token.text, (int)length);
        memcpy(token.stem, stem, (size_t)sb_stemmer_length(stemmer)); /* never longer */
        tokens[count] = token;
    }
    sb_stemmer_delete(stemmer);
    return count;
}

static bool find_meaning(const char *phrase, struct word *word)
{
    const char *found = NULL;
    for (size_t i = 0; i < COUNT(techniques) && found == NULL; i++) {
        found = find(techniques[i], phrase);
        word->weight = WEIGHT_TECHNIQUE;
        word->kind = 0;
    }
    for (size_t i = 0; i < COUNT(kinds) && found == NULL; i++) {
        found = find(kinds[i].terms, phrase);
        word->weight = kinds[i].weight;
        word->kind = (unsigned)i + 1;
    }
    if (found != NULL)
        memcpy(word->text, found, strcspn(found, "|/"));
    return found != NULL;
}

/* The longest phrase that `tokens` [count] begin with; returns how many tokens it has. */
static size_t read_phrase(const struct token *tokens, size_t count, struct word *word)
{
    char phrase[PHRASE_MAX * NOVELTY_WORD_BYTES];
    for (size_t size = count < PHRASE_MAX ? count : PHRASE_MAX; size > 0; size--) {
        size_t length = 0;
        for (size_t i = 0; i < size; i++) {
            size_t stem = strlen(tokens[i].stem);
            memcpy(phrase + length, tokens[i].stem, stem);
            length += stem;
            phrase[length++] = ' ';
        }
        phrase[length - 1] = '\0';
        if (find_meaning(phrase, word))
            return size;
    }
    return 0;
}

static struct word read_word(const struct token *token)
{
    struct word word = {.weight = 1};
    size_t length = strlen(token->text);
    memcpy(word.text, token->stem, sizeof word.text);
    if (isdigit((unsigned char)token->text[0]) || find(numbers, token->text))
        word.weight = WEIGHT_NUMBER;
    else if (length == 1 ? token->capitals || token->text[0] != 'a'
                         : token->capitals && length <= NAME_LETTERS &&
                               !find(acronyms, token->text) && !find(stop, token->text))
        word.kind = KIND_NAMES;
    else if (find(stop, token->text))
        word.weight = 0;
    else if (find(common, token->stem))
        word.weight = WEIGHT_COMMON;
    return word;
}

void words_read(const char *text, struct words *words)
{
    struct token tokens[TOKENS_MAX];
    size_t count = read_tokens(text, tokens);
    words->count = 0;
    for (size_t at = 0; at < count && words->count < NOVELTY_WORDS_MAX;) {
        struct word word = {.kind = 0};
        size_t size = read_phrase(tokens + at, count - at, &word);
        if (size == 0)
            word = read_word(&tokens[at]);
        at += size > 0 ? size : 1;
        bool known = word.weight <= 0;
        for (size_t i = 0; i < words->count; i++)
            known |= strcmp(words->items[i].text, word.text) == 0;
        if (!known)
            words->items[words->count++] = word;
    }
}
