#include "eval/problem/target.h"

#include <string.h>

static const struct target *const none[] = {NULL};
static const struct target *const *all = none;

void targets_use(const struct target *const *targets)
{
    all = targets;
}

const struct target *target_find(const char *name)
{
    for (size_t i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

/* The one at `index` of all targets' languages; NULL behind the last. */
static const struct language *language_at(size_t index)
{
    for (size_t i = 0; all[i] != NULL; i++)
        for (size_t k = 0; all[i]->languages[k] != NULL; k++)
            if (index-- == 0)
                return all[i]->languages[k];
    return NULL;
}

const struct language *language_of_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    const struct language *language;
    for (size_t i = 0; dot != NULL && (language = language_at(i)) != NULL; i++)
        for (size_t k = 0; language->suffixes[k] != NULL; k++)
            if (strcmp(dot, language->suffixes[k]) == 0)
                return language;
    return NULL;
}

const struct language *language_find(const char *name)
{
    const struct language *language;
    for (size_t i = 0; (language = language_at(i)) != NULL; i++)
        if (strcmp(language->name, name) == 0)
            return language;
    return NULL;
}

bool target_has(const struct target *target, const struct language *language)
{
    for (size_t i = 0; target->languages[i] != NULL; i++)
        if (target->languages[i] == language)
            return true;
    return false;
}

const struct target *language_target(const struct language *language)
{
    for (size_t i = 0; all[i] != NULL; i++)
        if (target_has(all[i], language))
            return all[i];
    return NULL;
}

const struct language *language_of_text(const struct target *target, const char *text)
{
    size_t i = 0;
    while (target->languages[i + 1] != NULL && target->languages[i]->sign != NULL &&
           strstr(text, target->languages[i]->sign) == NULL)
        i++;
    return target->languages[i];
}

const char *language_folder(const struct target *target, const struct language *language)
{
    return language->own != NULL ? language->own : target->name;
}

size_t target_choose(const struct target *target, const char *word,
                     const struct language *chosen[TARGET_FOLDERS_MAX])
{
    size_t count = 0;
    bool all_of_them = word != NULL && strcmp(word, "both") == 0, several = false;
    for (size_t i = 0; target->languages[i] != NULL && count < TARGET_FOLDERS_MAX; i++) {
        const struct language *language = target->languages[i];
        const char *folder = language_folder(target, language);
        bool first = i == 0;
        several = several || language->own != NULL;
        if (word == NULL ? !first : !all_of_them && strcmp(word, folder) != 0)
            continue;
        bool again = false;
        for (size_t k = 0; k < count; k++)
            again = again || strcmp(folder, language_folder(target, chosen[k])) == 0;
        if (!again)
            chosen[count++] = language;
    }
    return all_of_them && !several ? 0 : count;
}

static void add_item(const char *item, const char **last, struct buf *out)
{
    if (*last != NULL)
        buf_addf(out, "%s%s", out->length > 0 ? ", " : "", *last);
    *last = item;
}

void languages_list(bool suffixes, struct buf *out)
{
    const struct language *language;
    const char *last = NULL;
    for (size_t i = 0; (language = language_at(i)) != NULL; i++)
        if (!suffixes)
            add_item(language->name, &last, out);
        else
            for (size_t k = 0; language->suffixes[k] != NULL; k++)
                add_item(language->suffixes[k], &last, out);
    buf_addf(out, "%s%s", out->length > 0 ? " or " : "", last != NULL ? last : "none");
}
