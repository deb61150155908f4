/* The runner that profiles: another process than those that are timed, since what CUPTI hooks into
 * a driver slows its launches. It is started with the first profile of a session's regions, and
 * kept: opening CUPTI takes longer than a profile. */
#include "eval/cuda/run/host.h"
#include "base/clock.h"
#include "eval/cuda/profile/profile.h"
#include "eval/data/timeline.h"

#include <stdio.h>
#include <string.h>

enum { PASSES_ABOUT = 40, BASE_MS = 20000 };

static struct gpu_host *kept; /* measuring thread alone */
static bool counted, sampled; /* by `kept`, so far */
static bool spoils;           /* here a runner that sampled has no counters afterwards */

void profile_discard(void)
{
    gpu_host_close(kept);
    kept = NULL;
    counted = sampled = false;
}

static int start(const struct lane_facts *lane, const struct region *region, struct err *err)
{
    if (kept != NULL && (kept->base.reaped || !gpu_host_fits(kept, lane, region)))
        profile_discard();
    if (kept != NULL || gpu_host_start(lane, region, NULL, true, &kept, err) == 0)
        return 0;
    kept = NULL;
    return -1;
}

void profile_warm(const struct lane_facts *lane, const struct region *region)
{
    struct err ignored;
    (void)!start(lane, region, &ignored); /* the profile will say why */
}

void profile_settle(void)
{
    struct err ignored;
    if (kept != NULL && gpu_host_wait_warm(kept, &ignored) != 0)
        profile_discard();
}

static int ask(uint32_t command, const struct call *call, double time_ns, struct err *err)
{
    char reason[WIRE_REASON_MAX];
    struct gpu_control *control = kept->control;
    if (gpu_host_plan(kept, call, &control->plan, err) != 0)
        return -1;
    control->command = command;
    call_copy(call, &control->call);
    uint64_t begun = timeline_begin();
    if (gpu_host_ask(kept, BASE_MS + (uint64_t)(PASSES_ABOUT * time_ns / 1e6), err) != 0)
        return -1;
    timeline_end(command == WIRE_PROFILE   ? "profile.count"
                 : command == WIRE_RECORDS ? "profile.record"
                                           : "profile.sample",
                 begun);
    if (kept->report->status == REPORT_FINE)
        return 0;
    memcpy(reason, kept->report->reason, sizeof reason);
    reason[sizeof reason - 1] = '\0';
    return err_set(err, ERR_CHILD, "%s", reason);
}

/* What the runner wrote, within its bounds. */
static void read_profile(struct wire_profile *profile)
{
    *profile = kept->report->profile;
    profile->why[sizeof profile->why - 1] = '\0';
    profile->records.why[sizeof profile->records.why - 1] = '\0';
    if (profile->records.launches > RECORDED_MOST)
        profile->records.launches = 0;
}

static void read_hot(struct wire_hot *hot)
{
    *hot = kept->report->hot;
    hot->why[sizeof hot->why - 1] = '\0';
    hot->count = hot->count < HOT_MOST ? hot->count : HOT_MOST;
    for (uint32_t i = 0; i < hot->count; i++) {
        struct wire_hot_line *line = &hot->lines[i];
        line->file[sizeof line->file - 1] = line->stall[sizeof line->stall - 1] = '\0';
        if (line->samples > hot->samples || line->stall_samples > line->samples)
            hot->count = i;
    }
}

static int collect(const struct lane_facts *lane, const struct gpu_host *like, const char *artifact,
                   const struct call *call, double time_ns, struct wire_profile *profile,
                   struct err *err)
{
    memset(profile, 0, sizeof *profile);
    int status = start(lane, like->base.region, err) == 0 ? gpu_host_wait_warm(kept, err) : -1;
    if (status == 0) {
        kept->facts = &lane->facts;
        status = gpu_host_load(kept, &like->program, artifact, err);
    }
    if (status == 0)
        status = ask(WIRE_PROFILE, call, time_ns, err);
    if (status == 0)
        read_profile(profile);
    return status;
}

int profile_collect(const struct lane_facts *lane, const struct gpu_host *like,
                    const char *artifact, const struct call *call, double time_ns,
                    struct wire_profile *profile, struct err *err)
{
    int status = collect(lane, like, artifact, call, time_ns, profile, err);
    if (status == 0 && counted && sampled && profile->source != PROFILE_COUNTERS) {
        spoils = true; /* counters are worth more: another runner, and no more samples */
        profile_discard();
        status = collect(lane, like, artifact, call, time_ns, profile, err);
    }
    counted = counted || (status == 0 && profile->source == PROFILE_COUNTERS);
    if (status != 0 || profile->records.fault != 0)
        profile_discard(); /* what a fault leaves is of no use */
    return status;
}

int profile_record_again(const struct call *call, double time_ns, struct wire_records *records,
                         struct err *err)
{
    struct wire_profile profile = {0};
    if (kept == NULL)
        return err_set(err, ERR_CHILD, "the runner that profiles has ended");
    int status = ask(WIRE_RECORDS, call, time_ns, err);
    if (status == 0)
        read_profile(&profile);
    *records = profile.records;
    if (status != 0 || records->fault != 0)
        profile_discard();
    return status;
}

void profile_sample_lines(const struct call *call, double time_ns, struct wire_hot *hot)
{
    struct err err = {0};
    memset(hot, 0, sizeof *hot);
    if (kept == NULL || spoils) {
        snprintf(hot->why, sizeof hot->why, "%s",
                 spoils ? "after it this CUPTI has no counters any more"
                        : "the runner that profiles has ended");
        return;
    }
    sampled = true;
    if (ask(WIRE_SAMPLES, call, time_ns, &err) == 0) {
        read_hot(hot);
        return;
    }
    snprintf(hot->why, sizeof hot->why, "%.*s", (int)sizeof hot->why - 1, err.message);
    profile_discard();
}
