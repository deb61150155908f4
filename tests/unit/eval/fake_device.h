/* The stand-in backend as a device: its own clock times. */
#pragma once

#include "fake_backend.h"

static int fake_open_on_device(const struct lane_facts *lane, const struct region *region,
                               const char *artifact, const struct program *program, bool fresh,
                               struct subject **subject, struct err *err)
{
    int status = fake_open(lane, region, artifact, program, fresh, subject, err);
    if (status == 0)
        (*subject)->device_clock = true;
    return status;
}
