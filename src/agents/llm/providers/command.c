/* A program as a model has no format of its own: agents/llm/completion_command. */
#include "agents/llm/providers/codec.h"

const struct codec codec_command = {.name = "command", .default_url = "", .key_variable = ""};
const struct codec codec_agent = {.name = "agent", .default_url = "", .key_variable = ""};
