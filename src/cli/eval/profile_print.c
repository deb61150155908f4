#include "cli/eval/profile_print.h"

#include "agents/diagnosis/diagnosis.h"
#include "report/words.h"

#include <math.h>
#include <string.h>

enum { BAR = 25, WIDTH = 92, INDENT = 13, GROUP_MOST = 32 };

static double number(const struct value *map, const char *path)
{
    const struct value *value = value_at(map, path);
    bool known = value && (value->kind == VALUE_INT || value->kind == VALUE_REAL);
    return known ? value->real : NAN;
}

/* "#########................" */
static void print_bar(double share, FILE *out)
{
    int full = share >= 1 ? BAR : (int)lround(share * BAR);
    for (int i = 0; i < BAR; i++)
        fputc(i < full ? '#' : '.', out);
}

static void print_share(const char *label, const char *name, double share, const char *after,
                        FILE *out)
{
    if (isnan(share))
        return;
    fprintf(out, "  %-10s %-18s ", label, name);
    print_bar(share, out);
    fprintf(out, " %5.1f %%%s\n", 100 * share, after);
}

/* Words in lines of WIDTH, the ones after the first indented. */
static void print_wrapped(const char *text, size_t length, FILE *out)
{
    size_t column = INDENT;
    for (size_t at = 0; at < length;) {
        size_t word = 0;
        while (at + word < length && text[at + word] != ' ')
            word++;
        if (at > 0 && column + 1 + word > WIDTH) {
            fprintf(out, "\n%*s", INDENT, "");
            column = INDENT;
        } else if (at > 0) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)word, text + at);
        at += word;
        column += word;
        while (at < length && text[at] == ' ')
            at++;
    }
    fputc('\n', out);
}

static bool is_launch_line(const char *line)
{
    return strncmp(line, "- kernel ", 9) == 0 || strncmp(line, "- of peak", 9) == 0 ||
           strncmp(line, "- no hardware", 13) == 0;
}

/* What the prompt is told, but for the lines that stand below in full. */
static void print_diagnosis(const struct evaluation *evaluation, const char *facts, bool gpu,
                            FILE *out)
{
    ARENA_LOCAL(arena);
    struct diagnosis found = diagnosis_of(arena, evaluation->metrics, facts);
    if (*found.place)
        fprintf(out, "  %-10s %s\n", "place", found.place);
    fprintf(out, "  %-10s %s\n", "limiter", found.limiter);
    for (const char *line = found.evidence; *line;) {
        size_t length = strcspn(line, "\n");
        if (!gpu || !is_launch_line(line)) {
            fprintf(out, "%*s", INDENT - 2, "");
            print_wrapped(line, length, out);
        }
        line += length + (line[length] == '\n');
    }
    if (*found.categories)
        fprintf(out, "  %-10s %s\n", "ideas", found.categories);
    for (const char *line = found.code; *line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "  %-10s %.*s\n", line == found.code ? "hot loop" : "", length, line);
        line += length + (line[length] == '\n');
    }
}

static void print_clocks(const struct value *profile, FILE *out)
{
    char clocks[WORDS_CLOCKS];
    if (*words_clocks(profile, clocks) == '\0')
        return;
    fprintf(out, "  %-10s ", "clocks");
    print_wrapped(clocks, strlen(clocks), out);
}

static void print_source(const struct value *profile, FILE *out)
{
    const char *source = value_text(profile, "source", "");
    if (strcmp(source, "counters") == 0) {
        fprintf(out, "  %-10s hardware counters, %lld passes, %.0f ms\n", "source",
                (long long)value_int(profile, "passes", 0), value_real(profile, "ms", 0));
        return;
    }
    fprintf(out, "  %-10s ", "source");
    BUF_LOCAL(text, 1000);
    buf_addf(&text, "%s; no hardware counters: %s",
             strcmp(source, "records") == 0 ? "CUPTI's records of activity"
                                            : "the compiler's numbers and the launch plan",
             value_text(profile, "why", "not known why"));
    print_wrapped(buf_text(&text), text.length, out);
}

/* ---- one launch on a GPU ---- */

static void print_extent(const char *label, const struct value *list, FILE *out)
{
    if (!list)
        return;
    fprintf(out, "%s", label);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || list->items[i]->integer != 1)
            fprintf(out, "%s%lld", i ? " x " : " ", (long long)list->items[i]->integer);
}

static void print_launch(const struct value *kernel, FILE *out)
{
    double waves = number(kernel, "waves"), most = number(kernel, "occupancy_most");
    fprintf(out, "  %-10s", "launch");
    print_extent(" grid", value_get(kernel, "grid"), out);
    print_extent(", block", value_get(kernel, "block"), out);
    print_extent(", cluster", value_get(kernel, "cluster"), out);
    if (!isnan(waves))
        fprintf(out, ": %.3g waves of %lld blocks a multiprocessor", waves,
                (long long)value_int(kernel, "blocks_per_sm", 0));
    fprintf(out, "\n  %-10s ", "resources");
    if (value_get(kernel, "registers"))
        fprintf(out, "%lld registers a thread, ", (long long)value_int(kernel, "registers", 0));
    fprintf(out, "%.1f KB shared a block", value_real(kernel, "shared_bytes", 0) / 1024);
    if (value_int(kernel, "spill_bytes", 0) > 0)
        fprintf(out, ", %lld bytes spilled", (long long)value_int(kernel, "spill_bytes", 0));
    if (!isnan(most))
        fprintf(out, ": at most %.0f %% of the warps, by %s", 100 * most,
                value_text(kernel, "occupancy_limit", "?"));
    fputc('\n', out);
}

/* A group's shares, the largest first; small ones are left out. */
static void print_group(const char *label, const struct value *group, double least, size_t most,
                        FILE *out)
{
    bool done[GROUP_MOST] = {false};
    if (!group || group->kind != VALUE_MAP || group->count > GROUP_MOST)
        return;
    for (size_t shown = 0; shown < most; shown++) {
        size_t best = group->count;
        for (size_t i = 0; i < group->count; i++)
            if (!done[i] &&
                (best == group->count || group->items[i]->real > group->items[best]->real))
                best = i;
        if (best == group->count || group->items[best]->real < least)
            return;
        done[best] = true;
        print_share(shown == 0 ? label : "", group->keys[best], group->items[best]->real, "", out);
    }
}

static void print_memory(const struct value *kernel, FILE *out)
{
    double read = number(kernel, "dram_read_bytes"), written = number(kernel, "dram_write_bytes");
    double loads = number(kernel, "sectors_per_load"), stores = number(kernel, "sectors_per_store");
    double conflicts = number(kernel, "bank_conflict_share"), hits = number(kernel, "l1_hit_share");
    if (!isnan(read) && !isnan(written))
        fprintf(out, "  %-10s DRAM: %.4g MB read, %.4g MB written\n", "memory", read / 1e6,
                written / 1e6);
    if (!isnan(loads) || !isnan(stores))
        fprintf(out, "  %-10s sectors a request: %.3g of loads, %.3g of stores", "",
                isnan(loads) ? 0 : loads, isnan(stores) ? 0 : stores);
    if (!isnan(hits))
        fprintf(out, "; %.0f %% of loads hit L1", 100 * hits);
    if (!isnan(loads) || !isnan(stores))
        fputc('\n', out);
    if (!isnan(conflicts) && number(kernel, "shared_wavefronts") > 0)
        fprintf(out, "  %-10s bank conflicts: %.1f %% of shared memory's wavefronts\n", "",
                100 * conflicts);
    if (number(kernel, "local_sectors") > 0)
        fprintf(out, "  %-10s local memory: %.4g MB (spills, indexed arrays)\n", "",
                number(kernel, "local_sectors") * 32 / 1e6);
}

static void print_kernel(const struct value *kernel, FILE *out)
{
    double time_ns = number(kernel, "time_ns");
    fprintf(out, "\nkernel %s", value_text(kernel, "entry", "?"));
    if (!isnan(time_ns))
        fprintf(out, ": %.4g us, %.0f %% of the time", time_ns / 1e3,
                100 * number(kernel, "time_share"));
    fputc('\n', out);
    print_launch(kernel, out);
    if (!value_get(kernel, "issue_share"))
        return;
    print_share("of peak", "DRAM", number(kernel, "dram_share"), "", out);
    print_share("", "L2", number(kernel, "l2_share"), "", out);
    print_share("", "L1 and shared", number(kernel, "l1_share"), "", out);
    print_share("busy", "multiprocessors", number(kernel, "sm_busy_share"), "", out);
    print_share("", "issue slots", number(kernel, "issue_share"), "", out);
    print_share("", "occupancy", number(kernel, "occupancy"), "", out);
    print_group("pipes", value_get(kernel, "pipes"), 0.005, 5, out);
    print_group("warps wait", value_get(kernel, "stalls"), 0.03, 6, out);
    print_memory(kernel, out);
    fprintf(out, "  %-10s %.4g million of warps, %.1f of 32 threads active:", "instr.",
            number(kernel, "instructions") / 1e6, number(kernel, "threads_per_instruction"));
    const struct value *mix = value_get(kernel, "mix");
    for (size_t i = 0; mix && i < mix->count; i++)
        if (mix->items[i]->real >= 0.005)
            fprintf(out, " %s %.0f %%", mix->keys[i], 100 * mix->items[i]->real);
    fputc('\n', out);
}

void profile_print(const struct evaluation *evaluation, const char *facts, FILE *out)
{
    char text[32], caveats[160];
    ARENA_LOCAL(arena);
    struct value *metrics = NULL;
    if (value_parse_json(arena, "metrics", evaluation->metrics, strlen(evaluation->metrics),
                         &metrics, NULL))
        metrics = NULL;
    const struct value *kernels = value_get(metrics, "kernels");
    const struct value *notes = value_get(metrics, "notes");
    fprintf(out, "  %-10s %s", "time",
            words_time_in(evaluation->time_ns.median, evaluation->time_ns.low,
                          evaluation->time_ns.high, text));
    if (evaluation->speedup.samples)
        fprintf(out, ", %sx %s",
                words_ratio(evaluation->speedup.median, evaluation->speedup.low,
                            evaluation->speedup.high, text),
                evaluation->baseline);
    fprintf(out, "%s\n", words_caveats(evaluation->unfit, evaluation->unconfined, caveats));
    print_diagnosis(evaluation, facts, kernels != NULL, out);
    if (kernels) {
        print_source(value_get(metrics, "profile"), out);
        print_clocks(value_get(metrics, "profile"), out);
    }
    if (!isnan(number(metrics, "dram_bytes")) && number(metrics, "roofline.bytes") > 0)
        fprintf(out, "  %-10s %.4g MB moved, %.4g MB needed: %.2fx\n", "DRAM",
                number(metrics, "dram_bytes") / 1e6, number(metrics, "roofline.bytes") / 1e6,
                number(metrics, "dram_bytes") / number(metrics, "roofline.bytes"));
    for (size_t i = 0; notes && i < notes->count; i++)
        fprintf(out, "  %-10s %s\n", i ? "" : "notes", notes->items[i]->text);
    for (size_t i = 0; kernels && kernels->kind == VALUE_LIST && i < kernels->count; i++)
        print_kernel(kernels->items[i], out);
}
