#include "agents/ideas/terms.h"

#include "base/hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WEIGHT_TECHNIQUE 2.0
#define COUNT(array)     (sizeof(array) / sizeof(array)[0])

enum { ROOM = 2048 }; /* a power of two, three times what there are */

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

static struct term table[ROOM];
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

/* Where `text` [size] of `list` is, or would be. */
static struct term *place(enum term_list list, const char *text, size_t size)
{
    for (uint64_t at = hash_bytes(text, size).low;; at++) {
        struct term *term = &table[at & (ROOM - 1)];
        if (term->text == NULL ||
            (term->list == list && term->size == size && memcmp(term->text, text, size) == 0))
            return term;
    }
}

/* What stands in two meanings is of the first. */
static void add(enum term_list list, const char *terms, double weight, unsigned kind)
{
    struct term term = {.list = list, .weight = weight, .kind = kind};
    for (bool begins = true; *terms != '\0'; terms += *terms != '\0') {
        term.text = terms;
        term.size = strcspn(terms, "|/");
        if (begins) {
            term.stands_for = terms;
            term.stands_for_size = term.size;
        }
        struct term *to = place(list, term.text, term.size);
        if (to->text == NULL)
            *to = term;
        terms += term.size;
        begins = *terms == '/';
    }
}

static void make_index(void)
{
    for (size_t i = 0; i < COUNT(techniques); i++)
        add(TERM_MEANING, techniques[i], WEIGHT_TECHNIQUE, 0);
    for (size_t i = 0; i < COUNT(kinds); i++)
        add(TERM_MEANING, kinds[i].terms, kinds[i].weight, (unsigned)i + 1);
    add(TERM_NUMBER, numbers, 0, 0);
    add(TERM_ACRONYM, acronyms, 0, 0);
    add(TERM_STOP, stop, 0, 0);
    add(TERM_COMMON, common, 0, 0);
}

const struct term *term_find(enum term_list list, const char *text)
{
    pthread_once(&indexed, make_index);
    const struct term *term = place(list, text, strlen(text));
    return term->text != NULL ? term : NULL;
}
