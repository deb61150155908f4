/* The parent of a compile, in the folder that has request.json: it has Triton compile in a sandbox,
 * and makes of what comes from there kernel.cubin and kernel.json. Numbers are bounded here, and no
 * cubin may say of itself what only our own compiler may say of one. */
#include "base/clock.h"
#include "base/file.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "eval/cuda/compile/serve.h"
#include "eval/cuda/run/variants.h"
#include "eval/cuda/triton/triton.h"
#include "process/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HANG_MS = 600000, ERRORS_MOST = 48 << 10, PACK_MOST = 64 << 20 };
enum { SCRATCH_MOST = 1 << 20, SCRATCH_ALIGN_MOST = 256, CTAS_MOST = 16 }; /* of a block */
enum { BOX_MOST = 256, SWIZZLE_MOST = 3 };
enum { THREADS_MOST = 1024, SHARED_MOST = 16 << 20, ALIGN = 16, REPORT_MOST = 1 << 20 };

struct packing {
    struct arena *arena;
    const char *arch;
    const struct value *launches; /* of the request */
    const struct value *report;   /* the sandbox's: not to be believed */
    struct buf cubins;            /* the sandbox's, one behind the other */
    size_t taken;
    size_t main_at[LAUNCHES_MAX], main_bytes[LAUNCHES_MAX]; /* in `pack` */
    struct buf pack, log;
    struct json json;
    double ms;
};

/* A plain file of the scratch folder, whoever made it what it is. */
static int read_plain(const char *path, size_t most, struct buf *into, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), result = 0;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > (off_t)most)
        result = err_set(err, ERR_CHILD, "the compile left no %s", path);
    char bytes[1 << 14];
    ssize_t got = 0;
    while (result == 0 && (got = read(fd, bytes, sizeof bytes)) > 0)
        buf_add(into, bytes, (size_t)got);
    if (fd >= 0)
        close(fd);
    if (result == 0 && (got < 0 || into->dropped > 0))
        result = err_set(err, ERR_CHILD, "%s cannot be read", path);
    return result;
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    bool fine = length > 0 && length < 128;
    for (size_t i = 0; i < length; i++)
        fine = fine && (isalnum((unsigned char)name[i]) || name[i] == '_');
    return fine;
}

/* What a runner cannot do for it, in words for the author. */
static int check_kernel(const struct value *item, const char *entry, struct err *err)
{
    int64_t threads = value_int(item, "threads", 0), shared = value_int(item, "shared", -1);
    if (!is_name(value_text(item, "name", "")) || threads < 32 || threads > THREADS_MOST ||
        threads % 32 != 0 || shared < 0 || shared > SHARED_MOST)
        return err_set(err, ERR_CHILD, "%s: what the compile says of it cannot be", entry);
    int64_t scratch = value_int(item, "scratch", 0), align = value_int(item, "scratch_align", 1);
    int64_t ctas = value_int(item, "num_ctas", 1);
    if (strcmp(value_text(item, "name", ""), entry) != 0 || scratch < 0 || scratch > SCRATCH_MOST ||
        align < 1 || align > SCRATCH_ALIGN_MOST || (align & (align - 1)) != 0 || ctas < 1 ||
        ctas > CTAS_MOST)
        return err_set(err, ERR_CHILD, "%s: what the compile says of it cannot be", entry);
    if (value_bool(item, "cooperative", false) || value_int(item, "profile", 0) != 0)
        return err_set(err, ERR_CHILD, "%s: cooperative grids and profiling are not supported",
                       entry);
    return 0;
}

/* Of the tensor maps among a launch's args, [swizzle, box...] each, as the compile has them. */
static int add_maps(struct packing *packing, const struct value *item, const struct value *args,
                    const char *entry, struct err *err)
{
    const struct value *maps = value_get(item, "maps");
    size_t count = 0, expected = 0;
    for (size_t i = 0; i < args->count; i++)
        expected += strncmp(args->items[i]->text, "tensordesc", 10) == 0;
    if (maps != NULL && maps->kind == VALUE_LIST)
        count = maps->count;
    if (count != expected)
        return err_set(err, ERR_CHILD,
                       "%s: takes %zu tensor maps, but its compile for %s knows of %zu", entry,
                       expected, packing->arch, count);
    if (count == 0)
        return 0;
    json_put_array(&packing->json, "maps");
    for (size_t i = 0; i < count; i++) {
        const struct value *map = maps->items[i];
        bool fine = map->kind == VALUE_LIST && map->count >= 2 && map->count <= 1 + TENSOR_MAP_RANK;
        json_array(&packing->json);
        for (size_t k = 0; fine && k < map->count; k++) {
            const struct value *number = map->items[k];
            fine = number->kind == VALUE_INT && number->integer >= (k > 0) &&
                   number->integer <= (k > 0 ? BOX_MOST : SWIZZLE_MOST);
            json_int(&packing->json, number->integer);
        }
        json_array_end(&packing->json);
        if (!fine)
            return err_set(err, ERR_CHILD, "%s: what the compile says of its tensor maps cannot be",
                           entry);
    }
    json_array_end(&packing->json);
    return 0;
}

static unsigned known_from(const char *words)
{
    unsigned known = strcmp(words, "1") == 0 ? KNOWN_ONE : 0;
    if (strncmp(words, "64", 2) == 0)
        known |= KNOWN_WIDE;
    if (strstr(words, "16") != NULL)
        known |= KNOWN_16;
    return known;
}

static int add_cubin(struct packing *packing, int64_t bytes, struct err *err)
{
    static const size_t note = sizeof CUBIN_UNUSED - 1;
    static const char zeros[ALIGN];
    struct cubin cubin;
    const char *image = buf_text(&packing->cubins) + packing->taken;
    if (bytes <= 0 || (uint64_t)bytes > packing->cubins.length - packing->taken ||
        memmem(image, (size_t)bytes, CUBIN_UNUSED, note) != NULL ||
        cubin_read(image, (size_t)bytes, &cubin) != 0)
        return err_set(err, ERR_CHILD, "what the compile left is no cubin of Triton's");
    packing->taken += (size_t)bytes;
    buf_add(&packing->pack, image, (size_t)bytes);
    buf_add(&packing->pack, zeros, (ALIGN - packing->pack.length % ALIGN) % ALIGN);
    return packing->pack.dropped == 0
               ? 0
               : err_set(err, ERR_CHILD, "the cubins are larger than 64 MiB");
}

static int add_variant(struct packing *packing, const struct value *launch,
                       const struct value *known, size_t number, struct err *err)
{
    const char *entry = value_text(launch, "entry", "");
    const struct value *kernels = value_get(packing->report, "kernels");
    const struct value *item =
        kernels != NULL && kernels->kind == VALUE_LIST && number < kernels->count
            ? kernels->items[number]
            : NULL;
    size_t offset = packing->pack.length;
    if (check_kernel(item, entry, err) != 0 ||
        add_cubin(packing, value_int(item, "bytes", 0), err) != 0)
        return -1;
    json_object(&packing->json);
    json_put_text(&packing->json, "entry", value_text(item, "name", ""));
    json_put_int(&packing->json, "threads", value_int(item, "threads", 0));
    json_put_int(&packing->json, "shared_bytes", value_int(item, "shared", 0));
    json_put_int(&packing->json, "cluster", value_int(item, "num_ctas", 1));
    json_put_int(&packing->json, "scratch_bytes", value_int(item, "scratch", 0));
    json_put_int(&packing->json, "scratch_align", value_int(item, "scratch_align", 1));
    json_put_int(&packing->json, "offset", (int64_t)offset);
    json_put_int(&packing->json, "bytes", (int64_t)(packing->pack.length - offset));
    json_put_array(&packing->json, "known");
    for (size_t i = 0; i < known->count; i++)
        json_int(&packing->json, known_from(known->items[i]->text));
    json_array_end(&packing->json);
    if (add_maps(packing, item, value_get(launch, "args"), entry, err) != 0)
        return -1;
    json_object_end(&packing->json);
    return 0;
}

static int add_launches(struct packing *packing, struct err *err)
{
    size_t number = 0;
    json_put_array(&packing->json, "launches");
    for (size_t i = 0; i < packing->launches->count; i++) {
        const struct value *launch = packing->launches->items[i];
        const struct value *variants = value_get(launch, "variants");
        packing->main_at[i] = packing->pack.length;
        json_array(&packing->json);
        for (size_t k = 0; k < variants->count; k++)
            if (add_variant(packing, launch, variants->items[k], number++, err) != 0)
                return -1;
            else if (k == 0)
                packing->main_bytes[i] = packing->pack.length - packing->main_at[i];
        json_array_end(&packing->json);
    }
    json_array_end(&packing->json);
    return 0;
}

/* Of each entry's first variant, the main shape's. Triton keeps nothing of what ptxas says. */
static void add_entries(struct packing *packing)
{
    json_put_array(&packing->json, "entries");
    for (size_t i = 0; i < packing->launches->count; i++) {
        const char *entry = value_text(packing->launches->items[i], "entry", "");
        struct cubin_kernel kernel = cubin_kernel(buf_text(&packing->pack) + packing->main_at[i],
                                                  packing->main_bytes[i], entry);
        json_object(&packing->json);
        json_put_text(&packing->json, "entry", entry);
        json_put_int(&packing->json, "registers", kernel.registers);
        json_put_int(&packing->json, "stack_bytes", kernel.stack_bytes);
        json_put_int(&packing->json, "shared_bytes", 0); /* all is dynamic */
        json_object_end(&packing->json);
    }
    json_array_end(&packing->json);
}

static const char *version_of(const struct packing *packing)
{
    const char *version = value_text(packing->report, "version", "");
    bool fine = strlen(version) < 40;
    for (const char *at = version; *at != '\0'; at++)
        fine = fine && (isalnum((unsigned char)*at) || strchr(".+-", *at) != NULL);
    return arena_printf(packing->arena, "Triton %s", fine ? version : "?");
}

static int pack(struct packing *packing, struct err *err)
{
    if (read_plain("scratch/cubins", PACK_MOST, &packing->cubins, err) != 0)
        return -1;
    json_init(&packing->json, &packing->log);
    json_object(&packing->json);
    json_put_text(&packing->json, "arch", packing->arch);
    json_put_text(&packing->json, "version", version_of(packing));
    json_put_real(&packing->json, "compile_ms", packing->ms);
    json_put_bool(&packing->json, "precompiled", false);
    if (add_launches(packing, err) != 0)
        return -1;
    add_entries(packing);
    json_object_end(&packing->json);
    if (file_write("kernel.cubin", buf_text(&packing->pack), packing->pack.length, err) != 0)
        return -1;
    return file_write("kernel.json", buf_text(&packing->log), packing->log.length, err);
}

struct asked {
    struct interpreter interpreter;
    const char *script;                 /* libexec/triton_compile.py */
    const char *arch, *cache, *toolkit; /* cache and toolkit: "" where there are none */
    bool served;                        /* the server's socket is SERVE_FD */
};

/* A Python of its own, where there is no server. */
static int run_alone(struct arena *arena, const struct asked *asked, struct err *err)
{
    char folder[4000];
    const char *argv[TRITON_ARGS_MAX], *env[TRITON_ENV_MAX];
    BUF_LOCAL(said, 4096);
    BUF_LOCAL(errors, ERRORS_MOST);
    /* Anew: a server that answers too late has the old one's files. */
    if (getcwd(folder, sizeof folder) == NULL || file_remove_tree("scratch", err) != 0 ||
        mkdir("scratch", 0700) != 0)
        return err_set_errno(err, ERR_IO, errno, "scratch");
    const char *scratch = arena_printf(arena, "%s/scratch", folder);
    size_t count =
        triton_command(arena, &asked->interpreter, "compile", folder, scratch, asked->script, argv);
    argv[count++] = scratch;
    argv[count++] = arena_printf(arena, "%s/request.json", folder);
    argv[count++] = arena_printf(arena, "%s/cubins", scratch);
    argv[count++] = arena_printf(arena, "%s/report.json", scratch);
    argv[count] = NULL;
    triton_env(arena, scratch, env);
    const struct spawn_spec spec = {.argv = argv, .name = "triton", .env = env, .folder = scratch};
    int status = spawn_run(&spec, HANG_MS, 0, &said, &errors, err);
    fwrite(buf_text(&errors), 1, errors.length, stderr);
    return status == 0 ? 0 : -1;
}

static int create(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* 1: it cannot be asked, or did not answer. */
static int ask_server(const char *arch, struct err *err)
{
    struct cuda_job job = {.arch = arch,
                           .unit = open("request.json", O_RDONLY | O_CLOEXEC),
                           .cubin = create("scratch/cubins"),
                           .log = create("scratch/report.json"),
                           .errors = STDERR_FILENO};
    int code = -1;
    bool done =
        job.unit >= 0 && job.cubin >= 0 && job.log >= 0 && cuda_serve_ask(SERVE_FD, &job, &code);
    const int fds[] = {SERVE_FD, job.unit, job.cubin, job.log};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (!done)
        return 1;
    return code == 0 ? 0 : err_set(err, ERR_CHILD, "triton ended with exit code %d", code);
}

static int read_json(struct arena *arena, const char *path, size_t most, struct value **root,
                     struct err *err)
{
    BUF_LOCAL(text, most);
    if (read_plain(path, most, &text, err) != 0)
        return -1;
    return value_parse_json(arena, path, buf_text(&text), text.length, root, err);
}

/* Of the request, which is ours and holds the source. */
static struct cuda_job cached_job(const struct asked *asked, int flags)
{
    return (struct cuda_job){
        .compiler.library = asked->interpreter.path,
        .arch = asked->arch,
        .unit = open("request.json", O_RDONLY | O_CLOEXEC),
        .cubin = open("kernel.cubin", flags | O_CLOEXEC, 0600),
        .log = open("kernel.json", flags | O_CLOEXEC, 0600),
        .cache = *asked->toolkit != '\0' && *asked->cache != '\0' ? asked->cache : NULL,
        .toolkit = asked->toolkit};
}

static void close_job(const struct cuda_job *job)
{
    close(job->unit);
    close(job->cubin);
    close(job->log);
}

static bool answer_from_cache(const struct asked *asked)
{
    const struct cuda_job job = cached_job(asked, O_RDWR | O_CREAT | O_TRUNC);
    bool known = cubin_cache_answer(&job);
    close_job(&job);
    return known;
}

static void keep(const struct asked *asked)
{
    const struct cuda_job job = cached_job(asked, O_RDONLY);
    cubin_cache_keep(&job);
    close_job(&job);
}

static int compile_with(struct arena *arena, const struct asked *asked, struct err *err)
{
    struct value *request, *report;
    uint64_t begun = clock_now_ns();
    int status = asked->served ? ask_server(asked->arch, err) : 1;
    if (status > 0)
        status = run_alone(arena, asked, err);
    if (status != 0 || read_json(arena, "request.json", JOB_UNIT_MAX, &request, err) != 0 ||
        read_json(arena, "scratch/report.json", REPORT_MOST, &report, err) != 0)
        return -1;
    struct packing packing = {.arena = arena,
                              .arch = asked->arch,
                              .launches = value_get(request, "launches"),
                              .report = report,
                              .ms = (double)(clock_now_ns() - begun) / 1e6};
    buf_init(&packing.pack, PACK_MOST);
    buf_init(&packing.cubins, PACK_MOST);
    buf_init(&packing.log, REPORT_MOST);
    status = pack(&packing, err);
    buf_free(&packing.pack);
    buf_free(&packing.cubins);
    buf_free(&packing.log);
    return status;
}

int triton_compile_main(int argc, char **argv)
{
    struct err err = {0}, ignored;
    if (argc != 8) {
        fprintf(stderr, "cuda-compile --triton: expected PYTHON PREFIX BASE SCRIPT ARCH CACHE "
                        "TOOLKIT served|alone\n");
        return err_exit_code(ERR_USAGE);
    }
    ARENA_LOCAL(arena);
    const struct asked asked = {
        .interpreter = {.path = argv[0], .prefix = argv[1], .base_prefix = argv[2]},
        .script = argv[3],
        .arch = argv[4],
        .cache = argv[5],
        .toolkit = argv[6],
        .served = strcmp(argv[7], "served") == 0};
    if (answer_from_cache(&asked))
        return 0;
    if (mkdir("scratch", 0700) != 0) {
        perror("scratch");
        return 1;
    }
    int status = compile_with(arena, &asked, &err);
    (void)(file_remove_tree("scratch", &ignored) == 0);
    if (status != 0) {
        fprintf(stderr, "cuda-compile: %s\n", err.message);
        return 1;
    }
    keep(&asked);
    return 0;
}

/* Lines about the source, and what follows them; else how the compile ended. */
void triton_diagnostics(const char *name, const char *text, size_t length, struct buf *out)
{
    static const char own[] = "candidate.py:", ours[] = "cuda-compile: ";
    const char *end = text + length;
    bool told = false, shown = false;
    for (const char *at = text, *next; at < end && out->length < 3000; at = next) {
        const char *stop = (const char *)memchr(at, '\n', (size_t)(end - at));
        next = stop != NULL ? stop + 1 : end;
        size_t bytes = (size_t)(next - at);
        bool about = bytes > sizeof own && memcmp(at, own, sizeof own - 1) == 0;
        bool end_of_it = bytes > sizeof ours && memcmp(at, ours, sizeof ours - 1) == 0;
        shown = about || (end_of_it && !told) || (shown && *at == ' ');
        if (about)
            buf_addf(out, "%s:%.*s", name, (int)(bytes - sizeof own + 1), at + sizeof own - 1);
        else if (shown)
            buf_add(out, at, bytes);
        told = told || about;
    }
}
