/* agents/llm/providers/request: the parts of a request that all formats build alike. Results lie in
 * the arena. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/value.h"

#include <stdbool.h>

/* "BASE/rest": slashes at the end of `base` are dropped, and "/VERSION" is put between them where
 * the base's path does not end with a version ("/v1", "/v1beta") already; `version` may be NULL. */
const char *request_url(struct arena *arena, const char *base, const char *version,
                        const char *rest);

/* A model's name as a piece of a path: "/" stays, since names hold it, all else is escaped. */
const char *request_escape(struct arena *arena, const char *name);

/* NULL-terminated; the first is the key's, "PREFIXkey", left out where there is no key; one that is
 * "Bearer TOKEN", or signs (loop/http.h), goes as authorization. `more`: NULL-terminated. */
const char *const *request_headers(struct arena *arena, const char *prefix, const char *key,
                                   const char *const *more);

/* Is the URL's host this one, or below it? */
bool request_is_at(const char *url, const char *host);

/* A message of a conversation as OpenAI's formats have it. */
void request_message(struct json *json, const char *role, const char *content);
/* The fields of `body`, a map or NULL, as members of the object that is open, but for `merged`
 * (NULL: none), which its caller has written with fields of its own. */
void request_more(struct json *json, const struct value *body, const char *merged);
/* The conversation so far, as items of a list without its brackets: `earlier`, the prompt, and what
 * a completion has for its `turn`. NULL where it has none. */
const char *request_turns(struct arena *arena, const char *earlier, const char *prompt,
                          const char *turn);
/* Whether requests have a field of this name by themselves, so that a person cannot give it. */
bool request_has(const char *name);
