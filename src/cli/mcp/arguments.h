/* cli/mcp/arguments: what a tool is called with: its schema, and its way to a command line. */
#pragma once

#include "cli/mcp/tools.h"

/* {"type": "object", "properties": ..., "required": ...} */
void arguments_schema(const struct agent_tool *tool, struct json *json);
