/* The tools. Their options' types, ranges and words are those of the table of settings. */
#include "cli/mcp/tools.h"

#include "cli/mcp/arguments.h"
#include "cli/options/settings.h"

#include <string.h>

enum { QUICK_S = 120, MEASURE_S = 3600, SEARCH_S = 7 * 24 * 3600 };

/* Their words are read in every conversation that has the server: what each tool's results have is
 * said where it is not plain from one of them. */
const struct agent_tool agent_tools[] = {
    {"problems",
     "The operations that ship, by name. A problem is also the path of a folder, spec.yaml or "
     "PyTorch file. Your own: problem_new.",
     {"list", "problems"},
     "",
     "",
     NULL,
     TOOL_READS,
     COMMAND_LIST,
     QUICK_S},
    {"problem_check",
     "Is a problem fit: does its definition compute, does its tolerance refuse zeros, copies and "
     "lower precision? After every change of a definition.",
     {"problem", "check"},
     "problem",
     "backend",
     NULL,
     TOOL_READS | TOOL_MEASURES | TOOL_APART,
     COMMAND_PROBLEM,
     MEASURE_S},
    {"problem_new",
     "Writes the skeleton of a problem: spec.yaml, ref_impl.py (the definition, in numpy), a "
     "baseline and a start. Edit it, then problem_check.",
     {"problem", "new"},
     "folder",
     "",
     NULL,
     0,
     COMMAND_PROBLEM,
     QUICK_S},
    {"evaluate",
     "Compiles a candidate, checks it on secret inputs in a sandbox, times it in turns with the "
     "baseline, profiles it. `verdict`: kernel (passed every check), else "
     "`stage`, `reason`, `details`. `finding`: faster, slower, no difference or too noisy to say; "
     "believe it before `speedup` (median, low to high: 95 % interval).",
     {"eval"},
     "problem kernels",
     "tune effort until against baseline backend sanitize",
     NULL,
     TOOL_READS | TOOL_MEASURES | TOOL_APART,
     COMMAND_EVAL,
     MEASURE_S},
    {"profile",
     "What holds a kernel back: the limiter, where the time goes, counters, the hot loop, and "
     "which kinds of change would help.",
     {"profile"},
     "problem kernel",
     "tune backend",
     NULL,
     TOOL_READS | TOOL_MEASURES | TOOL_APART,
     COMMAND_PROFILE,
     MEASURE_S},
    {"tune",
     "Finds the best numbers of a kernel's tune space (its front matter; twagent://formats/cpu) "
     "and says which of them matter. A run.",
     {"tune"},
     "problem tuned?",
     "max-evaluations budget-time strategy stable backend",
     "--budget-time=5m",
     TOOL_MEASURES | TOOL_DETACHES,
     COMMAND_TUNE,
     SEARCH_S},
    {"prove",
     "Measures your kernel as a finalist and keeps it, as a run of one candidate: best, show, "
     "diff, emit and tune take its id (r3-c1).",
     {"tune"},
     "problem kernel",
     "",
     "--max-evaluations=1",
     TOOL_MEASURES | TOOL_DETACHES,
     COMMAND_TUNE,
     MEASURE_S},
    {"run",
     "Searches for the fastest kernel within budget_time (5 minutes) and proves the best one. "
     "Without a model in the user's configuration no key, no cost.",
     {"run"},
     "problem",
     "budget-time budget-evaluations budget-usd rounds target backend baseline",
     "--budget-time=5m",
     TOOL_MEASURES | TOOL_DETACHES,
     COMMAND_RUN,
     SEARCH_S},
    {"resume",
     "One that was paused, stopped or died; a larger budget where that ended it.",
     {"resume"},
     "run?",
     "budget-time budget-evaluations",
     NULL,
     TOOL_MEASURES | TOOL_DETACHES,
     COMMAND_RESUME,
     SEARCH_S},
    {"wait",
     "The answer of a call with detach, or what it does now.",
     {NULL},
     "call seconds? cancel?",
     "",
     NULL,
     TOOL_READS | TOOL_WAITS,
     0,
     0},
    {"status",
     "Of the run that is named, or that goes on now, or the last.",
     {"status"},
     "run?",
     "",
     NULL,
     TOOL_READS,
     COMMAND_STATUS,
     QUICK_S},
    {"stop",
     "Ends a run within seconds; everything it found is kept.",
     {"stop"},
     "run?",
     "",
     NULL,
     0,
     COMMAND_STOP,
     QUICK_S},
    {"history",
     "What made a problem faster, over all runs.",
     {"history"},
     "problem",
     "",
     NULL,
     TOOL_READS,
     COMMAND_HISTORY,
     QUICK_S},
    {"best",
     "The best kernel found so far.",
     {"best"},
     "problem",
     "source",
     NULL,
     TOOL_READS,
     COMMAND_BEST,
     QUICK_S},
    {"show",
     "A record of the store.",
     {"show"},
     "id",
     "source",
     NULL,
     TOOL_READS | TOOL_BOTH,
     COMMAND_SHOW,
     QUICK_S},
    {"diff",
     "Two candidates side by side, and their sources' difference.",
     {"diff"},
     "id other",
     "",
     NULL,
     TOOL_READS | TOOL_BOTH,
     COMMAND_DIFF,
     QUICK_S},
    {"emit",
     "Writes a kernel as a folder that works without twagent, with its test.",
     {"emit"},
     "id folder",
     "to unchecked-shapes",
     NULL,
     0,
     COMMAND_EMIT,
     QUICK_S},
    {"docs_search",
     "Passages of the guides and manuals that are indexed.",
     {"docs", "search"},
     "words",
     "limit tag",
     NULL,
     TOOL_READS | TOOL_BOTH,
     COMMAND_DOCS,
     QUICK_S},
    {"lessons",
     "What finished evaluations of earlier runs have taught.",
     {"lessons", "list"},
     "",
     "family wins last",
     NULL,
     TOOL_READS | TOOL_BOTH,
     COMMAND_LESSONS,
     QUICK_S},
    {"device",
     "What code is measured on: cores, caches, GPU, compilers, sandbox.",
     {"doctor"},
     "",
     "backend",
     "--no-measure",
     TOOL_READS,
     COMMAND_DOCTOR,
     QUICK_S},
    {"more",
     "All of one part of a result that says `more`. Nothing is measured again.",
     {NULL},
     "result part",
     "",
     NULL,
     TOOL_READS | TOOL_BOTH,
     0,
     0},
    {"evaluate",
     "Compiles a candidate, checks it against the definition on secret inputs in a sandbox, times "
     "it in turns with the baseline, and profiles it, on the run's own cores. It counts against "
     "your budget (evaluations_left); with until or against it does not, and is told to you alone. "
     "Believe `evaluation.finding` before `evaluation.speedup`.",
     {"attempt", "evaluate"},
     "kernels",
     "until against",
     NULL,
     TOOL_ATTEMPT,
     COMMAND_EVAL,
     SEARCH_S},
    {"submit",
     "Names the kernel that you end with. One that was not evaluated yet is evaluated first. Then "
     "end your work.",
     {"attempt", "submit"},
     "kernel",
     "",
     NULL,
     TOOL_ATTEMPT,
     0,
     SEARCH_S},
};
const size_t agent_tool_count = sizeof agent_tools / sizeof agent_tools[0];

bool agent_tool_is_for(const struct agent_tool *tool, bool attempt)
{
    return tool->ways & TOOL_BOTH || attempt == ((tool->ways & TOOL_ATTEMPT) != 0);
}

const struct agent_tool *agent_tool_find(const char *name, bool attempt)
{
    for (size_t i = 0; i < agent_tool_count; i++)
        if (agent_tool_is_for(&agent_tools[i], attempt) && strcmp(agent_tools[i].name, name) == 0)
            return &agent_tools[i];
    return NULL;
}

void agent_tool_describe(const struct agent_tool *tool, struct json *json)
{
    json_object(json);
    json_put_text(json, "name", tool->name);
    json_put_text(json, "description", tool->description);
    json_key(json, "inputSchema");
    arguments_schema(tool, json);
    json_put_object(json, "annotations");
    if (tool->ways & TOOL_READS)
        json_put_bool(json, "readOnlyHint", true);
    else
        json_put_bool(json, "destructiveHint", false);
    json_object_end(json);
    json_object_end(json);
}
