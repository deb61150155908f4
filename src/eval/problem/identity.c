#include "eval/problem/identity.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "eval/problem/torch.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MOST = 256, FILE_MOST = 64 << 20, NAME_MOST = 200 };

/* --- the files of a definition --- */

struct files { /* each once; read in the order in which they are first named */
    const char *folder;
    char *paths[FILES_MOST];
    size_t count, read;
    struct hash hash;
    bool whole;
};

static void add_path(struct files *files, const char *name)
{
    char *path = file_join(files->folder, name);
    bool known = files->count == FILES_MOST || !file_is_regular(path);
    for (size_t i = 0; i < files->count && !known; i++)
        known = strcmp(files->paths[i], path) == 0;
    if (known)
        mem_free(path);
    else
        files->paths[files->count++] = path;
}

static int is_module(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 3 && strcmp(entry->d_name + length - 3, ".py") == 0;
}

/* A module beside the file, or all of a package there. */
static void add_module(struct files *files, const char *name, size_t length)
{
    char path[2 * NAME_MOST + 8];
    struct dirent **entries = NULL;
    if (length == 0 || length >= NAME_MOST)
        return;
    snprintf(path, sizeof path, "%.*s.py", (int)length, name);
    add_path(files, path);
    MEM_LOCAL char *package = file_join(files->folder, name);
    package[strlen(files->folder) + 1 + length] = '\0';
    int count = file_is_dir(package) ? scandir(package, &entries, is_module, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%.*s/%.*s", (int)length, name, NAME_MOST, entries[i]->d_name);
        add_path(files, path);
        free(entries[i]);
    }
    free(entries);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t.");
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' ||
           ((unsigned char)at[length] & 0x80) != 0)
        length++;
    return length;
}

/* `import a.b as c, d`, `from a.b import c`, `from . import a, b`. Other lines that begin so name
 * files that are not there, or ones that do no harm. */
static void add_imports(struct files *files, const char *line)
{
    bool from = strncmp(line, "from", 4) == 0 && isspace((unsigned char)line[4]);
    if (!from && !(strncmp(line, "import", 6) == 0 && isspace((unsigned char)line[6])))
        return;
    const char *at = line + (from ? 4 : 6);
    while (*at != '\0' && *at != '\n' && *at != '#') {
        size_t length;
        at = skip_blanks(at);
        length = word_length(at);
        add_module(files, at, length);
        at += length;
        at += length == 0 && *at != '\0' && *at != '\n';
    }
}

/* "weights.npy", 'helper.h': whatever is quoted and lies beside. */
static void add_quoted(struct files *files, const char *text)
{
    static const char quotes[] = "\"'";
    char name[NAME_MOST];
    const char *at = text;
    while (at != NULL && (at = strpbrk(at, quotes)) != NULL) {
        const char *begin = ++at;
        size_t length = strcspn(begin, "\"'\n");
        if (length == 0 || length >= NAME_MOST || begin[length] != begin[-1] || *begin == '/')
            continue;
        memcpy(name, begin, length);
        name[length] = '\0';
        if (strcmp(name, ".") != 0 && strstr(name, "..") == NULL)
            add_path(files, name);
    }
}

static void read_files(struct files *files)
{
    while (files->read < files->count) {
        const char *path = files->paths[files->read++];
        struct err ignored;
        BUF_LOCAL(text, FILE_MOST);
        if (file_read(path, &text, &ignored) != 0) {
            files->whole = false;
            continue;
        }
        const char *all = buf_text(&text), *name = path + strlen(files->folder) + 1;
        if (files->read > 1) /* the reference's own name is its author's business */
            files->hash = hash_combine(files->hash, hash_bytes(name, strlen(name)));
        files->hash = hash_combine(files->hash, hash_bytes(all, text.length));
        for (const char *line = all; line != NULL && *line != '\0';) {
            add_imports(files, line + strspn(line, " \t"));
            line = strchr(line, '\n');
            line = line != NULL ? line + 1 : NULL;
        }
        add_quoted(files, all);
    }
}

static struct hash hash_files(const char *path, bool *whole)
{
    const char *slash = strrchr(path, '/');
    MEM_LOCAL char *folder = mem_strdup(slash != NULL ? path : ".");
    if (slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    struct files files = {.folder = folder, .whole = true};
    add_path(&files, slash != NULL ? slash + 1 : path);
    files.whole = files.count == 1;
    read_files(&files);
    for (size_t i = 0; i < files.count; i++)
        mem_free(files.paths[i]);
    *whole = files.whole;
    return files.hash;
}

/* --- what the spec says --- */

static void put_tensors(const struct tensor_spec *tensors, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct tensor_spec *tensor = &tensors[i];
        buf_addf(out, "%s %s", tensor->name, dtype_name(tensor->dtype));
        for (size_t axis = 0; axis < tensor->rank; axis++)
            buf_addf(out, " [%s]", tensor->shape_text[axis]);
        buf_addf(out, " %.17g %.17g\n", tensor->low, tensor->high);
    }
    buf_add_text(out, "--\n");
}

static void put_spec(const struct problem *problem, struct buf *out)
{
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s %s\n", problem->dims[i].name, problem->dims[i].value_text);
    put_tensors(problem->inputs, problem->input_count, out);
    put_tensors(problem->outputs, problem->output_count, out);
    buf_addf(out, "%d %s %d %d %.17g %.17g %d %s\n", (int)problem->reference_kind,
             problem->reference_function ? problem->reference_function : "", problem->normwise,
             problem->tolerance_fixed, problem->rtol, problem->atol, problem->strict,
             problem->precision ? problem->precision : "");
    if (problem->non_finite != NON_FINITE_AS_DEFINED) /* without the key it is what it was */
        buf_addf(out, "non_finite %d\n", (int)problem->non_finite);
}

void problem_identity_of_module(const char *path, char text[IDENTITY_BYTES])
{
    bool whole;
    struct hash hash = hash_combine(hash_bytes("module", 6), hash_files(path, &whole));
    hash_format(hash, text);
    if (!whole)
        text[0] = '\0';
}

void problem_identity(const struct problem *problem, char text[IDENTITY_BYTES])
{
    bool whole;
    if (problem->torch != NULL) {
        const char *size = file_exists(problem->file) ? NULL : problem_size_of(problem->file);
        MEM_LOCAL char *file = mem_strdup(problem->file);
        if (size != NULL)
            file[size - problem->file] = '\0';
        problem_identity_of_module(file, text);
        return;
    }
    BUF_LOCAL(spec, 1 << 20);
    put_spec(problem, &spec);
    struct hash hash = hash_files(problem->reference_file, &whole);
    hash_format(hash_combine(hash_bytes(buf_text(&spec), spec.length), hash), text);
    if (!whole)
        text[0] = '\0';
}
