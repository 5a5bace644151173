#include "daemon/output/packet_queue.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

enum {
    WAKE_PART = 4,      // the writer is woken when this fraction of the room is used
    RECORD_BYTES = 320, // libavutil's private record of a buffer, and malloc's share
};
static const int64_t GLANCE_NS = 50000000; // interval at which a wait checks *stop

// Packets in decoding order.
struct packet_list {
    struct queued_packet *first, **last;
    size_t bytes;
};

struct packet_queue {
    struct packet_queue_options options;
    pthread_mutex_t lock;      // guards all below
    pthread_cond_t room;       // a packet was taken, or the sink's state changed
    struct packet_list wait;   // for the writer
    struct packet_list recent; // of the last before_ns, from a keyframe on
    bool recent_broken;        // packets up to the next keyframe are not added to `recent`
    enum pool_sink sink;
    enum loss loss; // of the packets up to the next keyframe; LOSSES: they are added
    uint32_t clip;
    int64_t until_ns; // end of the clip; 0: there was none
};

void queued_packet_free(struct queued_packet *packet)
{
    if (!packet)
        return;
    av_packet_free(&packet->av);
    avcodec_parameters_free(&packet->stream);
    free(packet);
}

// --- lists

static void list_init(struct packet_list *list)
{
    *list = (struct packet_list){.last = &list->first};
}

static void list_append(struct packet_list *list, struct queued_packet *packet)
{
    packet->next = NULL;
    *list->last = packet;
    list->last = &packet->next;
    list->bytes += packet->memory;
}

static struct queued_packet *list_take(struct packet_list *list)
{
    struct queued_packet *packet = list->first;
    if (!packet)
        return NULL;
    list->bytes -= packet->memory;
    if (!(list->first = packet->next))
        list->last = &list->first;
    return packet;
}

static bool is_keyframe(const struct queued_packet *packet)
{
    return packet->stream != NULL;
}

// A small picture takes far less than its buffer, which is a power of two, and the records of it.
static size_t memory_of(const struct queued_packet *packet)
{
    size_t bytes = sizeof *packet + sizeof *packet->av + sizeof *packet->av->buf + RECORD_BYTES;
    bytes += packet->av->buf ? packet->av->buf->size : (size_t)packet->av->size;
    for (int i = 0; i < packet->av->side_data_elems; i++)
        bytes += packet->av->side_data[i].size + RECORD_BYTES;
    if (packet->stream)
        bytes += sizeof *packet->stream + (size_t)packet->stream->extradata_size + RECORD_BYTES;
    return bytes;
}

// Returns a copy with its own references, or NULL without memory.
static struct queued_packet *copy_packet(const struct queued_packet *from)
{
    struct queued_packet *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *from;
    copy->av = av_packet_clone(from->av);
    copy->stream = from->stream ? avcodec_parameters_alloc() : NULL;
    if (!copy->av || (from->stream &&
                      (!copy->stream || avcodec_parameters_copy(copy->stream, from->stream) < 0))) {
        queued_packet_free(copy);
        return NULL;
    }
    copy->memory = memory_of(copy);
    return copy;
}

// --- life

int packet_queue_open(struct packet_queue **ret, const struct packet_queue_options *options)
{
    struct packet_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->options = *options;
    queue->loss = LOSS_DAMAGED; // packets before the first keyframe cannot be decoded
    list_init(&queue->wait);
    list_init(&queue->recent);
    pthread_mutex_init(&queue->lock, NULL);
    condition_init(&queue->room);
    *ret = queue;
    return 0;
}

// Loses the waiting packets before one of them, or all of them if it is NULL.
static void lose_waiting(struct packet_queue *queue, const struct queued_packet *before,
                         enum loss reason)
{
    while (queue->wait.first != before) {
        ledger_lose(queue->options.ledger, reason);
        queued_packet_free(list_take(&queue->wait));
    }
}

void packet_queue_close(struct packet_queue *queue)
{
    struct queued_packet *packet;
    if (!queue)
        return;
    lose_waiting(queue, NULL, LOSS_STOPPING);
    while ((packet = list_take(&queue->recent)))
        queued_packet_free(packet);
    pthread_cond_destroy(&queue->room);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

// --- offering packets to the writer

// Leaves room for a new clip, which adds all remembered packets at once.
static bool has_room(const struct packet_queue *queue, size_t memory)
{
    return !queue->wait.first ||
           queue->wait.bytes + memory <= queue->options.bytes_max + queue->recent.bytes;
}

static void wait_for_room(struct packet_queue *queue, size_t memory, const _Atomic bool *stop)
{
    while (queue->options.waits && queue->sink == POOL_SINK_OPEN && !has_room(queue, memory) &&
           !atomic_load(stop))
        condition_wait(&queue->room, &queue->lock, monotonic_ns() + GLANCE_NS);
}

// Returns the reason to drop the packet, or LOSSES to queue it.
static enum loss loss_of(const struct packet_queue *queue, const struct queued_packet *packet,
                         bool keyframe)
{
    if (queue->sink == POOL_SINK_REFUSED)
        return LOSS_SINK;
    if (queue->sink != POOL_SINK_OPEN)
        return LOSS_STOPPING;
    if (queue->loss != LOSSES && !keyframe)
        return queue->loss;
    return packet && has_room(queue, packet->memory) ? LOSSES : LOSS_OVERFLOW;
}

// Takes ownership of the packet. NULL: memory ran out.
static void offer_packet(struct packet_queue *queue, struct queued_packet *packet, bool keyframe)
{
    queue->loss = loss_of(queue, packet, keyframe);
    ledger_offer(queue->options.ledger);
    if (queue->loss == LOSSES) {
        packet->clip = queue->clip;
        list_append(&queue->wait, packet);
    } else {
        ledger_lose(queue->options.ledger, queue->loss);
        queued_packet_free(packet);
    }
}

// --- what is remembered for clips

// Drops whole groups of pictures: the rest begins with a keyframe of the last before_ns.
static void forget_old(struct packet_queue *queue, int64_t now_ns)
{
    struct packet_list *recent = &queue->recent;
    while (recent->first && (now_ns - recent->first->received_ns > queue->options.before_ns ||
                             recent->bytes > queue->options.before_bytes_max)) {
        do
            queued_packet_free(list_take(recent));
        while (recent->first && !is_keyframe(recent->first));
    }
}

static void remember(struct packet_queue *queue, struct queued_packet *packet)
{
    if (!packet)
        return;
    forget_old(queue, packet->received_ns);
    queue->recent_broken &= !is_keyframe(packet);
    if (is_keyframe(packet) || (queue->recent.first && !queue->recent_broken))
        list_append(&queue->recent, packet);
    else
        queued_packet_free(packet);
}

static bool is_idle(const struct packet_queue *queue, int64_t now_ns)
{
    return queue->options.before_ns > 0 && now_ns >= queue->until_ns;
}

static void begin_clip(struct packet_queue *queue)
{
    queue->clip++;
    queue->loss = LOSS_DAMAGED;
    forget_old(queue, monotonic_ns());
    for (struct queued_packet *packet = queue->recent.first; packet; packet = packet->next)
        offer_packet(queue, copy_packet(packet), is_keyframe(packet));
    if (queue->recent_broken && queue->loss == LOSSES)
        queue->loss = LOSS_DAMAGED;
}

bool packet_queue_request(struct packet_queue *queue, int64_t until_ns)
{
    pthread_mutex_lock(&queue->lock);
    const bool takes = queue->options.before_ns > 0 && queue->sink == POOL_SINK_OPEN;
    if (takes && is_idle(queue, monotonic_ns()))
        begin_clip(queue);
    if (takes && until_ns > queue->until_ns)
        queue->until_ns = until_ns;
    pthread_mutex_unlock(&queue->lock);
    return takes;
}

// --- adding

bool packet_queue_add(struct packet_queue *queue, const struct packet *packet,
                      const AVCodecParameters *stream, const _Atomic bool *stop)
{
    // Packets up to the next keyframe depend on the old one, which is not recorded again.
    if (packet->old) {
        pthread_mutex_lock(&queue->lock);
        queue->recent_broken = true;
        queue->loss = LOSS_DAMAGED;
        pthread_mutex_unlock(&queue->lock);
        return false;
    }
    const struct queued_packet all = {
        .av = packet->av,
        .stream = packet->keyframe ? (AVCodecParameters *)stream : NULL,
        .pts_ns = packet->pts_ns,
        .received_ns = packet->received_ns,
        .capture_ns = packet->capture_ns,
    };
    struct queued_packet *copy = copy_packet(&all);
    struct queued_packet *remembered = queue->options.before_ns > 0 ? copy_packet(&all) : NULL;
    pthread_mutex_lock(&queue->lock);
    if (is_idle(queue, packet->received_ns)) {
        queued_packet_free(copy);
    } else {
        if (copy)
            wait_for_room(queue, copy->memory, stop);
        offer_packet(queue, copy, packet->keyframe);
    }
    remember(queue, remembered);
    const bool wakes =
        queue->wait.first &&
        (queue->options.eager || queue->wait.bytes > queue->options.bytes_max / WAKE_PART);
    pthread_mutex_unlock(&queue->lock);
    return wakes;
}

// --- taking

void packet_queue_set_sink(struct packet_queue *queue, enum pool_sink sink)
{
    pthread_mutex_lock(&queue->lock);
    queue->sink = sink;
    if (sink == POOL_SINK_REFUSED || sink == POOL_SINK_STOPPED) {
        queue->loss = sink == POOL_SINK_REFUSED ? LOSS_SINK : LOSS_STOPPING;
        lose_waiting(queue, NULL, queue->loss);
    }
    pthread_cond_signal(&queue->room);
    pthread_mutex_unlock(&queue->lock);
}

bool packet_queue_has_next(struct packet_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool has = queue->wait.first;
    pthread_mutex_unlock(&queue->lock);
    return has;
}

struct queued_packet *packet_queue_take(struct packet_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct queued_packet *packet = list_take(&queue->wait);
    pthread_cond_signal(&queue->room);
    pthread_mutex_unlock(&queue->lock);
    return packet;
}

bool packet_queue_clip_is_over(struct packet_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool over = !queue->wait.first && is_idle(queue, monotonic_ns());
    pthread_mutex_unlock(&queue->lock);
    return over;
}

bool packet_queue_skip(struct packet_queue *queue, enum loss reason)
{
    pthread_mutex_lock(&queue->lock);
    const struct queued_packet *newest = NULL;
    for (const struct queued_packet *packet = queue->wait.first; packet; packet = packet->next)
        if (is_keyframe(packet))
            newest = packet;
    if (newest)
        lose_waiting(queue, newest, reason);
    pthread_cond_signal(&queue->room);
    pthread_mutex_unlock(&queue->lock);
    return newest;
}
