/* process/descriptors: what a CPU runner has open, by number: its filter lets it use nothing else.
 */
#pragma once

enum {
    WIRE_CONTROL = 3,
    WIRE_INPUTS = 4,
    WIRE_OUTPUTS = 5,
    WIRE_GO = 6,
    WIRE_DONE = 7,
    WIRE_ARTIFACT = 8,
    WIRE_FIRST_OTHER = 9
};
