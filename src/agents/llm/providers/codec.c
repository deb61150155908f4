#include "agents/llm/providers/codec.h"

#include <stddef.h>
#include <string.h>

static const struct codec *const codecs[] = {&codec_openai, &codec_responses, &codec_anthropic,
                                             &codec_gemini, &codec_command,   &codec_agent};

const struct codec *codec_find(const char *name)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (strcmp(codecs[i]->name, name) == 0)
            return codecs[i];
    return NULL;
}
