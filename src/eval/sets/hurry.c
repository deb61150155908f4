/* eval/sets/hurry: fewer sets of the main shape where all that is asked for is to be done by some
 * time. */
#include "base/clock.h"
#include "eval/sets/session.h"

int session_hurry(struct session *session, struct err *err)
{
    enum { SHARE = 8 };
    uint64_t started = clock_now_ns(), within_ms = session->options.within_ms;
    if (within_ms == 0 || session->pool[0].expected || session->backend->device)
        return 0;
    if (set_expect(session, &session->pool[0], err) != 0)
        return -1;
    size_t count = session->pool_count;
    double all_ns = (double)(clock_now_ns() - started) * (double)count;
    double most_ns = (double)within_ms * 1e6 / SHARE;
    if (all_ns > most_ns)
        count = (size_t)((double)count * most_ns / all_ns);
    count = count < POOL_LEAST ? POOL_LEAST : count;
    while (session->pool_count > count)
        set_free(&session->pool[--session->pool_count]);
    return 0;
}
