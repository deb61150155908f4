/*             429                             its time has come
 *   READY --------> LIMITED or PARKED ---------------------------> READY
 *     | failures in a row               an answer, of a probe or another
 *     +-------> BREAKER_OPEN (half-open: one probe at a time) ---> READY
 *     |
 *     +-------> BLOCKED, for this process
 *
 * The kinds are facts of their own, and the state is the strongest: blocked, parked or limited,
 * breaker open, ready. */
#include "agents/llm/endpoint.h"

#include "agents/llm/ask.h"
#include "agents/llm/key_command.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

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
    BUF_LOCAL(text, 512);
    buf_addf(&text, "%s %.*s%.*s", is_embedding(model) ? model->codec->name : model->provider,
             (int)(host - url), url, (int)strcspn(at, "?#"), at);
    if (model->batch != NULL)
        buf_add_text(&text, " in batches");
    if (!usual)
        buf_addf(&text, " (%s)", model->key_variable);
    return buf_take(&text);
}

static const char *text_or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* A key that renews itself is its command's. */
static const char *whose_key(const struct model *model)
{
    return model->key_command != NULL ? model->key_command->name : text_or_empty(model->key);
}

struct endpoint *endpoint_new(const struct model *model, const struct retry_policy *policy,
                              struct random *random, unsigned capacity)
{
    struct endpoint *endpoint = MEM_NEW(struct endpoint);
    endpoint->provider = mem_strdup(model->provider);
    endpoint->base_url = mem_strdup(text_or_empty(model->base_url));
    endpoint->key = mem_strdup(whose_key(model));
    endpoint->name = name_of(model);
    endpoint->embeds = is_embedding(model);
    endpoint->batches = model->batch != NULL;
    endpoint->policy = policy;
    endpoint->random = random;
    endpoint->capacity = capacity;
    slots_init(&endpoint->slots, "requests", capacity);
    list_init(&endpoint->blocked_models);
    return endpoint;
}

void endpoint_free(struct endpoint *endpoint)
{
    for (struct link *link; (link = list_pop(&endpoint->blocked_models)) != NULL;) {
        struct blocked_model *model = container_of(link, struct blocked_model, link);
        mem_free(model->wire_name);
        mem_free(model->name);
        mem_free(model->model);
        mem_free(model);
    }
    mem_free(endpoint->provider);
    mem_free(endpoint->base_url);
    mem_free(endpoint->key);
    mem_free(endpoint->name);
    mem_free(endpoint);
}

bool endpoint_fits(const struct endpoint *endpoint, const struct model *model)
{
    return endpoint->embeds == is_embedding(model) && endpoint->batches == (model->batch != NULL) &&
           strcmp(endpoint->provider, model->provider) == 0 &&
           strcmp(endpoint->base_url, text_or_empty(model->base_url)) == 0 &&
           strcmp(endpoint->key, whose_key(model)) == 0;
}

/* ---- the state ---- */

static void say_ready(const struct endpoint *endpoint, enum endpoint_state before)
{
    static const char *const words[] = {[ENDPOINT_LIMITED] = "limited",
                                        [ENDPOINT_PARKED] = "parked",
                                        [ENDPOINT_BREAKER_OPEN] = "paused",
                                        [ENDPOINT_BLOCKED] = "blocked"};
    uint64_t now = clock_wall_ms();
    log_event(before == ENDPOINT_LIMITED ? LOG_INFO : LOG_WARN, "provider.ready", endpoint->name,
              "goes on, after %.1f s %s",
              (double)(now > endpoint->since_wall_ms ? now - endpoint->since_wall_ms : 0) / 1000,
              words[before]);
}

static void say_state(const struct endpoint *endpoint)
{
    char until[32];
    clock_format_wall(endpoint->until_wall_ms, until);
    const char *reason = endpoint->reason.message;
    switch (endpoint->state) {
    case ENDPOINT_LIMITED:
        log_event(LOG_INFO, "provider.limited", endpoint->name, "until %s: %s", until, reason);
        return;
    case ENDPOINT_PARKED:
        log_event(LOG_WARN, "provider.parked", endpoint->name,
                  "until %s, since it asks for more than %.0f s: %s", until,
                  (double)endpoint->policy->honour_ms / 1000, reason);
        return;
    case ENDPOINT_BREAKER_OPEN:
        log_event(LOG_WARN, "provider.breaker_open", endpoint->name,
                  "%d failures in a row; asked again at %s: %s", endpoint->failures, until, reason);
        return;
    case ENDPOINT_BLOCKED:
        log_event(LOG_ERROR, "provider.blocked", endpoint->name, "no more requests: %s", reason);
        return;
    default:
        return;
    }
}

/* One spell is over, another begins: each counts for its reason. */
static void note_cause(struct endpoint *endpoint, enum endpoint_state before)
{
    uint64_t now = clock_wall_ms();
    for (size_t i = 0; before != ENDPOINT_READY && i < endpoint->cause_count; i++) {
        struct cause *cause = &endpoint->causes[i];
        if (cause->until_wall_ms != 0)
            continue;
        cause->until_wall_ms = now;
        cause->total_ms += now > cause->began_wall_ms ? now - cause->began_wall_ms : 0;
    }
    if (endpoint->state == ENDPOINT_READY)
        return;
    struct cause *cause = cause_of(endpoint->causes, &endpoint->cause_count, endpoint->state,
                                   endpoint->reason.message);
    cause->times++;
    cause->began_wall_ms = now;
    cause->until_wall_ms = 0;
}

static enum endpoint_state state_of(const struct endpoint *endpoint)
{
    if (endpoint->blocked)
        return ENDPOINT_BLOCKED;
    if (endpoint->until_ns != 0)
        return endpoint->parked ? ENDPOINT_PARKED : ENDPOINT_LIMITED;
    return endpoint->breaker_open ? ENDPOINT_BREAKER_OPEN : ENDPOINT_READY;
}

/* Slots as the state has them. The one that gets in while the breaker is open is the probe. */
static void set_slots(struct endpoint *endpoint)
{
    if (endpoint->held ||
        (endpoint->state != ENDPOINT_READY && endpoint->state != ENDPOINT_BREAKER_OPEN)) {
        slots_resize(&endpoint->slots, 0);
        return;
    }
    if (endpoint->state == ENDPOINT_READY) {
        slots_resize(&endpoint->slots, endpoint->capacity);
        return;
    }
    unsigned used = endpoint->slots.used;
    bool due = endpoint->prober == NULL && clock_now_ns() >= endpoint->probe_ns;
    struct link *first =
        list_empty(&endpoint->slots.waiters) ? NULL : endpoint->slots.waiters.head.next;
    slots_resize(&endpoint->slots, due ? used + 1 : 0);
    if (!due || first == NULL || endpoint->slots.used == used)
        return;
    struct task *owner = container_of(first, struct slot, link)->owner;
    endpoint->prober = container_of(owner, struct ask, task);
    slots_resize(&endpoint->slots, 0);
}

void endpoint_update(struct endpoint *endpoint)
{
    if (endpoint->until_ns != 0 && clock_now_ns() >= endpoint->until_ns) {
        endpoint->until_ns = 0;
        endpoint->parked = false;
    }
    enum endpoint_state before = endpoint->state;
    endpoint->state = state_of(endpoint);
    if (endpoint->state != before && endpoint->state == ENDPOINT_READY)
        say_ready(endpoint, before);
    if (endpoint->state != before) {
        endpoint->since_wall_ms = clock_wall_ms();
        say_state(endpoint);
        note_cause(endpoint, before);
    }
    set_slots(endpoint);
}

/* Those that wait look anew at when they may send. */
static void wake_waiters(struct endpoint *endpoint)
{
    endpoint_update(endpoint);
    list_each (link, &endpoint->slots.waiters)
        task_wake(container_of(link, struct slot, link)->owner);
}

void endpoint_hold(struct endpoint *endpoint, bool held)
{
    endpoint->held = held;
    wake_waiters(endpoint);
}

bool endpoint_admits(struct endpoint *endpoint, const struct ask *ask)
{
    endpoint_update(endpoint);
    if (endpoint->held)
        return false;
    if (endpoint->state != ENDPOINT_BREAKER_OPEN)
        return endpoint->state == ENDPOINT_READY;
    if (endpoint->prober == NULL && clock_now_ns() >= endpoint->probe_ns) {
        endpoint->prober = ask;
        set_slots(endpoint);
    }
    return endpoint->prober == ask;
}

bool endpoint_is_unavailable(const struct endpoint *endpoint, const struct ask *ask)
{
    if (endpoint->state == ENDPOINT_PARKED)
        return true;
    return endpoint->state == ENDPOINT_BREAKER_OPEN &&
           (endpoint->prober != NULL ? endpoint->prober != ask
                                     : clock_now_ns() < endpoint->probe_ns);
}

static const uint64_t soon_ns = UINT64_C(15) * 1000000000; /* who is told to come back then waits */

bool endpoint_is_avoided(const struct endpoint *endpoint, const struct ask *ask)
{
    bool probes = ask != NULL && endpoint->prober == ask;
    if (endpoint->state == ENDPOINT_LIMITED && endpoint->until_ns > clock_now_ns() + soon_ns)
        return true;
    return endpoint_is_unavailable(endpoint, ask) ||
           (endpoint->state == ENDPOINT_BREAKER_OPEN && !probes &&
            clock_now_ns() < endpoint->avoid_ns);
}

uint64_t endpoint_retry_ns(const struct endpoint *endpoint)
{
    if (endpoint->state == ENDPOINT_LIMITED || endpoint->state == ENDPOINT_PARKED)
        return endpoint->until_ns;
    return endpoint->state == ENDPOINT_BREAKER_OPEN && endpoint->prober == NULL ? endpoint->probe_ns
                                                                                : 0;
}

uint64_t endpoint_avoided_until_ns(const struct endpoint *endpoint)
{
    uint64_t retry_ns = endpoint_retry_ns(endpoint);
    if (endpoint->state == ENDPOINT_LIMITED)
        return retry_ns > soon_ns ? retry_ns - soon_ns : 1;
    return endpoint->state == ENDPOINT_BREAKER_OPEN && retry_ns != 0 &&
                   endpoint->avoid_ns > retry_ns
               ? endpoint->avoid_ns
               : retry_ns;
}

/* ---- what becomes of requests ---- */

static void set_probe(struct endpoint *endpoint)
{
    uint64_t delay_ms = retry_probe_ms(endpoint->policy, endpoint->probes, endpoint->random);
    endpoint->probe_ns = clock_now_ns() + delay_ms * 1000000;
    endpoint->until_wall_ms = clock_wall_ms() + delay_ms;
}

static void close_breaker(struct endpoint *endpoint)
{
    endpoint->failures = endpoint->probes = 0;
    endpoint->avoid_ns = 0;
    endpoint->breaker_open = false;
    endpoint->prober = NULL;
}

void endpoint_succeeded(struct endpoint *endpoint)
{
    close_breaker(endpoint);
    endpoint_update(endpoint);
}

void endpoint_failed(struct endpoint *endpoint, const struct ask *ask, uint64_t lost_ms,
                     const struct err *reason)
{
    enum { AVOID_TIMES = 60 }; /* so little of its time does a probe cost who could ask another */
    bool probed = endpoint->breaker_open && endpoint->prober == ask;
    if (endpoint->breaker_open && !probed)
        return; /* sent before the breaker opened: says nothing new */
    endpoint->failures++;
    if (!probed && endpoint->failures < retry_break_after(endpoint->policy))
        return;
    endpoint->reason = *reason;
    endpoint->breaker_open = true;
    endpoint->prober = NULL;
    endpoint->probes += probed;
    set_probe(endpoint);
    endpoint->avoid_ns = clock_now_ns() + AVOID_TIMES * lost_ms * 1000000;
    if (probed)
        log_event(LOG_INFO, "provider.probe", endpoint->name, "probe %d failed: %s",
                  endpoint->probes, reason->message);
    wake_waiters(endpoint);
}

bool endpoint_silent(struct endpoint *endpoint, const struct ask *ask, uint64_t silent_ms,
                     const struct err *reason)
{
    if (endpoint->breaker_open && endpoint->prober != ask)
        return false;
    if (endpoint->failures + 1 < retry_break_after(endpoint->policy))
        endpoint->failures = retry_break_after(endpoint->policy) - 1;
    endpoint_failed(endpoint, ask, silent_ms, reason);
    return true;
}

void endpoint_limit(struct endpoint *endpoint, uint64_t delay_ms, bool park,
                    const struct err *reason)
{
    uint64_t until_ns = clock_now_ns() + delay_ms * 1000000;
    close_breaker(endpoint); /* who says when to come back is alive */
    if (until_ns > endpoint->until_ns) {
        endpoint->until_ns = until_ns;
        endpoint->until_wall_ms = clock_wall_ms() + delay_ms;
        endpoint->parked = endpoint->parked || park;
        endpoint->reason = *reason;
    }
    wake_waiters(endpoint);
}

static void block_model(struct endpoint *endpoint, const struct model *model,
                        const struct err *reason)
{
    struct blocked_model *blocked = MEM_NEW(struct blocked_model);
    BUF_LOCAL(name, 512);
    buf_addf(&name, "%s, model %s", endpoint->name, model->wire_name);
    blocked->wire_name = mem_strdup(model->wire_name);
    blocked->model = mem_strdup(model->name);
    blocked->name = buf_take(&name);
    blocked->since_wall_ms = clock_wall_ms();
    blocked->reason = *reason;
    list_append(&endpoint->blocked_models, &blocked->link);
    log_event(LOG_ERROR, "provider.blocked", blocked->name, "no more requests: %s",
              reason->message);
}

void endpoint_block(struct endpoint *endpoint, const struct model *model, enum fault fault,
                    const struct err *reason)
{
    if (endpoint_blocked(endpoint, model)->code != ERR_NONE)
        return;
    if (fault == FAULT_MODEL) {
        block_model(endpoint, model, reason);
    } else {
        endpoint->blocked = true;
        endpoint->reason = *reason;
        endpoint->until_wall_ms = 0;
    }
    wake_waiters(endpoint);
}

void endpoint_leave(struct endpoint *endpoint, const struct ask *ask)
{
    if (endpoint->prober != ask)
        return;
    endpoint->prober = NULL;
    wake_waiters(endpoint);
}

/* ---- reading ---- */

const struct err *endpoint_blocked(const struct endpoint *endpoint, const struct model *model)
{
    if (endpoint->blocked)
        return &endpoint->reason;
    list_each (link, &endpoint->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (strcmp(blocked->wire_name, model->wire_name) == 0)
            return &blocked->reason;
    }
    return &no_err;
}

size_t endpoint_causes(const struct endpoint *endpoint, const char *model_name,
                       struct cause causes[CAUSES_MOST])
{
    size_t count = endpoint->cause_count;
    memcpy(causes, endpoint->causes, count * sizeof *causes);
    list_each (link, &endpoint->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (strcmp(blocked->model, model_name) != 0)
            continue;
        struct cause *cause = cause_of(causes, &count, ENDPOINT_BLOCKED, blocked->reason.message);
        cause->times = 1;
        cause->since_wall_ms = cause->began_wall_ms = blocked->since_wall_ms;
        cause->until_wall_ms = 0;
    }
    return count;
}

size_t endpoint_views(const struct endpoint *endpoint, struct endpoint_view *views, size_t most)
{
    size_t count = 0;
    bool passed = endpoint->until_ns != 0 && clock_now_ns() >= endpoint->until_ns;
    bool ready = endpoint->state == ENDPOINT_READY ||
                 (passed && endpoint->state != ENDPOINT_BLOCKED && !endpoint->breaker_open);
    if (count < most)
        views[count] = (struct endpoint_view){.name = endpoint->name,
                                              .state = ready ? ENDPOINT_READY : endpoint->state,
                                              .embeds = endpoint->embeds,
                                              .reason = ready ? "" : endpoint->reason.message,
                                              .since_wall_ms = endpoint->since_wall_ms,
                                              .until_wall_ms = ready ? 0 : endpoint->until_wall_ms};
    count++;
    list_each (link, &endpoint->blocked_models) {
        const struct blocked_model *blocked = container_of(link, struct blocked_model, link);
        if (count < most)
            views[count] = (struct endpoint_view){.name = blocked->name,
                                                  .state = ENDPOINT_BLOCKED,
                                                  .embeds = endpoint->embeds,
                                                  .reason = blocked->reason.message,
                                                  .since_wall_ms = blocked->since_wall_ms};
        count++;
    }
    return count;
}
