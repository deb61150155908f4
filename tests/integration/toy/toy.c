#include "toy.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/compile.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/private.h"
#include "eval/emit/emit.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is written for it ---- */

static char *ceilings_key(const char *cores, const char *devices)
{
    (void)cores, (void)devices;
    return mem_strdup("machine/ceilings/toy");
}

static const char *const suffixes[] = {".toy", NULL};
static const struct language language = {.name = "postfix",
                                         .suffixes = suffixes,
                                         .open = "/*---",
                                         .close = "---*/",
                                         .comment_end = "*/",
                                         .entry = "kernel",
                                         .facts = "cores"};
static const struct language *const languages[] = {&language, NULL};
static const struct target target = {
    .name = "toy", .title = "abacus", .languages = languages, .ceilings_key = ceilings_key};

/* ---- the backend ---- */

static int build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
                 const struct candidate *candidate, const struct names *tune,
                 const struct baseline_spec *baseline, enum build_flavour flavour,
                 const char *folder, struct build *build, struct err *err)
{
    static const char *const argv[] = {"/bin/true", NULL};
    (void)lane, (void)problem, (void)tune, (void)baseline, (void)flavour, (void)err;
    *build = (struct build){.spec = {.argv = argv, .timeout_ms = 10000},
                            .artifact = arena_strdup(arena, folder)};
    return candidate ? 0 : err_set(err, ERR_UNSUPPORTED, "no baselines");
}

/* Its language can do nothing but arithmetic on the call's tensors: it needs no process. */
struct toy {
    struct subject subject;
    const struct region *region;
    const struct problem *problem;
    char source[200];
};

static float operand(const struct toy *toy, const struct call *call, const char *word, size_t at)
{
    const struct problem *problem = toy->problem;
    for (size_t i = 0; i < problem->input_count; i++)
        if (strcmp(problem->inputs[i].name, word) == 0)
            return ((const float *)(const void *)(toy->region->inputs + call->offsets[i]))[at];
    return strtof(word, NULL);
}

static float compute(const struct toy *toy, const struct call *call, size_t at)
{
    float stack[16] = {0};
    char text[sizeof toy->source], *rest = text, *word;
    size_t depth = 2; /* of what is there anyway, for an operator too many */
    memcpy(text, toy->source, sizeof text);
    while ((word = strsep(&rest, " \n")) && depth < 16)
        if (strcmp(word, "+") == 0 || strcmp(word, "*") == 0) {
            depth -= depth > 3;
            stack[depth - 1] =
                *word == '+' ? stack[depth - 1] + stack[depth] : stack[depth - 1] * stack[depth];
        } else if (*word) {
            stack[depth++] = operand(toy, call, word, at);
        }
    return stack[depth - 1];
}

static int run(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
               struct err *err)
{
    const struct toy *toy = (const struct toy *)subject;
    float *out = (float *)(void *)(toy->region->outputs + call->offsets[call->input_count]);
    uint64_t started = clock_now_ns();
    (void)err;
    for (size_t i = 0; i < (size_t)call->dims[0]; i++)
        out[i] = compute(toy, call, i);
    *elapsed_ns = clock_now_ns() - started;
    return 0;
}

static void rest(struct subject *subject)
{
    (void)subject;
}

static void close_toy(struct subject *subject)
{
    mem_free(subject);
}

static int open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err)
{
    static const struct subject_ops ops = {run, rest, rest, close_toy};
    struct toy *toy = MEM_NEW(struct toy);
    (void)lane, (void)artifact, (void)fresh, (void)err;
    toy->subject = (struct subject){.ops = &ops, .name = "toy"};
    toy->region = region;
    toy->problem = program->problem;
    strncpy(toy->source, program->candidate->source, sizeof toy->source - 1);
    *subject = &toy->subject;
    return 0;
}

static int findings(const struct value *answer, struct buf *out)
{
    (void)answer;
    buf_add_text(out, "  note     beads are moved by hand\n");
    return 0;
}

static int emit(const struct emission *e, const char *form, const char **note, struct err *err)
{
    struct buf text;
    (void)form, (void)note;
    buf_init(&text, 1 << 12);
    buf_addf(&text, "# %s\n%s", e->title, e->candidate->source);
    int failed = emit_write(e, "kernel.toy", &text, err);
    buf_free(&text);
    return failed;
}

static const char *const forms[] = {"c", NULL};
static const struct emitter emitter = {forms, emit, NULL};
const struct backend backend_toy = {.target = &target,
                                    .probe = cpu_probe,
                                    .build = build,
                                    .diagnostics = cpu_diagnostics,
                                    .open = open,
                                    .reference = &backend_cpu,
                                    .emitter = &emitter,
                                    .findings = findings};
