#include "eval/cuda/profile/profile.h"

#include "eval/cuda/run/host.h"

#include <stdio.h>
#include <string.h>

/* What a profile without a GPU's help still knows. */
static void without(struct wire_profile *profile, const struct err *err)
{
    memset(profile, 0, sizeof *profile);
    profile->source = PROFILE_RESOURCES;
    snprintf(profile->why, sizeof profile->why, "%.*s", (int)sizeof profile->why - 1, err->message);
    memcpy(profile->records.why, profile->why, sizeof profile->why);
}

static void put_resources(const struct cuda_report *report, struct json *json)
{
    json_put_object(json, "compile");
    json_put_text(json, "compiler", report->version);
    json_put_real(json, "ms", report->compile_ms);
    json_put_bool(json, "cached", report->cached); /* then these ms were another compile's */
    json_object_end(json);
    json_put_array(json, "resources");
    for (size_t i = 0; i < report->entry_count; i++) {
        const struct cuda_resources *entry = &report->entries[i];
        json_object(json);
        json_put_text(json, "entry", entry->entry);
        json_put_int(json, "registers", entry->registers);
        json_put_int(json, "spill_store_bytes", entry->spill_store_bytes);
        json_put_int(json, "spill_load_bytes", entry->spill_load_bytes);
        json_put_int(json, "stack_bytes", entry->stack_bytes);
        json_put_int(json, "shared_bytes", entry->shared_bytes);
        json_object_end(json);
    }
    json_array_end(json);
}

int cuda_profile(const struct lane_facts *lane, const struct problem *problem,
                 const struct names *dims, const char *artifact, const char *remarks_log,
                 double time_ns, struct subject *subject, const struct call *call,
                 struct json *json, struct err *err)
{
    struct arena *arena = arena_new();
    struct cuda_report *report = arena_array(arena, 1, sizeof *report);
    struct wire_profile *profile = arena_array(arena, 1, sizeof *profile);
    struct wire_hot *hot = arena_array(arena, 1, sizeof *hot);
    struct plan *plan = arena_array(arena, 1, sizeof *plan);
    struct gpu_host *host = (struct gpu_host *)subject;
    struct err why = {0}; /* what one part cannot find out is no reason to lose the others */
    int status = 0;
    bool known = remarks_log != NULL && cuda_report_read(arena, remarks_log, report, &why) == 0;
    if (known)
        put_resources(report, json);
    lane_put_roofline(lane, problem, dims, time_ns, json);
    if (gpu_host_plan(host, call, plan, &why) == 0) {
        if (profile_collect(lane, host, artifact, call, time_ns, profile, &why) != 0)
            without(profile, &why);
        status = clocks_check(host, call, time_ns, &profile->records, err);
        const struct profiled profiled = {.facts = &lane->facts,
                                          .plan = plan,
                                          .report = known ? report : NULL,
                                          .profile = profile};
        profile_put(&profiled, json);
        if (profile->source == PROFILE_COUNTERS) {
            profile_sample_lines(call, time_ns, hot);
            profile_put_lines(hot, plan, host->program.candidate, json);
        }
    }
    arena_free(arena);
    return status;
}
