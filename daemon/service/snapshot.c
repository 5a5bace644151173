#include "daemon/service/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t PATIENCE_NS = INT64_C(4000000000);
enum { WIDTH = 640 }; // by default

struct snapshot {
    struct http_exchange *exchange;
    struct target target;
    struct preview_asker asker;
};

static void gone(void *opaque)
{
    struct snapshot *snapshot = opaque;
    preview_leave(&snapshot->asker);
    free(snapshot);
}

static void take(struct preview_asker *asker, struct preview_picture *picture)
{
    struct snapshot *snapshot =
        (struct snapshot *)((char *)asker - offsetof(struct snapshot, asker));
    struct http_page page = {.status = 200, .type = "image/jpeg", .size = picture->size};
    const char *output = snapshot->target.wish.output;
    if (picture->why[0]) {
        http_refuse(snapshot->exchange, 503, "%s%s%s: %s", snapshot->target.camera,
                    *output ? "/" : "", output, picture->why);
    } else {
        page.body = malloc(picture->size);
        if (page.body)
            memcpy(page.body, picture->file, picture->size);
        http_answer(snapshot->exchange, &page);
    }
    free(snapshot);
}

// False: the request was refused.
static bool read_wish(struct http_exchange *exchange, struct target *ret)
{
    const char *output = http_part(exchange, 1);
    const char *width = http_argument(exchange, "width"), *plane = http_argument(exchange, "plane");
    struct preview_wish *wish = &ret->wish;
    *ret = (struct target){.wish = {.plane = -1, .width = WIDTH}};
    if (!target_read_name(ret->camera, http_part(exchange, 0)) ||
        (output && !target_read_name(wish->output, output))) {
        http_refuse(exchange, 404, "there is no camera or output of such a name");
        return false;
    }
    if (output && plane) {
        wish->plane = *plane - '0';
        if (wish->plane < 0 || wish->plane > 2 || plane[1]) {
            http_refuse(exchange, 400, "plane is 0, 1 or 2");
            return false;
        }
    }
    if (!output && width && !target_read_width(&wish->width, width)) {
        http_refuse(exchange, 400, "width is a number of pixels from %d to %d", PREVIEW_WIDTH_MIN,
                    PREVIEW_WIDTH_MAX);
        return false;
    }
    return true;
}

void snapshot_serve(const struct metrics *metrics, struct http_exchange *exchange)
{
    struct target target;
    char why[PREVIEW_WHY_MAX];
    if (!read_wish(exchange, &target))
        return;
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) {
        http_refuse(exchange, 503, "no memory");
        return;
    }
    *snapshot = (struct snapshot){
        .exchange = exchange,
        .target = target,
        .asker = {.wish = target.wish, .patience_ns = PATIENCE_NS, .take = take},
    };
    const int rc = target_ask(metrics, target.camera, &snapshot->asker, why, sizeof why);
    if (rc == 0) {
        http_hold(exchange, gone, snapshot);
        return;
    }
    http_refuse(exchange, rc == -ENOENT ? 404 : rc == -EINVAL ? 400 : 503, "%s", why);
    free(snapshot);
}
