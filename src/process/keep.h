/* process/keep: `twagent keep PROGRAM ARGS`: runs a program that may do anything, and ends all that
 * it started: whatever forks away, leaves its group or its session becomes this one's child
 * (PR_SET_CHILD_SUBREAPER), and is killed when the program ends, when TERM comes, or when whoever
 * started this one dies. Ends as the program did. */
#pragma once

int keep_main(int argc, char **argv);
