#include "daemon/camera/backlog.h"

#include <errno.h>
#include <libavcodec/packet.h>

static AVPacket **at(struct backlog *backlog, int i)
{
    return &backlog->packet[(backlog->start + i) % BACKLOG_MAX];
}

static void drop_oldest(struct backlog *backlog)
{
    av_packet_unref(*at(backlog, 0));
    backlog->start = (backlog->start + 1) % BACKLOG_MAX;
    backlog->first++;
    backlog->n--;
    backlog->replayed -= backlog->replayed > 0;
}

void backlog_clear(struct backlog *backlog)
{
    while (backlog->n > 0)
        drop_oldest(backlog);
    backlog->whole = false;
}

void backlog_finish(struct backlog *backlog)
{
    backlog_clear(backlog);
    for (int i = 0; i < BACKLOG_MAX; i++)
        av_packet_free(&backlog->packet[i]);
}

int backlog_add(struct backlog *backlog, const AVPacket *packet, int64_t serial)
{
    if (backlog->n == BACKLOG_MAX)
        backlog_clear(backlog);
    if (backlog->n == 0 && !(packet->flags & AV_PKT_FLAG_KEY))
        return 0;
    AVPacket **kept = at(backlog, backlog->n);
    if ((!*kept && !(*kept = av_packet_alloc())) || av_packet_ref(*kept, packet) < 0)
        return -ENOMEM;
    if (backlog->n == 0)
        backlog->first = serial;
    backlog->replayed += backlog->replayed == backlog->n;
    backlog->n++;
    return 0;
}

void backlog_shown(struct backlog *backlog, int64_t serial)
{
    int64_t older = serial - backlog->first;
    if (older < 0 || older >= backlog->n || !((*at(backlog, (int)older))->flags & AV_PKT_FLAG_KEY))
        return;
    while (backlog->first < serial)
        drop_oldest(backlog);
    backlog->whole = true;
}

void backlog_rewind(struct backlog *backlog)
{
    backlog->replayed = 0;
}

bool backlog_replays(const struct backlog *backlog)
{
    return backlog->replayed < backlog->n;
}

const AVPacket *backlog_next(struct backlog *backlog, int64_t *serial)
{
    if (!backlog_replays(backlog))
        return NULL;
    *serial = backlog->first + backlog->replayed;
    return *at(backlog, backlog->replayed++);
}
