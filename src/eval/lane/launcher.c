/* eval/lane/launcher: the words that stand before a worker's command, as a shell would split them:
 * at blanks, but not within quotes. Nothing is expanded. */
#include "eval/lane/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a shell would find it; the name itself where it would not, for the message. */
static const char *in_path(struct arena *arena, const char *name)
{
    const char *path = getenv("PATH");
    char *rest = arena_strdup(arena, path != NULL ? path : "/usr/bin:/bin"), *folder;
    while ((folder = strsep(&rest, ":")) != NULL) {
        const char *file = arena_printf(arena, "%s/%s", *folder != '\0' ? folder : ".", name);
        if (access(file, X_OK) == 0)
            return file;
    }
    return name;
}

/* One word from *text on, without its quotes; NULL: a quote is not closed. */
static char *next_word(struct arena *arena, const char **text)
{
    char *word = arena_strdup(arena, *text);
    size_t length = 0;
    const char *at = *text;
    for (char quote = '\0'; *at != '\0' && (quote != '\0' || strchr(" \t", *at) == NULL); at++) {
        bool escapes = *at == '\\' && at[1] != '\0' &&
                       (quote == '\0' || (quote == '"' && strchr("\"\\$`", at[1]) != NULL));
        if (escapes)
            word[length++] = *++at;
        else if (quote == '\0' && (*at == '\'' || *at == '"'))
            quote = *at;
        else if (*at == quote)
            quote = '\0';
        else
            word[length++] = *at;
        if (quote != '\0' && at[1] == '\0')
            return NULL;
    }
    word[length] = '\0';
    *text = at;
    return word;
}

int lane_launcher(struct arena *arena, const char *text, const char **words, size_t most,
                  size_t *count, struct err *err)
{
    const char *at = text;
    *count = 0;
    while (at != NULL && *(at += strspn(at, " \t")) != '\0') {
        if (*count == most)
            return err_set(err, ERR_USAGE, "--launcher: more than %zu words", most);
        words[*count] = next_word(arena, &at);
        if (words[*count] == NULL)
            return err_set(err, ERR_USAGE, "--launcher: a quote is not closed: %s", text);
        (*count)++;
    }
    if (*count > 0 && strchr(words[0], '/') == NULL)
        words[0] = in_path(arena, words[0]);
    return 0;
}
