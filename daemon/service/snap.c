#include "daemon/service/snap.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/service/reply.h"

static const int64_t PATIENCE_NS = INT64_C(4000000000);

int snap_read(struct snap *snap, const char *text)
{
    char target[2 * TARGET_NAME_MAX + 4];
    int width, used;
    if (sscanf(text, " %65[A-Za-z0-9_/-] %4d%n", target, &width, &used) != 2 ||
        !target_read(&snap->target, target) || width < PREVIEW_WIDTH_MIN ||
        width > PREVIEW_WIDTH_MAX)
        return -1;
    snap->target.wish.width = width;
    return used;
}

static void take(struct preview_asker *asker, struct preview_picture *picture)
{
    struct snap *snap = (struct snap *)((char *)asker - offsetof(struct snap, asker));
    char why[PREVIEW_WHY_MAX + 2 * TARGET_NAME_MAX + 8];
    const char *output = snap->target.wish.output;
    if (!picture->why[0]) {
        snap->done(snap, reply_jpeg(picture->file, picture->size));
        return;
    }
    snprintf(why, sizeof why, "%s%s%s: %s", snap->target.camera, *output ? "/" : "", output,
             picture->why);
    snap->done(snap, reply_refusal(-EAGAIN, why));
}

void snap_take(struct snap *snap, const struct metrics *metrics,
               void (*done)(struct snap *, char *reply))
{
    char why[PREVIEW_WHY_MAX];
    snap->done = done;
    snap->asker =
        (struct preview_asker){.wish = snap->target.wish, .patience_ns = PATIENCE_NS, .take = take};
    const int rc = target_ask(metrics, snap->target.camera, &snap->asker, why, sizeof why);
    if (rc < 0)
        done(snap, reply_refusal(rc == -ENOENT ? rc : -EAGAIN, why));
}
