/* What the tests of the runner, of profiles and of the sanitizer share: a problem of one input and
 * one output with its region, on a lane of the fake driver, where this program is the runner. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/run/host.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKES TEST_BINARY_DIR "/tests/fakes/"

enum { SCENE_HANG_MS = 120000 }; /* of a call that ends by itself, however late */

struct scene {
    char folder[64];
    struct arena *arena;
    struct problem *problem;
    struct candidate *candidate;
    struct lane_facts lane;
    struct layout layout;
    struct region region;
    struct call call; /* warm and not timed: a test's own choice */
    struct subject *subject;
    struct names tune;
    const char *artifact;
    struct err err;
};

static inline const char *scene_write(struct scene *scene, const char *name, const char *text)
{
    const char *path = arena_printf(scene->arena, "%s/%s", scene->folder, name);
    assert_int_equal(file_write(path, text, strlen(text), &scene->err), 0);
    return path;
}

/* The least that is a cubin: an ELF file with a section of this name and 16 bytes, and a symbol of
 * this name that is defined elsewhere; "": it has none that matters. */
static inline const char *scene_cubin(struct scene *scene, const char *section, const char *symbol)
{
    enum { TEXTS = 64 };
    const char *path = arena_printf(scene->arena, "%s/%s%s.cubin", scene->folder, section, symbol);
    struct {
        Elf64_Ehdr header;
        Elf64_Shdr sections[4];
        Elf64_Sym symbols[2];
        char texts[TEXTS];
    } file = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_shoff = sizeof(Elf64_Ehdr),
                         .e_shnum = 4,
                         .e_shstrndx = 1},
              .symbols = {{0}, {.st_name = 32, .st_shndx = SHN_UNDEF}}};
    file.sections[1] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = (size_t)(file.texts - (char *)&file), .sh_size = TEXTS};
    file.sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                    .sh_link = 1,
                                    .sh_offset = (size_t)((char *)file.symbols - (char *)&file),
                                    .sh_size = sizeof file.symbols};
    file.sections[3] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_name = 1, .sh_size = 16};
    snprintf(file.texts + 1, 31, "%s", section);
    snprintf(file.texts + 32, 32, "%s", symbol);
    assert_int_equal(file_write(path, (const char *)&file, sizeof file, &scene->err), 0);
    return path;
}

static inline void scene_begin(struct scene *scene)
{
    static const char spec[] = "name: fake\ndims: {N: 1000}\n"
                               "inputs: {X: {shape: [N], dtype: float32}}\n"
                               "outputs: {Y: {shape: [N], dtype: float32}}\n"
                               "flops: N\nbytes: 8 * N\n"
                               "reference: ref.py\ncheck: [{N: 1}]\n";
    memset(scene, 0, sizeof *scene);
    strcpy(scene->folder, "/tmp/twagent-cuda-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    scene->arena = arena_new();
    scene_write(scene, "spec.yaml", spec);
    scene_write(scene, "ref.py", "def reference(X):\n    return X\n");
    scene->artifact = scene_cubin(scene, "", "");
    if (problem_load(scene->folder, &scene->problem, &scene->err) != 0)
        fail_msg("%s", scene->err.message);
    scene->lane = (struct lane_facts){.gpu = true, .core_count = 1};
    assert_int_equal(names_set(&scene->lane.facts, "shared_bytes_optin", 232448, NULL), 0);
    layout_align(256);
    assert_int_equal(layout_make(scene->problem, &scene->problem->shapes[0], NULL, NULL, 256,
                                 &scene->layout, &scene->err),
                     0);
    assert_int_equal(region_open(2 * scene->layout.inputs_bytes, scene->layout.outputs_bytes,
                                 &scene->region, &scene->err),
                     0);
    call_make(&scene->layout, scene->layout.inputs_bytes, SCENE_HANG_MS, &scene->call);
}

/* The candidate of these lines of YAML under `launch`, in place of the one before. */
static inline struct program scene_program(struct scene *scene, const char *launches)
{
    struct buf text;
    buf_init(&text, 4096);
    buf_addf(&text, "/*---\nlaunch:\n%s---*/\n", launches);
    candidate_free(scene->candidate);
    scene->candidate = NULL;
    if (scene->subject != NULL)
        scene->subject->ops->close(scene->subject);
    scene->subject = NULL;
    int status = candidate_parse(scene->problem, "k.cu", buf_text(&text), text.length,
                                 &scene->candidate, &scene->err);
    buf_free(&text);
    assert_int_equal(status, 0);
    return (struct program){scene->problem, scene->candidate, &scene->tune, NULL};
}

static inline int scene_open(struct scene *scene, const char *launches)
{
    const struct program program = scene_program(scene, launches);
    return backend_cuda.open(&scene->lane, &scene->region, scene->artifact, &program, false,
                             &scene->subject, &scene->err);
}

/* A launch of one kernel of the fake driver's. */
static inline const char *scene_launch(struct scene *scene, const char *entry)
{
    return arena_printf(
        scene->arena, "  - {entry: %s, grid: \"ceil_div(N, 128)\", block: 128, args: [X, Y, N]}\n",
        entry);
}

static inline void scene_end(struct scene *scene)
{
    struct err err;
    if (scene->subject != NULL)
        scene->subject->ops->close(scene->subject);
    candidate_free(scene->candidate);
    gpu_host_discard();
    region_close(&scene->region);
    problem_free(scene->problem);
    assert_int_equal(file_remove_tree(scene->folder, &err), 0);
    arena_free(scene->arena);
}

/* True: this process was a runner, and *code is what it ends with. */
static inline bool scene_internal(int argc, char **argv, int *code)
{
    if (argc >= 3 && strcmp(argv[1], "runner") == 0) {
        *code = cuda_runner_main(argc - 3, argv + 3);
        return true;
    }
    char *self = file_self_path();
    setenv("TWAGENT_SELF", self, 1);
    setenv("TWAGENT_CUDA_DRIVER", FAKES "libfake_cuda.so", 1);
    mem_free(self);
    return false;
}
