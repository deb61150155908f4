/* cli/mcp/children: what `twagent mcp` and coding agents start this program as. Main thread. */
#pragma once

/* `twagent attempt evaluate FILE...`, `attempt submit FILE`: a coding agent that works on a run's
 * candidate (agents/workplace) has sources evaluated there. Prints the answer, one JSON object.
 * With
 * `--until=STAGE` or `--against=FILE|ID` it is `twagent eval` on the run's problem. */
int attempt_main(int argc, char **argv);
/* `twagent acp [--boxed] PROGRAM ARGUMENT...`: a coding agent that speaks the Agent Client
 * Protocol, asked once: the task on stdin, what it said and cost on stdout. */
int acp_main(int argc, char **argv);
/* `twagent both COMMAND --json ...`: a command that only reads, for a person and for a program: its
 * text, a NUL, its JSON. */
int both_main(int argc, char **argv);
/* `twagent document format LANGUAGE [PROBLEM]`, `twagent document prompt PROBLEM WISH`: prints what
 * an agent is told of a problem. */
int document_main(int argc, char **argv);
/* `twagent detached run|tune|resume ...`: starts that command in a session of its own, where it
 * goes on whatever becomes of us, and prints its run's id. */
int detached_main(int argc, char **argv);
