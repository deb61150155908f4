#include "agents/retrieve/retrieve.h"
#include "agents/search/candidate/candidate.h"
#include "agents/workplace/workplace.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <string.h>

enum { GUIDE_MOST = 1 << 20 };

/* The guides that ship for this backend: some ten small files. */
static int write_guides(const struct search *search, const char *folder, struct err *err)
{
    MEM_LOCAL char *where = file_data_path("rag");
    DIR *guides = where ? opendir(where) : NULL;
    int status = 0;
    for (const struct dirent *entry; guides && status == 0 && (entry = readdir(guides));) {
        ARENA_LOCAL(arena);
        BUF_LOCAL(text, GUIDE_MOST);
        if (*entry->d_name == '.' || !retrieve_guide_is_for(entry->d_name, search->options.backend))
            continue;
        status = file_read(arena_printf(arena, "%s/%s", where, entry->d_name), &text, err);
        if (status == 0)
            status = workplace_write(folder, arena_printf(arena, "guides/%s", entry->d_name),
                                     buf_text(&text), err);
    }
    if (guides)
        closedir(guides);
    return status;
}

/* For programs that start MCP servers by a file: Claude Code's form, and Gemini CLI's, which asks
 * nobody (`trust`) and waits for a verdict (`timeout`, ms; 0: the other form). */
static int write_servers(const char *folder, const char *name, uint64_t limit_ms, struct err *err)
{
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    json_put_object(&json, "mcpServers");
    json_put_object(&json, "twagent");
    json_put_text(&json, "command", file_program_path());
    json_put_array(&json, "args");
    json_text(&json, "mcp");
    json_array_end(&json);
    json_put_object(&json, "env");
    json_put_text(&json, "TWAGENT_ATTEMPT", folder);
    json_object_end(&json);
    if (limit_ms > 0) {
        json_put_bool(&json, "trust", true);
        json_put_int(&json, "timeout", (int64_t)limit_ms);
    }
    json_object_end(&json);
    json_object_end(&json);
    json_object_end(&json);
    buf_add_char(&text, '\n');
    return workplace_write(folder, name, buf_text(&text), err);
}

static int write_sources(const struct search *search, const struct attempt *parent,
                         const char *folder, struct err *err)
{
    ARENA_LOCAL(arena);
    const char *name = search->problem->reference_file, *slash = strrchr(name, '/');
    const char *point = parent ? strrchr(parent->arm->name, '.') : NULL;
    if (parent && workplace_write(folder, arena_printf(arena, "parent%s", point ? point : ""),
                                  parent->arm->text, err) != 0)
        return -1;
    return workplace_write(folder, arena_printf(arena, "problem/%s", slash ? slash + 1 : name),
                           search->context.reference, err);
}

/* How the agent looks at a source by itself: as the run does, but for what verdicts are for. */
static int write_eval(const struct search *search, const char *folder, struct err *err)
{
    const struct search_options *o = &search->options;
    BUF_LOCAL(text, 1 << 16);
    buf_addf(&text, "%s\n--backend=%s\n", o->problem, o->backend);
    if (o->python)
        buf_addf(&text, "--python=%s\n", o->python);
    if (o->baseline)
        buf_addf(&text, "--baseline=%s\n", o->baseline);
    if (o->unfit)
        buf_add_text(&text, "--unfit\n");
    if (o->unconfined)
        buf_add_text(&text, "--unconfined\n");
    return workplace_write(folder, WORKPLACE_EVAL, buf_text(&text), err);
}

int task_files_write(const struct search *search, const struct attempt *parent, const char *folder,
                     uint64_t limit_ms, struct err *err)
{
    if (write_sources(search, parent, folder, err) != 0 || write_eval(search, folder, err) != 0 ||
        write_servers(folder, ".mcp.json", 0, err) != 0 ||
        write_servers(folder, ".gemini/settings.json", limit_ms, err) != 0)
        return -1;
    return write_guides(search, folder, err);
}
