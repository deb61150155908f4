/* eval/measure/rival: a second kernel, timed in turns with the candidate on the same inputs: which
 * of two is the faster is not asked of a baseline, whose moments differ. It has a runner of its
 * own, checked calls, and no set twice, as the candidate has. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/measure/session_private.h"

#include <string.h>

/* The bench of a rival with what it borrows from. */
struct rival_bench {
    struct bench bench;
    struct measure_request request;
    struct evaluation evaluation;
    unsigned generation; /* of the other bench, to which its runner belongs */
};

static struct rival_bench *of(struct bench *bench)
{
    return (struct rival_bench *)bench->rival;
}

static int build_rival(struct bench *bench, struct rival_bench *rival, struct err *err)
{
    struct session *session = bench->session;
    struct build build = {0};
    const struct rival_kernel *asked = bench->request->rival;
    const char *folder = arena_printf(bench->arena, "%s/rival", session->options.folder);
    if (file_make_dirs(folder, err) != 0 ||
        session->backend->build(bench->arena, session->lane, session->problem, asked->candidate,
                                asked->tune, NULL, BUILD_FAST, folder, &build, err) != 0 ||
        build_run(&build.spec, err) != 0)
        return err_wrap(err, "the rival");
    rival->request.artifact = build.artifact;
    return 0;
}

int rival_open(struct bench *bench, struct err *err)
{
    const struct rival_kernel *asked = bench->request->rival;
    struct rival_bench *rival = MEM_NEW(struct rival_bench);
    rival->request = *bench->request;
    rival->request.candidate = asked->candidate;
    rival->request.tune = asked->tune;
    rival->request.rival = NULL;
    rival->bench = (struct bench){.session = bench->session,
                                  .request = &rival->request,
                                  .arena = bench->arena,
                                  .evaluation = &rival->evaluation,
                                  .region = &bench->session->region,
                                  .follows = true,
                                  .stage = STAGE_TIME};
    buf_init(&rival->bench.notes, 1024);
    bench->rival = &rival->bench;
    return build_rival(bench, rival, err) != 0 || bench_choose_region(bench->rival, err) != 0 ? -1
                                                                                              : 0;
}

/* What ends it is no verdict on the candidate: who asked has to know. */
static int ended(const struct bench *rival, struct err *err)
{
    return err_set(err, ERR_USAGE, "the rival: %s", rival->evaluation->reason);
}

int rival_call(struct bench *bench, const struct set *set, struct outcome *outcome, struct err *err)
{
    struct bench *rival = bench->rival;
    struct arrangement arrangement;
    rival->slot = bench->slot;
    rival->shift = bench->shift;
    if (bench_arrange(rival, set->shape, &arrangement, err) != 0)
        return -1;
    if (call_run(rival, rival->subject, &arrangement, true, outcome, err) != 0)
        return bench_failed(rival, err) != 0 ? -1 : ended(rival, err);
    bench_saw(rival, set);
    call_verify(rival, set, &arrangement);
    return rival->ended ? ended(rival, err) : 0;
}

/* It begins with the sets that warmed the bench's runner, as a twin does. */
int rival_ensure(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct bench *rival = bench->rival;
    struct outcome outcome;
    if (rival->subject != NULL && of(bench)->generation == bench->generation)
        return 0;
    if (bench_open(rival, err) != 0)
        return -1;
    if (rival->ended)
        return ended(rival, err);
    of(bench)->generation = bench->generation;
    size_t slot = 0;
    for (size_t i = 0; i < session->pool_count && slot < session->slots; i++) {
        struct set *set = &session->pool[i];
        if ((bench->seen >> i & 1) == 0 || set->unfit)
            continue;
        rival->slot = slot++;
        if (bench_check(rival, set, &outcome, err) != 0)
            return -1;
        if (rival->ended)
            return ended(rival, err);
    }
    return 0;
}

void rival_close(struct bench *bench)
{
    if (bench->rival == NULL)
        return;
    bench_close(bench->rival);
    buf_free(&bench->rival->notes);
    mem_free(bench->rival);
    bench->rival = NULL;
}
