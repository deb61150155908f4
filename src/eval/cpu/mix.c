/* What the hot loop is made of, from a disassembly: a loop is what a jump backwards closes. The hot
 * one is the innermost one with the most samples; where hardly any fell into a loop, the one with
 * the most vector arithmetic, where such kernels spend their time. */
#include "eval/cpu/mix.h"

#include "eval/cpu/profile.h"

#include "base/mem.h"
#include "process/toolchain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 32 << 20,
    DISASSEMBLE_MS = 20000,
    LOOPS_MAX = 4096,
    NAMES_MAX = 64,
    CODE_LINES = 96, /* of the hot loop, its head and its tail */
    CODE_BYTES = CODE_LINES * 110
};

struct instruction {
    uint64_t address, target; /* target: of a jump within the function; 0: none */
    long line;                /* of the candidate's source; 0: none of it */
    size_t from;              /* the function that it was inlined from, in struct reading */
    unsigned width;           /* bytes of its vector registers; 0: none */
    const char *text;         /* "vmovaps %zmm1,%zmm2", to the line's end */
    bool fma, arithmetic, scalar, load, store, shuffle, gather, stack;
};

struct function {
    char name[MIX_NAME];
    struct instruction *items;
    size_t count, capacity;
};

struct reading {
    struct function function;
    const struct samples *samples;
    struct mix best;
    struct buf code; /* of the best one */
    struct phases *phases;
    /* where the next instruction is from, as the line table has it */
    long line;
    size_t from, name_count;
    char pending[MIX_NAME], names[NAMES_MAX][MIX_NAME];
};

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), more = strlen(tail);
    return length >= more && strcmp(text + length - more, tail) == 0;
}

static bool is_shuffle(const char *name)
{
    static const char *const prefixes[] = {
        "vperm",     "vshuf",     "vpshuf", "vunpck",  "vpunpck", "vinsert",    "vpinsrd",
        "vextract",  "vpextr",    "vblend", "vpblend", "vpalign", "valign",     "vpermil",
        "vmovsldup", "vmovshdup", "shufp",  "unpck",   "pshuf",   "vpbroadcast"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (starts(name, prefixes[i]))
            return true;
    return false;
}

static bool is_arithmetic(const char *name)
{
    static const char *const words[] = {"add", "sub", "mul", "div", "max", "min", "sqrt", "dp"};
    const char *base = name[0] == 'v' ? name + 1 : name;
    if (!ends(name, "ps") && !ends(name, "pd") && !ends(name, "ss") && !ends(name, "sd"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts(base, words[i]))
            return true;
    return false;
}

/* AT&T order: sources first, the destination last. */
static void read_operands(struct instruction *item, const char *name, const char *operands)
{
    const char *memory = strchr(operands, '(');
    const char *close = memory != NULL ? strchr(memory, ')') : NULL;
    item->width = strstr(operands, "%zmm") != NULL   ? 64
                  : strstr(operands, "%ymm") != NULL ? 32
                  : strstr(operands, "%xmm") != NULL ? 16
                                                     : 0;
    if (close == NULL || starts(name, "lea") || starts(name, "nop") || starts(name, "prefetch"))
        return;
    bool last = strchr(close, ',') == NULL; /* nothing follows: it is the destination */
    item->store = last && !starts(name, "cmp") && !starts(name, "test");
    item->load = !item->store;
    item->stack = starts(memory, "(%rsp") || starts(memory, "(%rbp");
}

static void classify(struct instruction *item, const char *name, const char *operands)
{
    read_operands(item, name, operands);
    item->fma = starts(name, "vfmadd") || starts(name, "vfmsub") || starts(name, "vfnmadd") ||
                starts(name, "vfnmsub") || starts(name, "vdpbf16");
    item->arithmetic = item->fma || is_arithmetic(name);
    item->scalar = item->arithmetic && (ends(name, "ss") || ends(name, "sd"));
    item->gather = starts(name, "vgather") || starts(name, "vpgather") ||
                   starts(name, "vscatter") || starts(name, "vpscatter");
    /* A broadcast from memory costs a load and no shuffle. */
    item->shuffle = is_shuffle(name) || (starts(name, "vbroadcast") && !item->load);
    if (name[0] == 'j' || starts(name, "loop"))
        item->target = strtoull(operands, NULL, 16);
}

/* "    1136:\tvmovaps %zmm1,%zmm2" or "0000000000001110 <kernel>:" */
static bool read_instruction(const char *line, struct instruction *item)
{
    char *colon, name[32];
    *item = (struct instruction){.address = strtoull(line, &colon, 16)};
    if (colon == line || *colon != ':')
        return false;
    const char *at = colon + 1;
    item->text = at + strspn(at, " \t");
    for (;;) { /* prefixes are words of their own */
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t\n");
        if (length == 0 || length >= sizeof name)
            return false;
        memcpy(name, at, length);
        name[length] = '\0';
        at += length;
        if (strcmp(name, "notrack") != 0 && strcmp(name, "bnd") != 0 &&
            strcmp(name, "{evex}") != 0 && strcmp(name, "lock") != 0 && !starts(name, "rep"))
            break;
    }
    char operands[160];
    at += strspn(at, " \t");
    size_t length = strcspn(at, "#<\n");
    length = length < sizeof operands - 1 ? length : sizeof operands - 1;
    memcpy(operands, at, length);
    operands[length] = '\0';
    classify(item, name, operands);
    return true;
}

/* Index of the instruction at `address`, or count. */
static size_t find(const struct function *function, uint64_t address)
{
    size_t low = 0, high = function->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (function->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < function->count && function->items[low].address == address ? low : function->count;
}

static size_t hits_of(const struct reading *reading, size_t at)
{
    const struct function *function = &reading->function;
    uint64_t from = function->items[at].address;
    uint64_t to = at + 1 < function->count ? function->items[at + 1].address : from + 1;
    return reading->samples != NULL && to > from ? samples_between(reading->samples, from, to - 1)
                                                 : 0;
}

/* Whose body the loop is, where several were inlined into it: by samples, or by instructions. Lines
 * of that one alone; those that no sample fell on are what the compiler moved here. */
static void find_lines(const struct reading *reading, struct mix *mix)
{
    const struct instruction *items = reading->function.items;
    size_t weight[NAMES_MAX] = {0}, most = 0;
    bool sampled = mix->samples > 0;
    for (size_t i = mix->first; i <= mix->last; i++) {
        if (items[i].line == 0)
            continue;
        weight[items[i].from] += sampled ? hits_of(reading, i) : 1;
        most = weight[items[i].from] > weight[most] ? items[i].from : most;
    }
    memcpy(mix->from, reading->names[most], sizeof mix->from);
    for (size_t i = mix->first; i <= mix->last; i++) {
        long line = items[i].line;
        if (line == 0 || items[i].from != most || (sampled && hits_of(reading, i) == 0))
            continue;
        mix->first_line = mix->first_line == 0 || line < mix->first_line ? line : mix->first_line;
        mix->last_line = line > mix->last_line ? line : mix->last_line;
    }
}

static void add_up(const struct reading *reading, struct mix *mix)
{
    const struct function *function = &reading->function;
    memcpy(mix->function, function->name, sizeof mix->function);
    mix->samples = reading->samples == NULL
                       ? 0
                       : samples_between(reading->samples, function->items[mix->first].address,
                                         function->items[mix->last].address);
    find_lines(reading, mix);
    for (size_t i = mix->first; i <= mix->last; i++) {
        const struct instruction *item = &function->items[i];
        bool vector = item->arithmetic && !item->scalar;
        mix->fma += item->fma && !item->scalar;
        mix->arithmetic += vector;
        mix->scalar += item->scalar;
        mix->loads += item->load;
        mix->stores += item->store;
        mix->shuffles += item->shuffle;
        mix->gathers += item->gather;
        mix->spills += item->stack && item->width > 0;
        if ((vector || (item->width > 16 && (item->load || item->store))) &&
            item->width > mix->vector_bytes)
            mix->vector_bytes = item->width;
    }
}

static double heat(const struct mix *mix)
{
    double width = mix->vector_bytes;
    return width * (4.0 * (double)mix->fma + 2.0 * (double)mix->arithmetic) +
           8.0 * (double)(mix->scalar + mix->gathers) +
           0.1 * width * (double)(mix->loads + mix->stores) +
           0.01 * (double)(mix->last - mix->first);
}

/* A few samples that a loop has and another one has not are chance. */
static size_t evidence(const struct mix *mix)
{
    enum { LEAST = 8 };
    return mix->samples >= LEAST ? mix->samples : 0;
}

static bool hotter(const struct mix *mix, const struct mix *best)
{
    if (best->function[0] == '\0' || evidence(mix) != evidence(best))
        return best->function[0] == '\0' || evidence(mix) > evidence(best);
    return heat(mix) > heat(best);
}

/* "->loop" of a jump to its head, "->12" of one to its twelfth line, "->out". */
static void put_target(const struct function *function, const struct mix *mix, uint64_t target,
                       struct buf *out)
{
    size_t to = find(function, target);
    if (to == mix->first)
        buf_add_text(out, " ->loop");
    else if (to > mix->first && to <= mix->last)
        buf_addf(out, " ->%zu", to - mix->first + 1);
    else
        buf_add_text(out, " ->out");
}

/* "14 vfmadd231ps (%rax){1to16},%zmm1,%zmm2", with " 12 %" before it where samples fell. */
static void put_instruction(const struct reading *reading, const struct mix *mix, size_t at,
                            struct buf *out)
{
    enum { MOST = 90 };
    static const double least = 0.02;
    const struct instruction *item = &reading->function.items[at];
    bool call = starts(item->text, "call"); /* whose name stands in the brackets */
    size_t length = strcspn(item->text, item->target != 0 ? " \t#<\n" : call ? "#\n" : "#<\n");
    size_t hits = 0;
    while (length > 0 && isspace((unsigned char)item->text[length - 1]))
        length--;
    if (mix->samples > 0)
        hits = hits_of(reading, at);
    if ((double)hits >= least * (double)mix->samples && hits > 0)
        buf_addf(out, "%3.0f %% ", 100 * (double)hits / (double)mix->samples);
    else if (mix->samples > 0)
        buf_add_text(out, "      ");
    buf_addf(out, "%zu ", at - mix->first + 1);
    for (size_t i = 0; i < length && i < MOST; i++) {
        unsigned char c = (unsigned char)item->text[i];
        buf_add_char(out, isspace(c) ? ' ' : isprint(c) ? (char)c : '?');
    }
    if (item->target != 0)
        put_target(&reading->function, mix, item->target, out);
    buf_add_char(out, '\n');
}

static void keep_code(struct reading *reading, const struct mix *mix)
{
    size_t count = mix->last - mix->first + 1,
           left_out = count > CODE_LINES ? count - CODE_LINES : 0;
    size_t head = left_out > 0 ? CODE_LINES * 2 / 3 : count;
    buf_reset(&reading->code);
    for (size_t i = 0; i < head; i++)
        put_instruction(reading, mix, mix->first + i, &reading->code);
    if (left_out > 0)
        buf_addf(&reading->code, "... %zu more ...\n", left_out);
    for (size_t i = head + left_out; i < count; i++)
        put_instruction(reading, mix, mix->first + i, &reading->code);
}

static void find_loops(struct reading *reading)
{
    const struct function *function = &reading->function;
    struct {
        size_t first, last;
    } *loops = mem_array(LOOPS_MAX, sizeof *loops);
    size_t count = 0;
    for (size_t i = 0; i < function->count && count < LOOPS_MAX; i++) {
        uint64_t target = function->items[i].target;
        size_t first = target != 0 && target <= function->items[i].address ? find(function, target)
                                                                           : function->count;
        if (first < function->count) {
            loops[count].first = first;
            loops[count++].last = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool innermost = true;
        for (size_t j = 0; j < count && innermost; j++)
            innermost = j == i || loops[j].first < loops[i].first || loops[j].last > loops[i].last;
        if (!innermost)
            continue;
        struct mix mix = {.first = loops[i].first, .last = loops[i].last};
        add_up(reading, &mix);
        if (hotter(&mix, &reading->best)) {
            reading->best = mix;
            keep_code(reading, &mix);
        }
        if (reading->phases != NULL && mix.samples > 0)
            phases_add(reading->phases, &mix);
    }
    mem_free(loops);
}

static void begin_function(struct function *function, const char *open)
{
    size_t length = strcspn(open + 1, ">\n");
    length = length < MIX_NAME - 1 ? length : MIX_NAME - 1;
    memset(function->name, 0, sizeof function->name);
    for (size_t i = 0; i < length; i++)
        function->name[i] = isprint((unsigned char)open[1 + i]) ? open[1 + i] : '?';
    function->count = 0;
}

static void put_mix(const struct mix *mix, const struct samples *samples, const char *code,
                    struct json *json)
{
    json_object(json);
    json_put_text(json, "function", mix->function);
    mix_put_counts(mix, json);
    json_put_int(json, "gathers", (int64_t)mix->gathers);
    json_put_int(json, "spills", (int64_t)mix->spills);
    if (samples != NULL && samples->total >= SAMPLES_FEW)
        json_put_real(json, "time_share", (double)mix->samples / (double)samples->total);
    json_put_text(json, "code", code);
    json_object_end(json);
}

/* ---- where instructions are from: lines that objdump -l puts before them ---- */

static size_t name_of(struct reading *reading, const char *name)
{
    size_t i = 0;
    while (i < reading->name_count && strcmp(reading->names[i], name) != 0)
        i++;
    if (i == NAMES_MAX)
        return 0;
    if (i == reading->name_count) {
        reading->name_count++;
        snprintf(reading->names[i], MIX_NAME, "%s", name);
    }
    return i;
}

/* "pack():" and then "/tmp/x/unit.c:12 (discriminator 3)"; what is inlined from a header belongs to
 * no line, and to the function before. */
static void read_place(struct reading *reading, const char *line, size_t length)
{
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)length, line);
    char *end = strstr(text, "():");
    if (end != NULL && end[3] == '\0') {
        *end = '\0';
        for (char *at = text; *at != '\0'; at++)
            *at = isprint((unsigned char)*at) ? *at : '?';
        snprintf(reading->pending, MIX_NAME, "%.79s", text);
        return;
    }
    char *colon = strrchr(text, ':');
    if (colon == NULL || !isdigit((unsigned char)colon[1]))
        return;
    *colon = '\0';
    const char *slash = strrchr(text, '/'), *file = slash != NULL ? slash + 1 : text;
    bool own = starts(file, "unit.") || starts(file, "candidate.");
    reading->line = own ? strtol(colon + 1, NULL, 10) : 0;
    if (own && reading->pending[0] != '\0')
        reading->from = name_of(reading, reading->pending);
    reading->pending[0] = '\0';
}

static void read_text(struct reading *reading, const char *disassembly)
{
    for (const char *line = disassembly; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        struct instruction item;
        const char *open = memchr(line, '<', length);
        if (length > 2 && line[length - 1] == ':' && open != NULL && line[0] != ' ') {
            find_loops(reading);
            begin_function(&reading->function, open);
            reading->line = 0;
        } else if (line[0] == ' ' && read_instruction(line, &item)) {
            item.line = reading->line;
            item.from = reading->from;
            struct function *function = &reading->function;
            MEM_MORE(function->items, function->count, function->capacity);
            function->items[function->count++] = item;
        } else if (line[0] != ' ') {
            read_place(reading, line, length);
        }
        line += length + (line[length] == '\n');
    }
    find_loops(reading);
}

void mix_parse(const char *disassembly, const struct samples *samples, struct phases *phases,
               struct json *json)
{
    struct reading *reading = MEM_NEW(struct reading);
    reading->samples = samples != NULL && samples->total >= SAMPLES_FEW ? samples : NULL;
    reading->phases = phases;
    reading->name_count = 1; /* "": not known */
    buf_init(&reading->code, CODE_BYTES);
    read_text(reading, disassembly);
    mem_free(reading->function.items);
    if (reading->best.function[0] != '\0')
        put_mix(&reading->best, reading->samples, buf_text(&reading->code), json);
    else
        json_null(json);
    buf_free(&reading->code);
    mem_free(reading);
}

void mix_put(const char *artifact, const struct samples *samples, struct json *json)
{
#if defined(__x86_64__)
    struct err ignored;
    const char *objdump = tool_find("objdump");
    if (objdump == NULL)
        return;
    BUF_LOCAL(text, TEXT_MAX);
    struct tool tool = {.argv = (const char *const[]){objdump, "-d", "-l", "--no-show-raw-insn",
                                                      "-j", ".text", artifact, NULL},
                        .reads = (const char *const[]){artifact, NULL},
                        .timeout_ms = DISASSEMBLE_MS};
    if (tool_run(&tool, &text, NULL, &ignored) == 0) {
        struct phases phases = {.count = 0};
        json_key(json, "hot_loop");
        mix_parse(buf_text(&text), samples, &phases, json);
        phases_put(&phases, samples, json);
    }
#else
    (void)artifact;
    (void)samples;
    (void)json;
#endif
}
