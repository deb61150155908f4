/* The files of an emitted folder. */
#include "eval/emit/emit.h"

#include "base/file.h"
#include "base/mem.h"

#include <sys/stat.h>

enum { FILE_MOST = 64 << 20 };

int emit_write(const struct emission *emission, const char *name, const struct buf *text,
               struct err *err)
{
    MEM_LOCAL char *path = file_join(emission->folder, name);
    int failed = text->dropped > 0 ? err_set(err, ERR_LIMIT, "%s: too long", path)
                                   : file_write(path, text->data, text->length, err);
    if (!failed) /* for whoever may read the folder, as a compiler would write it */
        (void)chmod(path, 0644);
    return failed;
}

int emit_copy_file(const struct emission *emission, const char *path, const char *name,
                   struct err *err)
{
    BUF_LOCAL(text, FILE_MOST);
    if (file_read(path, &text, err))
        return -1;
    return emit_write(emission, name, &text, err);
}

int emit_copy(const struct emission *emission, const char *from, const char *name, struct err *err)
{
    char *path = file_data_path(arena_printf(emission->arena, "libexec/emit/%s", from));
    if (!path)
        return err_set(err, ERR_ENVIRONMENT, "libexec/emit/%s is not where the program expects it",
                       from);
    int failed = emit_copy_file(emission, path, name, err);
    mem_free(path);
    return failed;
}
