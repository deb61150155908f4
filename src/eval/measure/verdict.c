/* eval/measure/verdict: how an evaluation gets its verdict, and its notes. */
#include "eval/measure/measure.h"

#include <string.h>

void bench_note(struct bench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (bench->notes.length > 0)
        buf_add_char(&bench->notes, '\n');
    buf_addv(&bench->notes, format, arguments);
    va_end(arguments);
}

void bench_reject(struct bench *bench, enum verdict verdict, const char *reason,
                  const char *details)
{
    struct evaluation *evaluation = bench->evaluation;
    if (bench->ended)
        return; /* the first reason is the one that tells */
    bench->ended = true;
    evaluation->verdict = verdict;
    evaluation->stage = bench->stage;
    evaluation->reason = reason;
    evaluation->details = details;
    evaluation->finding = FINDING_NONE;
    evaluation->noise = "";
}

void bench_close(struct bench *bench)
{
    if (bench->subject != NULL)
        bench->subject->ops->close(bench->subject);
    if (bench->twin != NULL)
        bench->twin->ops->close(bench->twin);
    bench->subject = bench->twin = NULL;
    bench->seen = 0;
    bench->warm = 0;
}

/* What a runner does before it dies is its candidate's doing; all else is ours. So is SIGKILL: the
 * sandbox does not let a candidate send it, so that it came from outside, or from a machine out of
 * memory. subject.h fixes the message. */
int bench_failed(struct bench *bench, struct err *err)
{
    static const char outside[] = "killed by SIGKILL", loading[] = "while it was loaded: ";
    const char *how = err->message;
    if (strncmp(how, loading, sizeof loading - 1) == 0)
        how += sizeof loading - 1;
    switch (err->code) {
    case ERR_CHILD:
        if (strncmp(how, outside, sizeof outside - 1) == 0 && !bench->ended)
            bench->evaluation->ours = true;
        /* fall through */
    case ERR_TIMEOUT:
    case ERR_PROTOCOL:
        bench_close(bench);
        bench_reject(bench, VERDICT_FAILED, arena_strdup(bench->arena, err->message), "");
        return 0;
    case ERR_ROOM:
        if (!bench->ended && bench->request->candidate->tune_count > 0) {
            bench->ended = true;
            evaluation_leave_out(bench->evaluation, bench->arena, err->message);
        }
        /* fall through */
    case ERR_LIMIT:
        bench_close(bench);
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, err->message), "");
        return 0;
    default:
        return -1;
    }
}
