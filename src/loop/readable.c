/* loop/readable: a uv_poll that is stopped at each event, so that one event is one wake. */
#include "loop/readable.h"

#include "base/mem.h"
#include "loop/private.h"
#include "loop/task.h"

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct readable *readable = handle->data;
    (void)status, (void)events; /* an error is for the library to find, when it reads */
    uv_poll_stop(handle);
    readable->waiting = false;
    readable->ready = true;
    task_complete(readable->owner);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

int readable_start(struct loop *loop, struct readable *readable, struct task *owner, int fd,
                   struct err *err)
{
    if (readable->waiting)
        return 0;
    int status = 0;
    if (readable->handle == NULL) {
        uv_poll_t *handle = MEM_NEW(uv_poll_t);
        status = uv_poll_init(&loop->uv, handle, fd);
        if (status != 0) {
            mem_free(handle);
            return err_set(err, ERR_ENVIRONMENT, "cannot watch descriptor %d: %s", fd,
                           uv_strerror(status));
        }
        handle->data = readable;
        readable->handle = handle;
    }
    status = uv_poll_start(readable->handle, UV_READABLE, on_ready);
    if (status != 0)
        return err_set(err, ERR_ENVIRONMENT, "cannot watch descriptor %d: %s", fd,
                       uv_strerror(status));
    readable->owner = owner;
    readable->ready = false;
    readable->waiting = true;
    task_expect(owner);
    return 0;
}

void readable_stop(struct readable *readable)
{
    if (readable->handle == NULL)
        return;
    uv_close(readable->handle, free_handle);
    readable->handle = NULL;
    if (readable->waiting)
        task_forget(readable->owner);
    readable->waiting = false;
}
