/* twagent skill [DIR]: a folder with the page that tells a coding agent how to work with us. */
#include "base/file.h"
#include "base/mem.h"
#include "cli/mcp/documents.h"
#include "cli/options/command.h"

#include <stdio.h>
#include <string.h>

static int write_skill(struct arena *arena, const char *folder, struct err *err)
{
    static const char head[] =
        "---\nname: twagent\ndescription: Makes numerical kernels (C, C++, CUDA, WGSL) faster and "
        "proves it. Checks a candidate against its definition, times it, profiles it, tunes it. "
        "Use it when asked to speed up an operation, or to say whether a kernel is right and "
        "faster.\n---\n\n";
    const char *guide = documents_guide(arena);
    if (!guide)
        return err_set(err, ERR_ENVIRONMENT, "the page that ships is not installed");
    if (file_exists(folder))
        return err_set(err, ERR_USAGE, "%s: is there already; name a folder that is not", folder);
    const char *text = arena_printf(arena, "%s%s", head, guide);
    MEM_LOCAL char *path = file_join(folder, "SKILL.md");
    return file_make_dirs(folder, err) || file_write(path, text, strlen(text), err) ? -1 : 0;
}

int command_skill(const struct settings *settings, const char *const *arguments, size_t count)
{
    const char *folder = count ? arguments[0] : "twagent-skill";
    struct err err = {0};
    ARENA_LOCAL(arena);
    (void)settings;
    if (write_skill(arena, folder, &err))
        return command_fail(&err);
    printf("wrote %s/SKILL.md\nnext: move %s to where your agent looks for skills (docs/mcp.md)\n",
           folder, folder);
    return 0;
}
