/* Any arguments (one a line; the first line is a configuration file with ";" for its line ends)
 * are settings or a message; settings that are shown read back as the same. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/options.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct settings {
    bool flag, other;
    int64_t number, elsewhere, duration, size;
    double real;
    const char *text, *choice;
    int64_t dollars;
    enum { FIRST, SECOND } order;
};

#define AT(field) offsetof(struct settings, field), #field

/* clang-format off */
static const struct option options[] = {
    {"flag", 'f', OPTION_BOOL, AT(flag), "true", 0, 0, NULL, NULL, NULL, "a flag", 3},
    {"other", 0, OPTION_BOOL, AT(other), NULL, 0, 0, NULL, NULL, NULL, "another", 1},
    {"number", 'n', OPTION_INT, AT(number), "8", -4096, 4096, NULL, NULL, "N", "a number", 1},
    {"duration", 'd', OPTION_DURATION, AT(duration), "90s", 1, 0, NULL, NULL, NULL, "a time", 1},
    {"size", 's', OPTION_SIZE, AT(size), "64M", 0, 0, NULL, NULL, NULL, "a size", 1},
    {"real", 'r', OPTION_REAL, AT(real), "0.5", 0, 0, NULL, NULL, NULL, "a share", 1},
    {"text", 't', OPTION_TEXT, AT(text), NULL, 0, 0, NULL, NULL, NULL, "a text", 1},
    {"choice", 'c', OPTION_CHOICE, AT(choice), "a", 0, 0, "a|bc|null", NULL, NULL, "a choice", 1},
    {"dollars", 0, OPTION_DOLLARS, AT(dollars), "0", 0, 1000, NULL, NULL, NULL, "a cap", 1},
    {"order", 0, OPTION_ENUM, AT(order), "second", 0, 0, "first|second", NULL, NULL, "which", 1},
    {"elsewhere", 'e', OPTION_INT, AT(elsewhere), "8", 0, 0, NULL, NULL, NULL, "not here", 4},
};
/* clang-format on */

static const struct option_table table = {options, sizeof options / sizeof options[0]};

static void require_message(const struct err *err)
{
    REQUIRE(err->code == ERR_USAGE);
    REQUIRE(err->message[0] != '\0' && strchr(err->message, '\n') == NULL);
}

static int read_settings(const char *bytes, size_t length, struct settings *settings,
                         enum option_origin *origins, struct arena *arena, struct err *err)
{
    int fd = memfd_create("options", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    const char *path = arena_printf(arena, "/proc/self/fd/%d", fd);
    int result = options_file(&table, settings, origins, arena, path, err);
    close(fd);
    return result;
}

/* Texts that are not UTF-8 cannot stand in YAML; a command line may hold them all the same. */
static bool is_ascii(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            return false;
    return true;
}

static void show(const struct settings *settings, struct buf *out)
{
    for (size_t i = 0; i < table.count; i++) {
        option_show(&options[i], settings, out);
        buf_add_char(out, '\n');
    }
}

static void require_shown_reads_back(const struct settings *settings, struct arena *arena)
{
    struct settings again = {0};
    enum option_origin again_origins[sizeof options / sizeof options[0]];
    struct buf first, second;
    struct err err;
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    show(settings, &first);
    REQUIRE(options_defaults(&table, &again, again_origins, arena, &err) == 0);
    if (read_settings(buf_text(&first), first.length, &again, again_origins, arena, &err) != 0) {
        fprintf(stderr, "%s\n%s\n", err.message, buf_text(&first));
        abort();
    }
    show(&again, &second);
    REQUIRE(strcmp(buf_text(&first), buf_text(&second)) == 0);
    buf_free(&first);
    buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct settings settings;
    enum option_origin origins[sizeof options / sizeof options[0]];
    struct err err = {0};
    char *text = arena_strndup(arena, (const char *)data, size), *rest = NULL;
    char *argv[16];
    int argc = 0;
    char *file = strsep(&text, "\n");
    for (rest = text; rest != NULL && argc < 16;)
        argv[argc++] = strsep(&rest, "\n");
    for (char *at = file; *at != '\0'; at++)
        if (*at == ';')
            *at = '\n';

    REQUIRE(options_defaults(&table, &settings, origins, arena, &err) == 0);
    const char *positionals[4];
    size_t count = 0;
    if (read_settings(file, strlen(file), &settings, origins, arena, &err) != 0)
        require_message(&err);
    if (options_command_line(&table, &settings, origins, arena, 3, argc, argv, positionals, 4,
                             &count, &err) != 0)
        require_message(&err);
    REQUIRE(count <= 4);
    REQUIRE(settings.number >= -4096 && settings.number <= 4096 && settings.duration >= 1);
    if (is_ascii(settings.text))
        require_shown_reads_back(&settings, arena);
    arena_free(arena);
    return 0;
}
