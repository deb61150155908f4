#include "eval/candidate/definition.h"

#include "base/file.h"

#include <string.h>

enum { SOURCE_MOST = 1 << 20 };

bool definition_is_candidate(const struct problem *problem, const struct language *language)
{
    return problem->reference_kind == REFERENCE_C && !language->plan && !language->fixes_block;
}

int definition_text(const struct problem *problem, const char *compile, struct buf *text,
                    struct err *err)
{
    BUF_LOCAL(source, SOURCE_MOST);
    if (file_read(problem->reference_file, &source, err) != 0)
        return -1;
    if (compile != NULL)
        buf_addf(text, "/*---\ncompile: %s\n---*/\n", compile);
    if (strstr(buf_text(&source), "REAL") != NULL) /* as the definition is built itself */
        buf_addf(text, "#define REAL %s\n",
                 problem_precise(problem)->dtype == DTYPE_FLOAT64 ? "double" : "float");
    buf_add(text, buf_text(&source), source.length);
    return 0;
}
