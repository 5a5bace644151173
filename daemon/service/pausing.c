#include "daemon/service/pausing.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/service/reply.h"

int pausing_read(struct pausing *pausing, const char *text)
{
    int used = 0;
    return sscanf(text, " %23[A-Za-z0-9_-]%n", pausing->camera, &used) == 1 ? used : -1;
}

static void edited(struct reload_request *request, int rc, const struct reload_result *result,
                   const char *errors)
{
    struct pausing *pausing =
        (struct pausing *)((char *)request - offsetof(struct pausing, request));
    struct edit *edit = request->edit;
    char done[64];
    (void)result; // other changes may have shared the reload
    snprintf(done, sizeof done, "camera %s: %s", pausing->camera, edit_done_text(edit));
    if (rc == -EALREADY)
        snprintf(done, sizeof done, "%.*s", (int)strcspn(errors, "\n"), errors);
    pausing->done(pausing,
                  rc == 0 || rc == -EALREADY ? reply_done(done) : reply_refusal(rc, errors));
    edit_close(edit);
}

void pausing_start(struct pausing *pausing, enum edit_kind kind, struct reload *reload,
                   void (*done)(struct pausing *, char *reply))
{
    pausing->done = done;
    pausing->request = (struct reload_request){.done = edited};
    if (!reload_has_file(reload))
        done(pausing, reply_refusal(-ENOENT, "a configuration from standard input has no folder to "
                                             "keep changes in"));
    else if (edit_open(&pausing->request.edit, kind, pausing->camera, reload->file, NULL) < 0)
        done(pausing, NULL);
    else
        reload_start(reload, &pausing->request);
}
