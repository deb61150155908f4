/* agents/llm/completion: requests that go to no provider: into a mailbox, or to a recorded run. */
#include "agents/llm/completion_private.h"

#include "agents/llm/completion_record.h"
#include "base/log.h"

#include <string.h>

/* When its answer is there: a request that is awaited may be asked again by who goes on. */
static void note_answer(struct ask *ask)
{
    ask->completions->totals.answers++;
    ask->tally->view.asked++;
    ask->tally->view.answered++;
}

/* ---- mailbox ---- */

static void post(void *argument)
{
    mailbox_post(argument);
    if (((struct mail *)argument)->err.code == ERR_NONE)
        mailbox_look(argument);
}

static void look(void *argument)
{
    mailbox_look(argument);
}

static void fill_mail(struct ask *ask)
{
    ask->mail = (struct mail){.folder = ask->model->source,
                              .key = ask->key,
                              .purpose = ask->purpose != NULL ? ask->purpose : "",
                              .asker = ask->task.id,
                              .request = &ask->request,
                              .arena = ask->arena};
}

static enum task_result take_mail(struct ask *ask)
{
    ask->awaited = false;
    ask->completion = ask->mail.completion;
    note_answer(ask);
    log_event(LOG_INFO, "mailbox.answer", ask->task.id, "%s/%s", ask->mail.folder, ask->key);
    return ask_store(ask, NULL, NULL);
}

/* A file that cannot be read as an answer waits for whoever wrote it, like one that is not there.
 */
static void complain(struct ask *ask)
{
    if (ask->mail.complained)
        return;
    ask->mail.complained = true;
    log_event(LOG_WARN, "mailbox.unreadable", ask->task.id, "%s", ask->mail.err.message);
}

enum task_result ask_step_mailing(struct ask *ask)
{
    struct mail *mail = &ask->mail;
    if (ask->work.active || (ask->timer.armed && !ask->work.done))
        return TASK_WAIT;
    if (!ask->work.done && !mail->posted && ask->completions->held) { /* nothing is sent now */
        timer_start(ask->task.loop, &ask->timer, &ask->task, MAILBOX_LOOK_MS);
        return TASK_WAIT;
    }
    if (!ask->work.done) {
        if (!mail->posted)
            fill_mail(ask);
        work_start(ask->task.loop, &ask->work, &ask->task, mail->posted ? look : post, mail);
        return TASK_WAIT;
    }
    ask->work.done = false;
    if (!mail->posted)
        return ask_fail(ask, FAULT_FATAL, &mail->err);
    if (mail->taken)
        return take_mail(ask);
    if (mail->err.code != ERR_NONE)
        complain(ask);
    else
        mail->complained = mail->complained && mail->seen;
    ask->awaited = !mail->seen || mail->err.code != ERR_NONE;
    timer_start(ask->task.loop, &ask->timer, &ask->task, MAILBOX_LOOK_MS);
    return TASK_WAIT;
}

/* ---- replay ---- */

static void find(void *argument)
{
    struct ask *ask = argument;
    const char *name = replay_name(ask->task.id, ask->completions->run);
    if (replay_find(ask->replay, ask->completions->store, name,
                    ask->purpose != NULL ? ask->purpose : "", ask->step, &ask->stored,
                    &ask->stored_err) == 0)
        ask->stored_err.code = ERR_NONE;
}

enum task_result ask_step_replaying(struct ask *ask)
{
    if (!ask->work.active && !ask->work.done)
        work_start(ask->task.loop, &ask->work, &ask->task, find, ask);
    if (!ask->work.done)
        return TASK_WAIT;
    ask->work.done = false;
    if (ask->stored_err.code != ERR_NONE ||
        completion_decode(ask->arena, buf_text(&ask->stored), ask->stored.length, &ask->completion,
                          &ask->stored_err) != 0)
        return ask_fail(ask, FAULT_FATAL, &ask->stored_err);
    note_answer(ask);
    if (strcmp(ask->completion.finish, "refused") == 0) {
        ask->fault = FAULT_REFUSED;
        err_set(&ask->err, ERR_PROTOCOL, "the provider refused to answer");
    }
    return ask_store(ask, NULL, NULL);
}
