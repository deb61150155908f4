/* Latency and quality of the index of documents, in one process.
 *   bench_retrieval latency FOLDER QUERIES ROUNDS     one query a line; prints figures
 *   bench_retrieval answers FOLDER QUERIES            per query the passages found, then a group
 *                                                     separator
 *   bench_retrieval passages FOLDER                   every passage
 * A passage is source, path, title and text, unit separators between, a record separator behind (no
 * text holds control characters). */
#include "agents/retrieve/rag/documents.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE_MOST = 4096 };

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static char **read_lines(const char *path, size_t *count)
{
    char line[LINE_MOST], **lines = NULL;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        lines = mem_resize(lines, (*count + 1) * sizeof *lines);
        lines[(*count)++] = mem_strdup(line);
    }
    fclose(file);
    return lines;
}

static size_t find(struct rag *rag, const char *text, struct arena *arena,
                   struct rag_passage **items)
{
    struct rag_query query = {.text = text, .most = 10};
    struct err err;
    size_t count;
    if (rag_search(rag, &query, arena, items, &count, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return count;
}

/* Of this process now, in KiB: "VmRSS" and its part without the file, "RssAnon". */
static long status_kib(const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name) + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return value;
}

/* Of this thread: what a query takes where nobody else wants the core. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void latency(struct rag *rag, char **lines, size_t count, size_t rounds)
{
    uint64_t *times = mem_array(count * rounds + 1, sizeof *times);
    uint64_t *cpu = mem_array(count * rounds + 1, sizeof *cpu);
    uint64_t cold = 0;
    size_t done = 0;
    for (size_t round = 0; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            struct arena *arena = arena_new();
            struct rag_passage *items;
            uint64_t start_cpu = cpu_ns(), start = clock_now_ns();
            find(rag, lines[i], arena, &items);
            uint64_t took = clock_now_ns() - start, took_cpu = cpu_ns() - start_cpu;
            if (round == 0) /* the first round touches the map's pages */
                cold = took > cold ? took : cold;
            else
                times[done] = took, cpu[done++] = took_cpu;
            arena_free(arena);
        }
    }
    qsort(times, done, sizeof *times, by_time);
    qsort(cpu, done, sizeof *cpu, by_time);
    printf("queries %zu\n", done);
    printf("median_ms %.3f\n", (double)times[done / 2] / 1e6);
    printf("p99_ms %.3f\n", (double)times[done * 99 / 100] / 1e6);
    printf("cpu_p99_ms %.3f\n", (double)cpu[done * 99 / 100] / 1e6);
    printf("most_ms %.3f\n", (double)times[done - 1] / 1e6);
    printf("most_first_round_ms %.3f\n", (double)cold / 1e6);
    printf("resident_mib %.1f\n", (double)status_kib("VmRSS:") / 1024);
    printf("resident_without_map_mib %.1f\n", (double)status_kib("RssAnon:") / 1024);
    mem_free(times);
    mem_free(cpu);
}

static void write_passage(const struct rag_passage *passage)
{
    printf("%s\x1f%s\x1f%s\x1f%s\x1e", passage->source, passage->path, passage->title,
           passage->text);
}

static void answers(struct rag *rag, char **lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena *arena = arena_new();
        struct rag_passage *items;
        size_t found = find(rag, lines[i], arena, &items);
        for (size_t k = 0; k < found; k++)
            write_passage(&items[k]);
        printf("\x1d");
        arena_free(arena);
    }
}

static void passages(struct rag *rag)
{
    struct arena *arena = arena_new();
    struct rag_document *documents;
    struct err err;
    size_t count;
    if (rag_documents(rag, arena, &documents, &count, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        struct arena *one = arena_new();
        struct rag_passage *items;
        size_t all;
        if (rag_document_passages(rag, documents[i].source, one, &items, &all, &err) != 0) {
            fprintf(stderr, "%s\n", err.message);
            exit(1);
        }
        for (size_t k = 0; k < all; k++)
            write_passage(&items[k]);
        arena_free(one);
    }
    arena_free(arena);
}

int main(int argc, char **argv)
{
    struct rag *rag;
    struct err err;
    size_t count = 0;
    bool dump = argc == 3 && strcmp(argv[1], "passages") == 0;
    if (argc < 4 && !dump) {
        fprintf(stderr, "usage: %s latency|answers FOLDER QUERIES [ROUNDS]\n", argv[0]);
        return 2;
    }
    if (rag_open(argv[2], false, &rag, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    if (dump) {
        passages(rag);
        rag_close(rag);
        return 0;
    }
    char **lines = read_lines(argv[3], &count);
    if (strcmp(argv[1], "latency") == 0)
        latency(rag, lines, count, argc > 4 ? strtoul(argv[4], NULL, 10) : 20);
    else
        answers(rag, lines, count);
    rag_close(rag);
    for (size_t i = 0; i < count; i++)
        mem_free(lines[i]);
    mem_free(lines);
    return 0;
}
