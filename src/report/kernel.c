/* The champion's source as a file of its own: it compiles alone, and `twagent eval` takes it. */
#include "report/report.h"

#include <string.h>

static const char *next_line(const char *at, const char *end)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return stop ? stop + 1 : end;
}

/* The front matter's lines less its `tune` (a key at the line's start, with what is indented below
 * it). */
static void other_keys(const char *at, const char *end, struct buf *out)
{
    bool within = false;
    for (const char *next; at < end; at = next) {
        next = next_line(at, end);
        if (*at != ' ' && *at != '\n' && *at != '#')
            within = strncmp(at, "tune:", 5) == 0;
        if (!within)
            buf_add(out, at, (size_t)(next - at));
    }
}

/* Front matter comes first in a candidate: here with the tune parameters at the numbers that won.
 */
static const char *front_matter(const char *source, const struct value *tune, struct buf *out)
{
    static const char opens[] = "/*---\n", closes[] = "---*/\n";
    const char *begin = source + strspn(source, " \t\r\n");
    bool has = strncmp(begin, opens, sizeof opens - 1) == 0;
    const char *end = has ? strstr(begin, closes) : NULL;
    if (!end && (!tune || tune->count == 0))
        return source;
    buf_add_text(out, opens);
    if (end)
        other_keys(begin + sizeof opens - 1, end, out);
    if (tune && tune->count > 0)
        buf_add_text(out, "tune:\n");
    for (size_t i = 0; tune && i < tune->count; i++)
        buf_addf(out, "  %s: [%lld]\n", tune->keys[i], (long long)tune->items[i]->integer);
    buf_add_text(out, closes);
    return end ? end + sizeof closes - 1 : source;
}

static void how_to_use(const struct report *report, struct buf *out)
{
    const char *compile = report->language ? report->language->compile : NULL;
    if (!compile) {
        const struct target *target = report->language ? language_target(report->language) : NULL;
        buf_addf(out, " * Evaluate: twagent eval --backend %s %s THIS_FILE.%s */\n",
                 target ? target->name : "NAME", report->problem,
                 report->language && report->language->plan
                     ? " The launches are in the `launch`\n * key above."
                     : "");
        return;
    }
    buf_addf(
        out,
        " * Compile: %s -O3 -march=native -fopenmp -shared -fPIC (and the flags of its `compile`\n"
        " * key, if it has one). Call: kernel(inputs..., outputs..., workspaces..., dims...),\n"
        " * pointers to row-major tensors, dims as int64_t, in the order of the problem's spec.\n"
        " * Evaluate: twagent eval %s THIS_FILE */\n"
        "#include <stddef.h>\n#include <stdint.h>\n",
        compile, report->problem);
}

const char *report_suffix(const struct report *report)
{
    return report->language ? report->language->suffixes[0] : "";
}

void report_kernel(const struct report *report, struct buf *out)
{
    const struct value *tune = value_get(report->evaluation, "tune");
    const char *source = report->source ? report->source : "";
    source = front_matter(source, tune, out);
    buf_addf(out, "/* %s, %s: %s\n", report->problem, report->best ? report->best : "",
             report->outcome);
    how_to_use(report, out);
    for (size_t i = 0; tune && i < tune->count; i++)
        buf_addf(out, "#ifndef %s\n#define %s %lld\n#endif\n", tune->keys[i], tune->keys[i],
                 (long long)tune->items[i]->integer);
    buf_addf(out, "\n%s", source);
}
