/* Which passages a prompt for ideas would hold, as the retrieving agent chooses them.
 *   bench_prompts FOLDER LIMITERS TOKENS     a line each: problem \t backend \t limiter \t
 * evidence; prints as bench_retrieval answers does */
#include "agents/retrieve/retrieve.h"
#include "eval/problem/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const struct err *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void answer(struct rag *rag, char *line, size_t tokens)
{
    char *fields[4] = {NULL};
    struct err err;
    struct arena *arena = arena_new();
    struct problem *problem;
    struct retrieve_plan plan;
    struct rag_passage *items;
    size_t count;
    for (int i = 0; i < 4; i++)
        fields[i] = strsep(&line, "\t");
    if (fields[3] == NULL || problem_load(fields[0], &problem, &err) != 0)
        fail(&err);
    const struct retrieve_about about = {
        .problem = problem, .backend = fields[1], .limiter = fields[2], .evidence = fields[3]};
    retrieve_plan(arena, PROMPT_IDEAS, &about, &plan);
    if (retrieve_passages(rag, fields[1], &plan, tokens, arena, &items, &count, &err) != 0)
        fail(&err);
    for (size_t i = 0; i < count; i++)
        printf("%s\t%s\t%s\n", items[i].source, items[i].path, items[i].title);
    printf("\n");
    problem_free(problem);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    char line[4096];
    struct rag *rag;
    struct err err = {0};
    FILE *file = argc == 4 ? fopen(argv[2], "r") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s FOLDER LIMITERS TOKENS\n", argv[0]);
        return 2;
    }
    if (rag_open(argv[1], false, &rag, &err) != 0)
        fail(&err);
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        answer(rag, line, strtoul(argv[3], NULL, 10));
    }
    fclose(file);
    rag_close(rag);
    return 0;
}
