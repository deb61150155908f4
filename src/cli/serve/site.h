/* cli/serve/site: what stands at each address of `twagent serve` (docs/serve.md has the list). */
#pragma once

#include "cli/options/settings.h"
#include "serve/serve.h"

struct evaluations;

/* All are borrowed until serve_site_close(). */
void serve_site_open(const struct settings *settings, const char *folder,
                     struct evaluations *evaluations, struct serve_site *site);
void serve_site_close(struct serve_site *site);
