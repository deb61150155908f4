/*            429                        its time has come
 *   OPEN --------> LIMITED or PARKED -----------------------> OPEN
 *    | failures in a row          an answer, of a probe or another
 *    +-------> BROKEN (one probe at a time) ------------------> OPEN
 *    |
 *    +-------> BLOCKED, for this process
 *
 * The kinds are facts of their own, and the state is the strongest: blocked, parked or limited,
 * broken, open. */
#include "agents/llm/gate.h"

#include "agents/llm/ask.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static const struct err no_err;

/* ---- being ---- */

static bool is_embedding(const struct model *model)
{
    return model->codec != NULL && model->codec->embeds;
}

/* Without what an address may hold of secrets: "user:password@" and "?key=". */
static char *name_of(const struct model *model)
{
    const char *url = model->base_url != NULL ? model->base_url : "";
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *path = host + strcspn(host, "/?#"), *at = host;
    for (const char *c = host; c < path; c++)
        if (*c == '@')
            at = c + 1;
    bool usual = model->key_variable == NULL || model->codec == NULL ||
                 strcmp(model->key_variable, model->codec->key_variable) == 0;
    struct buf text;
    buf_init(&text, 512);
    buf_addf(&text, "%s %.*s%.*s", is_embedding(model) ? model->codec->name : model->provider,
             (int)(host - url), url, (int)strcspn(at, "?#"), at);
    if (!usual)
        buf_addf(&text, " (%s)", model->key_variable);
    return buf_take(&text);
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

struct gate *gate_new(const struct model *model, const struct retry_policy *policy,
                      struct random *random, unsigned capacity)
{
    struct gate *gate = MEM_NEW(struct gate);
    gate->provider = mem_strdup(model->provider);
    gate->base_url = mem_strdup(text_or_empty(model->base_url));
    gate->key = mem_strdup(text_or_empty(model->key));
    gate->name = name_of(model);
    gate->embeds = is_embedding(model);
    gate->policy = policy;
    gate->random = random;
    gate->capacity = capacity;
    slots_init(&gate->slots, "requests", capacity);
    list_init(&gate->blocked_models);
    return gate;
}

void gate_free(struct gate *gate)
{
    for (struct link *link; (link = list_pop(&gate->blocked_models)) != NULL;) {
        struct blocked_model *model = container_of(link, struct blocked_model, link);
        mem_free(model->wire_name);
        mem_free(model->name);
        mem_free(model->model);
        mem_free(model);
    }
    mem_free(gate->provider);
    mem_free(gate->base_url);
    mem_free(gate->key);
    mem_free(gate->name);
    mem_free(gate);
}

bool gate_fits(const struct gate *gate, const struct model *model)
{
    return gate->embeds == is_embedding(model) && strcmp(gate->provider, model->provider) == 0 &&
           strcmp(gate->base_url, text_or_empty(model->base_url)) == 0 &&
           strcmp(gate->key, text_or_empty(model->key)) == 0;
}

/* ---- the state ---- */

static void say_opened(const struct gate *gate, enum gate_state before)
{
    static const char *const words[] = {[GATE_LIMITED] = "limited",
                                        [GATE_PARKED] = "parked",
                                        [GATE_BROKEN] = "paused",
                                        [GATE_BLOCKED] = "blocked"};
    uint64_t now = clock_wall_ms();
    log_event(before == GATE_LIMITED ? LOG_INFO : LOG_WARN, "provider.open", gate->name,
              "goes on, after %.1f s %s",
              (double)(now > gate->since_wall_ms ? now - gate->since_wall_ms : 0) / 1000,
              words[before]);
}

static void say_state(const struct gate *gate)
{
    char until[32];
    clock_format_wall(gate->until_wall_ms, until);
    const char *reason = gate->reason.message;
    switch (gate->state) {
    case GATE_LIMITED:
        log_event(LOG_INFO, "provider.limited", gate->name, "until %s: %s", until, reason);
        return;
    case GATE_PARKED:
        log_event(LOG_WARN, "provider.parked", gate->name,
                  "until %s, since it asks for more than %.0f s: %s", until,
                  (double)gate->policy->honour_ms / 1000, reason);
        return;
    case GATE_BROKEN:
        log_event(LOG_WARN, "provider.broken", gate->name,
                  "%d failures in a row; asked again at %s: %s", gate->failures, until, reason);
        return;
    case GATE_BLOCKED:
        log_event(LOG_ERROR, "provider.blocked", gate->name, "no more requests: %s", reason);
        return;
    default:
        return;
    }
}

/* One spell is over, another begins: each counts for its reason. */
static void note_cause(struct gate *gate, enum gate_state before)
{
    uint64_t now = clock_wall_ms();
    for (size_t i = 0; before != GATE_OPEN && i < gate->cause_count; i++) {
        struct cause *cause = &gate->causes[i];
        if (cause->until_wall_ms != 0)
            continue;
        cause->until_wall_ms = now;
        cause->total_ms += now > cause->began_wall_ms ? now - cause->began_wall_ms : 0;
    }
    if (gate->state == GATE_OPEN)
        return;
    struct cause *cause =
        cause_of(gate->causes, &gate->cause_count, gate->state, gate->reason.message);
    cause->times++;
    cause->began_wall_ms = now;
    cause->until_wall_ms = 0;
}

static enum gate_state state_of(const struct gate *gate)
{
    if (gate->blocked)
        return GATE_BLOCKED;
    if (gate->until_ns != 0)
        return gate->parked ? GATE_PARKED : GATE_LIMITED;
    return gate->broken ? GATE_BROKEN : GATE_OPEN;
}

/* Slots as the state has them. The one that gets in while it is broken is the probe. */
static void pump(struct gate *gate)
{
    if (gate->held || (gate->state != GATE_OPEN && gate->state != GATE_BROKEN)) {
        slots_resize(&gate->slots, 0);
        return;
    }
    if (gate->state == GATE_OPEN) {
        slots_resize(&gate->slots, gate->capacity);
        return;
    }
    unsigned used = gate->slots.used;
    bool due = gate->prober == NULL && clock_now_ns() >= gate->probe_ns;
    struct link *first = list_empty(&gate->slots.waiters) ? NULL : gate->slots.waiters.head.next;
    slots_resize(&gate->slots, due ? used + 1 : 0);
    if (!due || first == NULL || gate->slots.used == used)
        return;
    struct task *owner = container_of(first, struct slot, link)->owner;
    gate->prober = container_of(owner, struct ask, task);
    slots_resize(&gate->slots, 0);
}

void gate_update(struct gate *gate)
{
    if (gate->until_ns != 0 && clock_now_ns() >= gate->until_ns) {
        gate->until_ns = 0;
        gate->parked = false;
    }
    enum gate_state before = gate->state;
    gate->state = state_of(gate);
    if (gate->state != before && gate->state == GATE_OPEN)
        say_opened(gate, before);
    if (gate->state != before) {
        gate->since_wall_ms = clock_wall_ms();
        say_state(gate);
        note_cause(gate, before);
    }
    pump(gate);
}

/* Those that wait look anew at when it opens. */
static void wake_waiters(struct gate *gate)
{
    gate_update(gate);
    list_each (link, &gate->slots.waiters)
        task_wake(container_of(link, struct slot, link)->owner);
}

void gate_hold(struct gate *gate, bool held)
{
    gate->held = held;
    wake_waiters(gate);
}

bool gate_admits(struct gate *gate, const struct ask *ask)
{
    gate_update(gate);
    if (gate->held)
        return false;
    if (gate->state != GATE_BROKEN)
        return gate->state == GATE_OPEN;
    if (gate->prober == NULL && clock_now_ns() >= gate->probe_ns) {
        gate->prober = ask;
        pump(gate);
    }
    return gate->prober == ask;
}

bool gate_is_shut(const struct gate *gate, const struct ask *ask)
{
    if (gate->state == GATE_PARKED)
        return true;
    return gate->state == GATE_BROKEN &&
           (gate->prober != NULL ? gate->prober != ask : clock_now_ns() < gate->probe_ns);
}

static const uint64_t soon_ns = UINT64_C(15) * 1000000000; /* who is told to come back then waits */

bool gate_rests(const struct gate *gate, const struct ask *ask)
{
    bool probes = ask != NULL && gate->prober == ask;
    if (gate->state == GATE_LIMITED && gate->until_ns > clock_now_ns() + soon_ns)
        return true;
    return gate_is_shut(gate, ask) ||
           (gate->state == GATE_BROKEN && !probes && clock_now_ns() < gate->rest_ns);
}

uint64_t gate_opens_ns(const struct gate *gate)
{
    if (gate->state == GATE_LIMITED || gate->state == GATE_PARKED)
        return gate->until_ns;
    return gate->state == GATE_BROKEN && gate->prober == NULL ? gate->probe_ns : 0;
}

uint64_t gate_rested_ns(const struct gate *gate)
{
    uint64_t opens_ns = gate_opens_ns(gate);
    if (gate->state == GATE_LIMITED)
        return opens_ns > soon_ns ? opens_ns - soon_ns : 1;
    return gate->state == GATE_BROKEN && opens_ns != 0 && gate->rest_ns > opens_ns ? gate->rest_ns
                                                                                   : opens_ns;
}

/* ---- what becomes of requests ---- */

static void set_probe(struct gate *gate)
{
    uint64_t delay_ms = retry_probe_ms(gate->policy, gate->probes, gate->random);
    gate->probe_ns = clock_now_ns() + delay_ms * 1000000;
    gate->until_wall_ms = clock_wall_ms() + delay_ms;
}

static void mend(struct gate *gate)
{
    gate->failures = gate->probes = 0;
    gate->rest_ns = 0;
    gate->broken = false;
    gate->prober = NULL;
}

void gate_succeeded(struct gate *gate)
{
    mend(gate);
    gate_update(gate);
}

void gate_failed(struct gate *gate, const struct ask *ask, uint64_t lost_ms,
                 const struct err *reason)
{
    enum { REST_TIMES = 60 }; /* so little of its time does a probe cost who could ask another */
    bool probed = gate->broken && gate->prober == ask;
    if (gate->broken && !probed)
        return; /* sent before it broke: says nothing new */
    gate->failures++;
    if (!probed && gate->failures < retry_break_after(gate->policy))
        return;
    gate->reason = *reason;
    gate->broken = true;
    gate->prober = NULL;
    gate->probes += probed;
    set_probe(gate);
    gate->rest_ns = clock_now_ns() + REST_TIMES * lost_ms * 1000000;
    if (probed)
        log_event(LOG_INFO, "provider.probe", gate->name, "probe %d failed: %s", gate->probes,
                  reason->message);
    wake_waiters(gate);
}

bool gate_silent(struct gate *gate, const struct ask *ask, uint64_t silent_ms,
                 const struct err *reason)
{
    if (gate->broken && gate->prober != ask)
        return false;
    if (gate->failures + 1 < retry_break_after(gate->policy))
        gate->failures = retry_break_after(gate->policy) - 1;
    gate_failed(gate, ask, silent_ms, reason);
    return true;
}

void gate_limit(struct gate *gate, uint64_t delay_ms, bool park, const struct err *reason)
{
    uint64_t until_ns = clock_now_ns() + delay_ms * 1000000;
    mend(gate); /* who says when to come back is alive */
    if (until_ns > gate->until_ns) {
        gate->until_ns = until_ns;
        gate->until_wall_ms = clock_wall_ms() + delay_ms;
        gate->parked = gate->parked || park;
        gate->reason = *reason;
    }
    wake_waiters(gate);
}

static void block_model(struct gate *gate, const struct model *model, const struct err *reason)
{
    struct blocked_model *blocked = MEM_NEW(struct blocked_model);
    struct buf name;
    buf_init(&name, 512);
    buf_addf(&name, "%s, model %s", gate->name, model->wire_name);
    blocked->wire_name = mem_strdup(model->wire_name);
    blocked->model = mem_strdup(model->name);
    blocked->name = buf_take(&name);
    blocked->since_wall_ms = clock_wall_ms();
    blocked->reason = *reason;
    list_append(&gate->blocked_models, &blocked->link);
    log_event(LOG_ERROR, "provider.blocked", blocked->name, "no more requests: %s",
              reason->message);
}

void gate_block(struct gate *gate, const struct model *model, enum fault fault,
                const struct err *reason)
{
    if (gate_blocked(gate, model)->code != ERR_NONE)
        return;
    if (fault == FAULT_MODEL) {
        block_model(gate, model, reason);
    } else {
        gate->blocked = true;
        gate->reason = *reason;
        gate->until_wall_ms = 0;
    }
    wake_waiters(gate);
}

void gate_leave(struct gate *gate, const struct ask *ask)
{
    if (gate->prober != ask)
        return;
    gate->prober = NULL;
    wake_waiters(gate);
}

/* ---- reading ---- */

const struct err *gate_blocked(const struct gate *gate, const struct model *model)
{
    if (gate->blocked)
        return &gate->reason;
    list_each (link, &gate->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (strcmp(blocked->wire_name, model->wire_name) == 0)
            return &blocked->reason;
    }
    return &no_err;
}

size_t gate_causes(const struct gate *gate, const char *model_name,
                   struct cause causes[CAUSES_MOST])
{
    size_t count = gate->cause_count;
    memcpy(causes, gate->causes, count * sizeof *causes);
    list_each (link, &gate->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (strcmp(blocked->model, model_name) != 0)
            continue;
        struct cause *cause = cause_of(causes, &count, GATE_BLOCKED, blocked->reason.message);
        cause->times = 1;
        cause->since_wall_ms = cause->began_wall_ms = blocked->since_wall_ms;
        cause->until_wall_ms = 0;
    }
    return count;
}

size_t gate_views(const struct gate *gate, struct gate_view *views, size_t most)
{
    size_t count = 0;
    bool passed = gate->until_ns != 0 && clock_now_ns() >= gate->until_ns;
    bool open =
        gate->state == GATE_OPEN || (passed && gate->state != GATE_BLOCKED && !gate->broken);
    if (count < most)
        views[count] = (struct gate_view){.name = gate->name,
                                          .state = open ? GATE_OPEN : gate->state,
                                          .embeds = gate->embeds,
                                          .reason = open ? "" : gate->reason.message,
                                          .since_wall_ms = gate->since_wall_ms,
                                          .until_wall_ms = open ? 0 : gate->until_wall_ms};
    count++;
    list_each (link, &gate->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (count < most)
            views[count] = (struct gate_view){.name = blocked->name,
                                              .state = GATE_BLOCKED,
                                              .embeds = gate->embeds,
                                              .reason = blocked->reason.message,
                                              .since_wall_ms = blocked->since_wall_ms};
        count++;
    }
    return count;
}
