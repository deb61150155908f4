#include "cli/serve/evaluations.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/options/devices.h"
#include "queue/queue.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOURCE_MOST = 1 << 20, WORD_MOST = 1024, NAME_MOST = 64 };

struct evaluations {
    const struct settings *settings;
    struct arena *arena;
    struct queue_options options;
    struct queue *queue; /* NULL: err says why */
    struct err err;
    struct serve *serve;
    char root[PATH_MAX]; /* paths of problems lie in it; "": none does */
};

struct asked {
    struct queue_asked asked;
    struct evaluations *evaluations;
    struct serve_post *post;
};

/* ---- what was asked (pool thread) ---- */

struct reading {
    const struct evaluations *evaluations;
    struct arena *arena;
    const struct value *root, *item; /* what an item does not say the root may */
    struct err *err;
};

static const struct value *member(const struct reading *reading, const char *key)
{
    const struct value *own = value_get(reading->item, key);
    return own ? own : value_get(reading->root, key);
}

/* NULL with the error where it is none, or one with a NUL in it. */
static const char *read_text(const struct reading *reading, const char *key, const char *fallback,
                             size_t most)
{
    const struct value *value = member(reading, key);
    if (!value && fallback)
        return fallback;
    if (value && value->kind == VALUE_TEXT && value->length > 0 && value->length <= most &&
        strlen(value->text) == value->length)
        return value->text;
    (void)err_set(reading->err, ERR_USAGE, "%s: expected a text of at most %zu bytes", key, most);
    return NULL;
}

/* A file's or a client's name: nothing that a path, a log or a terminal would read otherwise. */
static const char *read_name(const struct reading *reading, const char *key, const char *fallback)
{
    const char *text = read_text(reading, key, fallback, NAME_MOST - 1);
    for (const char *at = text; at && *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-.:%", *at)) {
            (void)err_set(reading->err, ERR_USAGE, "%s: expected letters, digits and _-.:%% alone",
                          key);
            return NULL;
        }
    return text;
}

/* A shipped one, or one in the folder in which the server was started, links followed: of others
 * nothing is read. */
static const char *read_problem(const struct reading *reading, const char *backend)
{
    const char *word = read_text(reading, "problem", NULL, WORD_MOST), *problem = NULL;
    const char *root = reading->evaluations->root;
    if (!word)
        return NULL;
    size_t length = strlen(root), end = strcspn(word, "@");
    const char *path = command_path(reading->arena, arena_strndup(reading->arena, word, end));
    if (strchr(path, '/') && (length == 0 || strncmp(path, root, length) != 0 ||
                              (path[length] != '/' && path[length] != '\0'))) {
        (void)err_set(reading->err, ERR_USAGE,
                      "problem: expected one that ships, or a path in the folder in which the "
                      "server was started");
        return NULL;
    }
    word = arena_printf(reading->arena, "%s%s", path, word + end);
    return find_problem(reading->arena, word, backend, &problem, reading->err) ? NULL : problem;
}

static int read_tune(const struct reading *reading, const char **tune)
{
    const struct value *value = member(reading, "tune");
    *tune = NULL;
    if (!value || value->kind == VALUE_NULL)
        return 0;
    bool numbers = value->kind == VALUE_MAP;
    for (size_t i = 0; numbers && i < value->count; i++)
        numbers = value->items[i]->kind == VALUE_INT;
    if (!numbers)
        return err_set(reading->err, ERR_USAGE, "tune: expected an object of whole numbers");
    *tune = value_json(value, reading->arena);
    return 0;
}

static int read_item(const struct reading *reading, struct queue_item *item)
{
    static const char *const keys[] = {"problem", "source",  "name",   "tune",
                                       "effort",  "profile", "client", NULL};
    const struct value *source = value_get(reading->item, "source");
    const struct value *profile = member(reading, "profile");
    if (reading->item != reading->root &&
        value_check_keys(reading->item, "an item", keys, reading->err))
        return -1;
    item->name = read_name(reading, "name", "kernel.c");
    item->effort = read_text(reading, "effort", "full", WORD_MOST);
    if (!item->name || !item->effort || read_tune(reading, &item->tune))
        return -1;
    const struct language *language = language_of_file(item->name);
    if (!language)
        return err_set(reading->err, ERR_USAGE, "name: the suffix of \"%s\" is no language's",
                       item->name);
    if (strcmp(item->effort, "full") != 0 && strcmp(item->effort, "search") != 0)
        return err_set(reading->err, ERR_USAGE, "effort: expected search or full");
    if (profile && profile->kind != VALUE_BOOL)
        return err_set(reading->err, ERR_USAGE, "profile: expected true or false");
    item->profile = profile && profile->boolean;
    if (!source || source->kind != VALUE_TEXT || source->length == 0 ||
        source->length > SOURCE_MOST)
        return err_set(reading->err, ERR_USAGE, "source: expected a text of at most 1 MiB");
    item->source = source->text;
    item->length = source->length;
    item->backend = language_target(language)->name;
    item->problem = read_problem(reading, item->backend);
    return item->problem ? 0 : -1;
}

static int parse(void *context, struct queue_asked *queued)
{
    static const char *const keys[] = {"problem", "source", "name",  "tune", "effort",
                                       "profile", "client", "items", NULL};
    struct asked *asked = container_of(queued, struct asked, asked);
    const struct buf *body = &asked->post->body;
    struct reading reading = {.evaluations = context, .arena = queued->arena, .err = &queued->err};
    struct value *root = NULL;
    if (value_parse_json(queued->arena, "the body", buf_text(body), body->length, &root,
                         &queued->err))
        return -1;
    if (root->kind != VALUE_MAP)
        return err_set(&queued->err, ERR_USAGE, "the body: expected an object");
    if (value_check_keys(root, "the body", keys, &queued->err))
        return -1;
    const struct value *items = value_get(root, "items");
    reading.root = reading.item = root;
    queued->client = read_name(&reading, "client", asked->post->peer);
    if (!queued->client)
        return -1;
    if (items && (items->kind != VALUE_LIST || items->count == 0 || items->count > QUEUE_AT_ONCE ||
                  value_get(root, "source")))
        return err_set(&queued->err, ERR_USAGE,
                       "items: expected a list of 1 to %d objects, and no source beside it",
                       QUEUE_AT_ONCE);
    queued->count = items ? items->count : 1;
    queued->items = arena_array(queued->arena, queued->count, sizeof *queued->items);
    for (size_t i = 0; i < queued->count; i++) {
        reading.item = items ? items->items[i] : root;
        if (reading.item->kind != VALUE_MAP)
            return err_set(&queued->err, ERR_USAGE, "items[%zu]: expected an object", i);
        if (read_item(&reading, &queued->items[i]))
            return items ? err_wrap(&queued->err, "items[%zu]", i) : -1;
    }
    return 0;
}

/* ---- the answer ---- */

static void answered(void *context, struct queue_asked *queued)
{
    static const unsigned statuses[] = {
        [QUEUE_ACCEPTED] = 202, [QUEUE_REFUSED] = 400, [QUEUE_FULL] = 429, [QUEUE_BROKEN] = 503};
    struct asked *asked = container_of(queued, struct asked, asked);
    struct serve_post *post = asked->post;
    struct json json = {.out = &post->out};
    (void)context;
    post->status = statuses[queued->outcome];
    post->retry_s = queued->retry_s;
    if (queued->outcome == QUEUE_ACCEPTED) {
        json_object(&json);
        json_put_array(&json, "ids");
        for (size_t i = 0; i < queued->count; i++) {
            char id[24];
            snprintf(id, sizeof id, "e%" PRIu64, queued->first + i);
            json_text(&json, id);
        }
        json_array_end(&json);
        json_object_end(&json);
        snprintf(post->follow, sizeof post->follow, "%s/e%" PRIu64 "-e%" PRIu64, EVALUATIONS_PATH,
                 queued->first, queued->first + queued->count - 1);
    } else {
        err_one_line(queued->err.message);
        buf_addf(&post->out, "%s\n", queued->err.message);
    }
    serve_answer(post);
    arena_free(queued->arena);
    mem_free(asked);
}

void evaluations_post(struct evaluations *evaluations, struct serve_post *post)
{
    struct asked *asked = MEM_NEW(struct asked);
    asked->evaluations = evaluations;
    asked->post = post;
    asked->asked.arena = arena_new();
    if (evaluations->queue) {
        queue_ask(evaluations->queue, &asked->asked);
        return;
    }
    asked->asked.err = evaluations->err;
    asked->asked.outcome = QUEUE_BROKEN;
    answered(evaluations, &asked->asked);
}

static void changed(void *context)
{
    const struct evaluations *evaluations = context;
    if (evaluations->serve)
        serve_changed(evaluations->serve);
}

/* ---- lanes ---- */

/* As a search's: as many as were asked for, or one on each device that is named. */
static int share(const struct settings *settings, struct arena *arena, const char *backend,
                 struct lane_share shares[LANES_MAX], size_t *count, struct err *err)
{
    struct lane_spec spec = settings_lane(settings, NULL);
    if (!backends_find(backend)->device)
        spec.device = NULL;
    if (devices_resolve(arena, backend, spec.launcher, &spec.device, err))
        return -1;
    return lane_shares(arena, &spec, (size_t)settings->search.lanes, shares, count, err);
}

static size_t shares(void *context, const char *backend, struct lane_share shares[LANES_MAX])
{
    struct evaluations *evaluations = context;
    struct err err = {0};
    size_t count = 0;
    if (share(evaluations->settings, evaluations->arena, backend, shares, &count, &err) == 0)
        return count;
    log_event(LOG_WARN, "serve.lanes", backend, "one lane: %s", err.message);
    shares[0] = (struct lane_share){.cores = evaluations->settings->search.cores};
    return 1;
}

int evaluations_check(const struct settings *settings, struct err *err)
{
    struct lane_share shares[LANES_MAX];
    size_t count = 0;
    ARENA_LOCAL(arena);
    for (size_t i = 0; backends[i]; i++)
        if (share(settings, arena, backends[i]->target->name, shares, &count, err) &&
            err->code == ERR_USAGE)
            return -1;
    return 0;
}

/* ---- its life ---- */

struct evaluations *evaluations_open(struct loop *loop, const struct settings *settings,
                                     const char *folder)
{
    struct evaluations *evaluations = MEM_NEW(struct evaluations);
    evaluations->settings = settings;
    evaluations->arena = arena_new();
    if (!getcwd(evaluations->root, sizeof evaluations->root) || strcmp(evaluations->root, "/") == 0)
        *evaluations->root = '\0';
    evaluations->options =
        (struct queue_options){.context = evaluations,
                               .folder = arena_printf(evaluations->arena, "%s/evaluations", folder),
                               .spec = settings_lane(settings, NULL),
                               .shares = shares,
                               .parse = parse,
                               .answered = answered,
                               .changed = changed};
    struct lane_spec *spec = &evaluations->options.spec;
    spec->roofline = spec->later = true;
    spec->fitness = spec->walls = DEMAND_MUST;
    if (queue_open(loop, &evaluations->options, &evaluations->queue, &evaluations->err))
        evaluations->queue = NULL;
    return evaluations;
}

void evaluations_tell(struct evaluations *evaluations, struct serve *serve)
{
    evaluations->serve = serve;
}

void evaluations_stop(struct evaluations *evaluations)
{
    if (evaluations->queue)
        queue_stop(evaluations->queue);
}

void evaluations_free(struct evaluations *evaluations)
{
    queue_free(evaluations->queue);
    arena_free(evaluations->arena);
    mem_free(evaluations);
}

/* ---- pool thread ---- */

/* What comes behind "e17"; NULL where that is not what it is. */
static const char *read_id(const char *text, uint64_t *id)
{
    size_t digits = *text == 'e' ? strspn(text + 1, "0123456789") : 0;
    *id = digits > 0 && digits <= 18 ? strtoull(text + 1, NULL, 10) : 0;
    return *id > 0 ? text + 1 + digits : NULL;
}

static int put_range(struct queue *queue, uint64_t first, uint64_t last, struct buf *out,
                     struct err *err)
{
    buf_add_text(out, "{\"items\":[");
    for (uint64_t id = first; id <= last; id++) {
        if (id > first)
            buf_add_char(out, ',');
        if (queue_put_item(queue, id, out, err))
            return -1;
    }
    buf_add_text(out, "]}");
    return 0;
}

/* "/e17" or "/e17-e40", with `last` 0 for one alone. */
static bool read_span(const char *rest, uint64_t *first, uint64_t *last)
{
    const char *end = *rest == '/' ? read_id(rest + 1, first) : NULL;
    *last = 0;
    if (end && *end == '-')
        end = read_id(end + 1, last);
    return end && *end == '\0' &&
           (*last == 0 || (*last >= *first && *last - *first < QUEUE_AT_ONCE));
}

int evaluations_put(struct evaluations *evaluations, const char *rest, struct buf *out,
                    struct err *err)
{
    uint64_t first, last;
    if (!evaluations->queue)
        return err_set(err, evaluations->err.code, "%s", evaluations->err.message);
    if (*rest == '\0') {
        queue_put_facts(evaluations->queue, out);
        return 0;
    }
    if (!read_span(rest, &first, &last))
        return err_set(err, ERR_NOT_FOUND, "expected e17, or e17-e40: at most %d", QUEUE_AT_ONCE);
    return last ? put_range(evaluations->queue, first, last, out, err)
                : queue_put_item(evaluations->queue, first, out, err);
}

bool evaluations_feeds(const char *rest)
{
    uint64_t first, last;
    return read_span(rest, &first, &last);
}

int evaluations_feed(struct evaluations *evaluations, const char *rest, char note[SERVE_NOTE],
                     struct buf *out, enum serve_feed *left, struct err *err)
{
    uint64_t first, last, done = 0;
    _Static_assert((int)SERVE_NOTE >= (int)QUEUE_AT_ONCE, "a letter for each of a request");
    if (!evaluations->queue)
        return err_set(err, evaluations->err.code, "%s", evaluations->err.message);
    if (!read_span(rest, &first, &last))
        return err_set(err, ERR_NOT_FOUND, "no such evaluations");
    size_t count = last ? last - first + 1 : 1;
    *left = FEED_WAITS;
    for (size_t i = 0; i < count && *left == FEED_WAITS; i++) {
        if (queue_put_news(evaluations->queue, first + i, &note[i], out, err)) {
            if (!note[i])
                return -1;
            note[i] = QUEUE_TOLD_DONE; /* too old to be kept, since its viewer did not read */
        }
        done += note[i] == QUEUE_TOLD_DONE;
        if (out->length > SERVE_FEED_BYTES)
            *left = FEED_MORE;
    }
    if (done == count)
        *left = FEED_ENDS;
    return 0;
}

uint64_t evaluations_version(struct evaluations *evaluations)
{
    return evaluations->queue ? queue_version(evaluations->queue) : 0;
}
