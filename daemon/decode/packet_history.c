#include "daemon/decode/packet_history.h"

#include <errno.h>
#include <libavcodec/packet.h>

static AVPacket **at(struct packet_history *backlog, int i)
{
    return &backlog->packet[(backlog->start + i) % PACKET_HISTORY_MAX];
}

static void drop_oldest(struct packet_history *backlog)
{
    av_packet_unref(*at(backlog, 0));
    backlog->start = (backlog->start + 1) % PACKET_HISTORY_MAX;
    backlog->first++;
    backlog->n--;
    backlog->replayed -= backlog->replayed > 0;
}

void packet_history_clear(struct packet_history *backlog)
{
    while (backlog->n > 0)
        drop_oldest(backlog);
    backlog->whole = false;
}

void packet_history_finish(struct packet_history *backlog)
{
    packet_history_clear(backlog);
    for (int i = 0; i < PACKET_HISTORY_MAX; i++)
        av_packet_free(&backlog->packet[i]);
}

int packet_history_add(struct packet_history *backlog, const AVPacket *packet, int64_t serial)
{
    if (backlog->n == PACKET_HISTORY_MAX)
        packet_history_clear(backlog);
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

void packet_history_shown(struct packet_history *backlog, int64_t serial)
{
    int64_t older = serial - backlog->first;
    if (older < 0 || older >= backlog->n || !((*at(backlog, (int)older))->flags & AV_PKT_FLAG_KEY))
        return;
    while (backlog->first < serial)
        drop_oldest(backlog);
    backlog->whole = true;
}

void packet_history_rewind(struct packet_history *backlog)
{
    backlog->replayed = 0;
}

bool packet_history_replays(const struct packet_history *backlog)
{
    return backlog->replayed < backlog->n;
}

const AVPacket *packet_history_next(struct packet_history *backlog, int64_t *serial)
{
    if (!packet_history_replays(backlog))
        return NULL;
    *serial = backlog->first + backlog->replayed;
    return *at(backlog, backlog->replayed++);
}
