#include "eval/webgpu/emit.h"

static int emit(const struct emission *e, const char *form, const char **note, struct err *err)
{
    BUF_LOCAL(text, 2 << 20);
    (void)form, (void)note;
    buf_addf(&text, "// %s\n", e->title);
    buf_add(&text, e->candidate->source, e->candidate->length);
    return emit_plan(e, err) != 0 ? -1 : emit_write(e, "kernel.wgsl", &text, err);
}

static const char *const forms[] = {"web", NULL};
const struct emitter emitter_webgpu = {forms, emit};
