/* cli/mcp/detached: `twagent detached run ...`: starts that command in a session of its own, where
 * it goes on whatever becomes of us, and prints where its run stands. Main thread. */
#pragma once

int detached_main(int argc, char **argv);
