/* cli/mcp/both: `twagent both COMMAND --json ...`: a command that only reads, for a person and for
 * a program: its text, a NUL, its JSON. Main thread. */
#pragma once

int both_main(int argc, char **argv);
