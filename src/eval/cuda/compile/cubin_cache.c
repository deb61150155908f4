#include "eval/cuda/compile/cubin_cache.h"

#include "base/file.h"
#include "base/kept.h"
#include "base/mem.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is kept: the length of the cubin, the cubin, kernel.json. */

enum { KEY_MOST = JOB_UNIT_MAX + (64 << 10) };

/* Options as they are, the entries that had to be there, the text that was compiled. */
static bool make_key(const struct cuda_job *job, struct buf *key)
{
    const char *options[JOB_OPTIONS_MAX * 2];
    struct arena *arena = arena_new_sized(4096);
    struct cuda_job plain = *job;
    plain.pch = NULL; /* says where headers come from, not what they say */
    size_t count = cuda_job_options(arena, &plain, true, options);
    buf_addf(key, "%s%c%s%c", job->toolkit, '\0', job->compiler.library, '\0');
    for (size_t i = 0; i < count; i++)
        buf_add(key, options[i], strlen(options[i]) + 1);
    for (size_t i = 0; i < job->entry_count; i++)
        buf_addf(key, "entry %s%c", job->entries[i], '\0');
    buf_add_char(key, '\0'); /* no option is empty: the text begins */
    arena_free(arena);
    char *unit = (char *)mem_alloc(JOB_UNIT_MAX + 1);
    ssize_t got = file_read_at(job->unit, unit, JOB_UNIT_MAX + 1, 0);
    size_t length = got > 0 ? (size_t)got : 0;
    buf_add(key, unit, length);
    mem_free(unit);
    return length > 0 && length <= JOB_UNIT_MAX && key->dropped == 0;
}

void cubin_cache_empty(int fd)
{
    if (ftruncate(fd, 0) == 0)
        (void)lseek(fd, 0, SEEK_SET);
}

/* kernel.json with "cached": true. */
static void put_log(const char *log, size_t length, struct buf *out)
{
    bool object = length > 2 && log[0] == '{' && log[1] == '"';
    if (object)
        buf_add_text(out, "{\"cached\":true,");
    buf_add(out, log + object, length - object);
}

static bool hand_out(const struct cuda_job *job, const struct buf *found)
{
    uint64_t cubin_bytes;
    const char *text = buf_text(found);
    BUF_LOCAL(log, KEPT_FILE_BYTES + 64);
    if (found->length < sizeof cubin_bytes)
        return false;
    memcpy(&cubin_bytes, text, sizeof cubin_bytes);
    size_t rest = found->length - sizeof cubin_bytes;
    if (cubin_bytes > rest)
        return false;
    const char *cubin = text + sizeof cubin_bytes;
    put_log(cubin + cubin_bytes, rest - cubin_bytes, &log);
    bool fine = file_write_all(job->cubin, cubin, cubin_bytes) == 0 &&
                file_write_all(job->log, buf_text(&log), log.length) == 0;
    if (!fine) {
        cubin_cache_empty(job->cubin);
        cubin_cache_empty(job->log);
    }
    return fine;
}

static bool is_named(const struct cuda_job *job, struct buf *key)
{
    return job->cache != NULL && job->toolkit != NULL && make_key(job, key);
}

bool cubin_cache_answer(const struct cuda_job *job)
{
    BUF_LOCAL(key, KEY_MOST);
    BUF_LOCAL(found, KEPT_FILE_BYTES);
    return is_named(job, &key) && kept_find(job->cache, &key, &found) && hand_out(job, &found);
}

static size_t size_of(int fd)
{
    struct stat status;
    bool fine = fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size < KEPT_FILE_BYTES;
    return fine ? (size_t)status.st_size : 0;
}

void cubin_cache_keep(const struct cuda_job *job)
{
    BUF_LOCAL(key, KEY_MOST);
    uint64_t cubin_bytes = size_of(job->cubin);
    size_t log_bytes = size_of(job->log), length = sizeof cubin_bytes + cubin_bytes + log_bytes;
    if (!is_named(job, &key) || cubin_bytes == 0 || log_bytes == 0 || length > KEPT_FILE_BYTES)
        return;
    MEM_LOCAL char *bytes = (char *)mem_alloc(length);
    char *at = bytes + sizeof cubin_bytes;
    memcpy(bytes, &cubin_bytes, sizeof cubin_bytes);
    if (file_read_at(job->cubin, at, cubin_bytes, 0) == (ssize_t)cubin_bytes &&
        file_read_at(job->log, at + cubin_bytes, log_bytes, 0) == (ssize_t)log_bytes)
        kept_put(job->cache, &key, bytes, length);
}
