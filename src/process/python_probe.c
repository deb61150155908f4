#include "process/python_probe.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "process/python_child.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An import takes a second, and on a busy machine with cold files many. */
enum { PROBE_TIMEOUT_MS = 300000, TRIED_MOST = 400, PATHS_MOST = 64 };

struct search {
    const char *package;
    const char *loads; /* that, in place of an import; NULL: it is imported */
    struct arena *arena;
    struct interpreter *interpreter;
    struct buf tried;
    const char *paths[PATHS_MOST]; /* what was probed, so that nothing is probed twice */
    size_t count;
};

/* Quoted in a script; "" where there is no place for it. */
static const char *bytecode_folder(struct arena *arena)
{
    MEM_LOCAL char *folder = file_cache_path("python", NULL);
    return folder == NULL || strpbrk(folder, "'\\\n\r") != NULL ? "" : arena_strdup(arena, folder);
}

/* Seven lines: something that says that the package came, the two prefixes, the two versions, where
 * its byte code lies if not beside it, and where it lies itself. Who has no such thing to say ends
 * after five. */
static const char before[] =
    "import importlib.util, os, sys\n"
    "spec = importlib.util.find_spec('%s')\n"
    "own = '%s' if spec and spec.origin else ''\n"
    "if own and os.path.isdir(os.path.join(os.path.dirname(spec.origin), '__pycache__')):\n"
    "    own = ''\n"
    "if own:\n"
    "    sys.pycache_prefix, sys.dont_write_bytecode = own, False\n";
static const char imports_it[] = "import %s as found\n"
                                 "version, origin = found.__version__, found.__file__ or ''\n";
static const char loads_numpy[] =
    "from importlib.machinery import EXTENSION_SUFFIXES\n"
    "version, origin = '', spec.origin\n"
    "parts = [os.path.join(os.path.dirname(origin), core, '_multiarray_umath' + suffix)\n"
    "         for core in ('_core', 'core') for suffix in EXTENSION_SUFFIXES]\n"
    "parts = [part for part in parts if os.path.exists(part)]\n"
    "try:\n"
    "    from _ctypes import dlopen\n"
    "except ImportError:\n"
    "    parts = []\n"
    "if own or not parts:\n" /* byte code comes of an import */
    "    import numpy\n"
    "else:\n"
    "    dlopen(parts[0], os.RTLD_NOW)\n";
static const char looks_for_torch[] =
    "version, origin = '', spec.origin\n"
    "if own or not os.path.exists(os.path.join(os.path.dirname(origin), 'lib', 'libtorch.so')):\n"
    "    import torch\n";
static const char loads_triton[] =
    "from glob import glob\n"
    "origin, parts = spec.origin, glob(os.path.dirname(spec.origin) + '/_C/libtriton*.so')\n"
    "said = [line.split(\"'\") for line in open(origin) if line.startswith('__version__ = ')]\n"
    "if own or len(parts) != 1 or len(said) != 1 or len(said[0]) != 3:\n"
    "    import triton\n"
    "    version = triton.__version__\n"
    "else:\n"
    "    from _ctypes import dlopen\n"
    "    dlopen(parts[0], os.RTLD_LAZY)\n"
    "    version = said[0][1]\n";
static const char after[] =
    "print('found', sys.prefix, sys.base_prefix, sys.version.split()[0], version,\n"
    "      own, os.path.dirname(origin), sep='\\n', flush=True)\n";

static const char *script_for(struct search *search)
{
    const char *head =
        arena_printf(search->arena, before, search->package, bytecode_folder(search->arena));
    const char *import = search->loads != NULL
                             ? search->loads
                             : arena_printf(search->arena, imports_it, search->package);
    return arena_printf(search->arena, "%s%s%s", head, import, after);
}

static bool ask(struct search *search, const char *path, struct err *err)
{
    const char *const argv[] = {path, "-I", "-B", "-c", script_for(search), NULL};
    static const char *const env[] = {"LC_ALL=C.UTF-8", "OPENBLAS_NUM_THREADS=1", NULL};
    struct child child = {0};
    struct err ignored = {0};
    const char *line;
    if (child_start(&child, argv, env, NULL, 0, err) != 0)
        return false;
    bool fine = child_line(&child, PROBE_TIMEOUT_MS, &line, err) == 0;
    fine = fine && strcmp(line, "found") == 0;
    struct interpreter *found = search->interpreter;
    const char **texts[] = {&found->prefix, &found->base_prefix, &found->python, &found->package};
    for (size_t i = 0; fine && i < sizeof texts / sizeof texts[0]; i++) {
        fine = child_line(&child, PROBE_TIMEOUT_MS, &line, err) == 0;
        if (fine)
            *texts[i] = arena_strdup(search->arena, line);
    }
    bool own = fine && child_line(&child, PROBE_TIMEOUT_MS, &line, &ignored) == 0;
    found->bytecode = own ? arena_strdup(search->arena, line) : "";
    own = own && child_line(&child, PROBE_TIMEOUT_MS, &line, &ignored) == 0;
    found->folder = own ? arena_strdup(search->arena, line) : "";
    child_stop(&child);
    found->path = path;
    return fine;
}

void interpreter_fill(const struct interpreter *found)
{
    enum { SCRIPT_MOST = 2048 };
    static const char text[] =
        "import fcntl, importlib, os, sys\n"
        "mark, sys.pycache_prefix, sys.dont_write_bytecode = '%s', '%s', False\n"
        "lock = os.open(mark + '.lock', os.O_CREAT | os.O_RDWR, 0o600)\n"
        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n" /* ends where another one fills it */
        "for name in ('compile_fx', 'codegen.triton', 'runtime.triton_heuristics', 'choices',\n"
        "             'codegen.wrapper_fxir', 'codegen.cuda.device_op_overrides'):\n"
        "    try:\n"
        "        importlib.import_module('torch._inductor.' + name)\n"
        "    except Exception:\n"
        "        pass\n"
        "open(mark, 'w').close()\n";
    static const char *const env[] = {"LC_ALL=C.UTF-8", NULL};
    static struct child fills;
    struct err ignored;
    char mark[PATH_MAX], script[2 * PATH_MAX + SCRIPT_MOST];
    snprintf(mark, sizeof mark, "%s/compiler-%s", found->bytecode, found->package);
    if (*found->bytecode == '\0' || fills.pid != 0 || strpbrk(mark, "'\\\n\r") != NULL ||
        file_exists(mark))
        return;
    snprintf(script, sizeof script, text, mark, found->bytecode);
    const char *const argv[] = {found->path, "-I", "-B", "-c", script, NULL};
    (void)!child_start(&fills, argv, env, NULL, 0, &ignored);
}

static bool probe(struct search *search, const char *path)
{
    struct err err = {0};
    for (size_t i = 0; i < search->count; i++)
        if (strcmp(search->paths[i], path) == 0)
            return false;
    if (search->count == PATHS_MOST || access(path, X_OK) != 0 || file_is_dir(path))
        return false;
    path = arena_strdup(search->arena, path);
    search->paths[search->count++] = path;
    if (ask(search, path, &err))
        return true;
    buf_addf(&search->tried, "%s%s%s", search->tried.length > 0 ? ", " : "", path,
             err.code == ERR_TIMEOUT ? ": not within the time limit" : "");
    return false;
}

static bool probe_path(struct search *search)
{
    const char *path = getenv("PATH");
    MEM_LOCAL char *copy = mem_strdup(path != NULL ? path : "");
    char *rest = copy, *folder;
    bool found = false;
    while (!found && (folder = strsep(&rest, ":")) != NULL) {
        if (*folder != '/')
            continue;
        char *program = file_join(folder, "python3");
        found = probe(search, program);
        mem_free(program);
    }
    return found;
}

static bool probe_environment(struct search *search)
{
    const char *folder = getenv("VIRTUAL_ENV");
    if (folder == NULL || *folder != '/')
        return false;
    MEM_LOCAL char *program = file_join(folder, "bin/python3");
    return probe(search, program);
}

static int find(const char *configured, struct search *search, struct err *err)
{
    struct err why = {0};
    if (configured != NULL) {
        if (access(configured, X_OK) == 0 &&
            ask(search, arena_strdup(search->arena, configured), &why))
            return 0;
        if (why.code == ERR_TIMEOUT)
            return err_set(err, ERR_TIMEOUT,
                           "%s did not import %s within %d s: is the machine busy?", configured,
                           search->package, PROBE_TIMEOUT_MS / 1000);
        return err_set(err, ERR_ENVIRONMENT, "%s does not import %s%s%s", configured,
                       search->package, why.code != ERR_NONE ? ": " : "", why.message);
    }
    buf_init(&search->tried, TRIED_MOST);
    bool found =
        probe_environment(search) || probe_path(search) || probe(search, "/usr/bin/python3");
    int status = 0;
    if (!found)
        status = err_set(err, ERR_ENVIRONMENT,
                         "no Python with %s (tried %s): install python3-%s, or name one with "
                         "--python",
                         search->package,
                         search->tried.length > 0 ? buf_text(&search->tried) : "nothing",
                         search->package);
    buf_free(&search->tried);
    return status;
}

int interpreter_find(const char *configured, const char *package, struct arena *arena,
                     struct interpreter *interpreter, struct err *err)
{
    struct search search = {.package = package, .arena = arena, .interpreter = interpreter};
    return find(configured, &search, err);
}

int interpreter_find_numpy(const char *configured, struct arena *arena,
                           struct interpreter *interpreter, struct err *err)
{
    struct search search = {
        .package = "numpy", .loads = loads_numpy, .arena = arena, .interpreter = interpreter};
    return find(configured, &search, err);
}

int interpreter_find_torch(const char *configured, struct arena *arena,
                           struct interpreter *interpreter, struct err *err)
{
    struct search search = {
        .package = "torch", .loads = looks_for_torch, .arena = arena, .interpreter = interpreter};
    return find(configured, &search, err);
}

int interpreter_find_triton(const char *configured, struct arena *arena,
                            struct interpreter *interpreter, struct err *err)
{
    struct search search = {
        .package = "triton", .loads = loads_triton, .arena = arena, .interpreter = interpreter};
    return find(configured, &search, err);
}
