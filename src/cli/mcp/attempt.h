/* cli/mcp/attempt: `twagent attempt evaluate|submit FILE`: a coding agent that works on a run's
 * candidate (agents/workplace) has a source evaluated there. Prints the answer, one JSON object. */
#pragma once

int attempt_main(int argc, char **argv);
