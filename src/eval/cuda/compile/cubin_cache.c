#include "eval/cuda/compile/cubin_cache.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A file: this, then the key, the cubin and kernel.json. */
struct head {
    char magic[8];
    uint64_t key_bytes, cubin_bytes, log_bytes;
    struct hash hash; /* of the three */
};
static const char magic[8] = "twcubin1";

enum { STALE_S = 3600, NAMES_MOST = 4096, KEY_MOST = JOB_UNIT_MAX + (64 << 10) };

struct place { /* of one key */
    struct buf key;
    char *shelf;
    char name[33];
};

/* ---- where ---- */

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

/* One of ours, that nobody else can write to. */
static bool is_private(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool place_open(const struct cuda_job *job, struct place *place)
{
    *place = (struct place){0};
    buf_init(&place->key, KEY_MOST);
    if (job->cache == NULL || job->toolkit == NULL || !make_key(job, &place->key))
        return false;
    hash_format(hash_bytes(place->key.data, place->key.length), place->name);
    const char shelf[] = {place->name[0], '\0'};
    place->shelf = file_join(job->cache, shelf);
    return true;
}

static void place_close(struct place *place)
{
    buf_free(&place->key);
    mem_free(place->shelf);
}

/* A descriptor of the shelf; -1: none that can be trusted. */
static int open_shelf(const struct place *place)
{
    struct stat status;
    int shelf = open(place->shelf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shelf >= 0 && (fstat(shelf, &status) != 0 || !is_private(&status))) {
        close(shelf);
        shelf = -1;
    }
    return shelf;
}

/* ---- one file ---- */

/* mem_free() it; NULL: not a whole file of ours, for whatever reason. */
static char *read_file(int fd, struct head *head)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_private(&status) ||
        status.st_size < (off_t)sizeof *head || status.st_size > CUBIN_FILE_BYTES)
        return NULL;
    size_t length = (size_t)status.st_size, rest = length - sizeof *head;
    char *bytes = (char *)mem_alloc(length);
    bool fine = file_read_at(fd, bytes, length, 0) == (ssize_t)length;
    memcpy(head, bytes, sizeof *head);
    fine = fine && memcmp(head->magic, magic, sizeof magic) == 0 && head->key_bytes <= rest &&
           head->cubin_bytes <= rest - head->key_bytes &&
           head->log_bytes == rest - head->key_bytes - head->cubin_bytes &&
           hash_compare(hash_bytes(bytes + sizeof *head, rest), head->hash) == 0;
    if (fine)
        return bytes;
    mem_free(bytes);
    return NULL;
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

static bool hand_out(const struct cuda_job *job, const struct head *head, const char *cubin)
{
    BUF_LOCAL(log, CUBIN_FILE_BYTES + 64);
    put_log(cubin + head->cubin_bytes, head->log_bytes, &log);
    bool fine = file_write_all(job->cubin, cubin, head->cubin_bytes) == 0 &&
                file_write_all(job->log, buf_text(&log), log.length) == 0;
    if (!fine) {
        cubin_cache_empty(job->cubin);
        cubin_cache_empty(job->log);
    }
    return fine;
}

static bool answer_from(int shelf, const struct place *place, const struct cuda_job *job)
{
    struct head head;
    int fd = openat(shelf, place->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    MEM_LOCAL char *bytes = read_file(fd, &head);
    bool fine = bytes != NULL && head.key_bytes == place->key.length &&
                memcmp(bytes + sizeof head, place->key.data, place->key.length) == 0;
    if (!fine)
        (void)unlinkat(shelf, place->name, 0);
    else if ((fine = hand_out(job, &head, bytes + sizeof head + head.key_bytes)))
        (void)futimens(fd, NULL); /* asked for now */
    close(fd);
    return fine;
}

bool cubin_cache_answer(const struct cuda_job *job)
{
    struct place place;
    bool fine = false;
    if (place_open(job, &place)) {
        int shelf = open_shelf(&place);
        fine = shelf >= 0 && answer_from(shelf, &place, job);
        if (shelf >= 0)
            close(shelf);
    }
    place_close(&place);
    return fine;
}

/* ---- keeping ---- */

struct kept {
    char name[64];
    struct timespec used;
    off_t bytes;
};

static int compare_kept(const void *a, const void *b)
{
    const struct kept *x = (const struct kept *)a, *y = (const struct kept *)b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Temporary files count, so that those of who died are not forgotten; they go after an hour. */
static size_t list_shelf(int shelf, struct kept *list, off_t *bytes)
{
    int copy = openat(shelf, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    size_t count = 0;
    if (folder == NULL && copy >= 0)
        close(copy);
    for (struct dirent *entry;
         folder != NULL && count < NAMES_MOST && (entry = readdir(folder)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof list->name ||
            fstatat(shelf, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (strchr(entry->d_name, '.') != NULL && status.st_mtime + STALE_S < time(NULL)) {
            (void)unlinkat(shelf, entry->d_name, 0);
            continue;
        }
        strcpy(list[count].name, entry->d_name);
        list[count].used = status.st_mtim;
        list[count++].bytes = status.st_size;
        *bytes += status.st_size;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* A sixteenth of the cache is looked through, whenever something was added to it. */
static void bound_shelf(int shelf)
{
    struct kept *list = (struct kept *)mem_array(NAMES_MOST, sizeof *list);
    off_t bytes = 0;
    size_t count = list_shelf(shelf, list, &bytes);
    if (count > CUBIN_SHELF_FILES || bytes > CUBIN_SHELF_BYTES)
        qsort(list, count, sizeof *list, compare_kept);
    for (size_t i = 0; i < count && (count - i > CUBIN_SHELF_FILES || bytes > CUBIN_SHELF_BYTES);
         i++) {
        (void)unlinkat(shelf, list[i].name, 0);
        bytes -= list[i].bytes;
    }
    mem_free(list);
}

/* No fsync: what a crash cuts off is found out when it is read. */
static void put(int shelf, const struct place *place, const char *bytes, size_t length)
{
    static _Atomic unsigned puts;
    char name[80];
    snprintf(name, sizeof name, "%.8s.%ld-%u", place->name, (long)getpid(), puts++);
    int fd = openat(shelf, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool fine = file_write_all(fd, bytes, length) == 0;
    fine = close(fd) == 0 && fine;
    if (!fine || renameat(shelf, name, shelf, place->name) != 0)
        (void)unlinkat(shelf, name, 0);
}

static size_t size_of(int fd)
{
    struct stat status;
    bool fine = fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size < CUBIN_FILE_BYTES;
    return fine ? (size_t)status.st_size : 0;
}

void cubin_cache_keep(const struct cuda_job *job)
{
    struct place place;
    struct err ignored;
    bool named = place_open(job, &place);
    struct head head = {.key_bytes = place.key.length,
                        .cubin_bytes = size_of(job->cubin),
                        .log_bytes = size_of(job->log)};
    size_t rest = head.key_bytes + head.cubin_bytes + head.log_bytes, length = sizeof head + rest;
    int shelf = -1;
    if (named && head.cubin_bytes > 0 && head.log_bytes > 0 && length <= CUBIN_FILE_BYTES &&
        file_make_dirs(place.shelf, &ignored) == 0)
        shelf = open_shelf(&place);
    if (shelf >= 0) {
        char *bytes = (char *)mem_alloc(length), *at = bytes + sizeof head + head.key_bytes;
        memcpy(head.magic, magic, sizeof magic);
        memcpy(bytes + sizeof head, place.key.data, place.key.length);
        if (file_read_at(job->cubin, at, head.cubin_bytes, 0) == (ssize_t)head.cubin_bytes &&
            file_read_at(job->log, at + head.cubin_bytes, head.log_bytes, 0) ==
                (ssize_t)head.log_bytes) {
            head.hash = hash_bytes(bytes + sizeof head, rest);
            memcpy(bytes, &head, sizeof head);
            put(shelf, &place, bytes, length);
            bound_shelf(shelf);
        }
        mem_free(bytes);
        close(shelf);
    }
    place_close(&place);
}
