/* eval/measure/low_bits_terms: does a win see the lowest bits of each part of its sums' terms? A
 * loss in an eighth of the terms moves the slope over all of them by an eighth. So each eighth is
 * asked about by itself, side by side and every eighth term, on outputs that no kernel can tell
 * from others. Sampled indices do: sixteen questions cost the definition as much as one. */
#include "eval/measure/low_bits.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <math.h>

/* Of the lowest 6 bits a loss to 17 bits, rounded, leaves a half, to 18 bits an eighth, and so does
 * one to 16 bits in an eighth of these terms; 20 bits less than 0.02, cut off 0.03. Fewer tell 18
 * and 19 bits, where outputs are enough: a bit less has twice the standard error. */
static const struct question {
    int bits;
    double apart;
} questions[] = {{17, 0.1}, {18, 0.25}, {19, 0.4}};
enum { QUESTIONS = sizeof questions / sizeof questions[0], MANTISSA = 23, FEWER = 2 };
static const double error_most = 0.1;

struct sampled {
    struct bench *bench;
    struct set *part;
    float *outputs[OUTPUTS_MAX]; /* what the kernel left there; NULL: of another type */
    double *terms[OUTPUTS_MAX];  /* what the eighth that is asked about adds */
};

static void measure(const struct sampled *s, size_t output, void *const *results, const float *got,
                    struct response *response)
{
    const struct placed *placed = &s->part->shape->layout.outputs[output];
    response_of_part(&s->bench->session->problem->outputs[output], placed->extents,
                     placed->elements, s->part->exact[output], (const double *)results[output],
                     s->terms[output], got, response);
}

/* As of all terms (low_bits.c): the definition in float32 loses them itself, or they are its own
 * errors. 1: the kernel; 0; -1 with *err. */
static int confirm(const struct sampled *s, const struct terms_lost *lost,
                   const struct question *question, void *const *results, struct err *err)
{
    static const double grown = 8.0;
    struct session *session = s->bench->session;
    void *honest[OUTPUTS_MAX], *coarser[OUTPUTS_MAX];
    struct response own;
    if (session_compute_honest(session, s->part, honest, err) != 0)
        return -1;
    measure(s, lost->output, results, (const float *)honest[lost->output], &own);
    if (fabs(own.share - 1.0) > question->apart / 2.0 + 4.0 * own.error)
        return 0;
    int status = session_coarsen(session, s->part, lost->input, question->bits - FEWER,
                                 &lost->terms, coarser, err);
    if (status <= 0)
        return status;
    measure(s, lost->output, coarser, s->outputs[lost->output], &own);
    return own.size >= grown * lost->response.size;
}

/* One eighth, so many bits. */
static int ask_part(const struct sampled *s, const struct question *question,
                    struct terms_lost *lost, struct err *err)
{
    struct session *session = s->bench->session;
    void *results[OUTPUTS_MAX];
    int status =
        session_coarsen(session, s->part, lost->input, question->bits, &lost->terms, results, err);
    bool found = false;
    for (size_t i = 0; i < session->problem->output_count && status > 0 && !found; i++) {
        if (s->outputs[i] == NULL)
            continue;
        struct response *response = &lost->response;
        measure(s, i, results, s->outputs[i], response);
        lost->output = i;
        lost->bits = MANTISSA - question->bits;
        found = response->error <= error_most &&
                fabs(response->share - 1.0) > question->apart + 4.0 * response->error;
    }
    return found ? confirm(s, lost, question, results, err) : status < 0 ? -1 : 0;
}

/* A champion is asked all, another one unless the definition is slow: mostly all take 0.1 s. */
static bool is_late(const struct bench *bench, uint64_t started_ns)
{
    static const uint64_t most_ns = 8000000000; /* not even where all cores are busy */
    return bench->request->effort != EFFORT_FINAL && clock_now_ns() - started_ns > most_ns;
}

/* What these terms add to each output. */
static int know_terms(struct sampled *s, const struct terms_lost *lost, struct err *err)
{
    struct session *session = s->bench->session;
    void *without[OUTPUTS_MAX];
    int status = session_coarsen(session, s->part, lost->input, 0, &lost->terms, without, err);
    for (size_t i = 0; i < session->problem->output_count && status > 0; i++) {
        size_t count = s->part->shape->layout.outputs[i].elements;
        if (s->terms[i] == NULL)
            s->terms[i] = (double *)mem_array(count + 1, sizeof(double));
        for (size_t k = 0; k < count; k++)
            s->terms[i][k] = s->part->exact[i][k] - ((const double *)without[i])[k];
    }
    return status;
}

/* One eighth, of fewer and fewer bits for as long as it can be told. */
static int ask_place(struct sampled *s, struct terms_lost *lost, struct err *err)
{
    int status = know_terms(s, lost, err);
    if (status <= 0)
        return status;
    status = 0;
    lost->response.error = 0.0;
    for (size_t i = 0; i < QUESTIONS && status == 0 && 2.0 * lost->response.error <= error_most;
         i++)
        status = ask_part(s, &questions[i], lost, err);
    return status;
}

/* From another eighth on each time. */
static int ask_all(struct sampled *s, struct terms_lost *lost, struct err *err)
{
    enum { PLACES = 2 * TERMS_PARTS };
    struct session *session = s->bench->session;
    const size_t places = PLACES * session->problem->input_count;
    const size_t first = (size_t)random_below(&session->random, places);
    const uint64_t started = clock_now_ns();
    int status = 0;
    for (size_t i = 0; i < places && status == 0 && !is_late(s->bench, started); i++) {
        size_t at = (first + i) % places;
        lost->input = at / PLACES;
        if (!session_terms(session, s->part, lost->input, &lost->terms))
            continue;
        lost->terms.apart = at / TERMS_PARTS % 2 != 0;
        lost->terms.part = at % TERMS_PARTS;
        status = ask_place(s, lost, err);
    }
    return status;
}

static void sample_outputs(struct sampled *s, const struct kept *kept, const struct view *view)
{
    const struct problem *problem = s->bench->session->problem;
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct placed *placed = &view->small.layout.outputs[i];
        if (kept->outputs[i] == NULL)
            continue;
        s->outputs[i] = (float *)mem_array(placed->elements + 1, sizeof(float));
        maps_gather(problem, &problem->outputs[i], &view->maps, placed->extents, sizeof(float),
                    kept->outputs[i], s->outputs[i]);
    }
}

int low_bits_ask_terms(struct bench *bench, const struct kept *kept, struct terms_lost *lost,
                       struct err *err)
{
    struct sampled s = {.bench = bench};
    struct set sample;
    int status = 0;
    uint64_t begun = timeline_begin();
    *lost = (struct terms_lost){0};
    if (view_sample(bench->session, kept->set, &sample)) {
        s.part = &sample.view->part;
        sample_outputs(&s, kept, sample.view);
        status = ask_all(&s, lost, err);
    }
    for (size_t i = 0; i < OUTPUTS_MAX; i++) {
        mem_free(s.outputs[i]);
        mem_free(s.terms[i]);
    }
    set_free(&sample);
    timeline_end("low_bits.terms", begun);
    return status;
}
