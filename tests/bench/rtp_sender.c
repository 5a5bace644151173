#include "tests/bench/rtp_sender.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "daemon/base/clock.h"

enum { TCP_HEAD = 4, REPORT_BYTES = 28, CLOCK = 90000 };
static const int64_t REPORT_NS = INT64_C(5000000000);
static const int64_t NTP_EPOCH_S = INT64_C(2208988800); // 1970 in seconds since 1900

// --- times

// Returns the current unit's position in display order, counted over all turns of the clip.
static int64_t shown_index(const struct rtp_sender *sender)
{
    const struct clip_units *clip = sender->rtp->clip;
    return sender->index / clip->n * clip->n + clip->units[sender->index % clip->n].shown;
}

static uint32_t rtp_time(const struct rtp_sender *sender, int64_t shown)
{
    const struct clip_units *clip = sender->rtp->clip;
    return sender->base + (uint32_t)(shown * CLOCK * clip->rate_den / clip->rate_num);
}

static const struct rtp_picture *picture_under_way(const struct rtp_sender *sender)
{
    return &sender->rtp->pictures[sender->index % sender->rtp->clip->n];
}

uint32_t rtp_sender_time(const struct rtp_sender *sender)
{
    return rtp_time(sender, shown_index(sender));
}

void rtp_sender_play(struct rtp_sender *sender, int first, int64_t phase_ns)
{
    const struct clip_units *clip = sender->rtp->clip;
    struct rtp_record *record = sender->record;
    const int64_t now = monotonic_ns(), interval = clip_units_ns(clip, 1);
    uint32_t random[3];
    (void)!getrandom(random, sizeof random, 0);
    sender->base = random[0];
    sender->ssrc = random[1];
    sender->sequence = (uint16_t)random[2];
    sender->index = sender->first = first;
    sender->payload = 0;
    sender->due_ns = now - (now - phase_ns) % interval;
    sender->start_ns = sender->due_ns - clip_units_ns(clip, first);
    sender->reported_ns = 0;
    sender->playing = true;
    for (int i = 0; i < clip->n; i++)
        atomic_store(&record->sent_ns[i], 0);
    atomic_store(&record->wall_ns, realtime_ns() - (now - sender->start_ns));
}

// --- composing

static void write_report(struct rtp_sender *sender, uint8_t *to, int64_t now)
{
    const int64_t wall = atomic_load(&sender->record->wall_ns) + (now - sender->start_ns);
    const struct clip_units *clip = sender->rtp->clip;
    const double shown = (double)(now - sender->start_ns) / 1e9 * clip->rate_num / clip->rate_den;
    const uint32_t ticks = (uint32_t)(int64_t)(shown * CLOCK * clip->rate_den / clip->rate_num);
    to[0] = 0x80;
    to[1] = 200;
    write_be16(to + 2, 6);
    write_be32(to + 4, sender->ssrc);
    write_be32(to + 8, (uint32_t)(wall / 1000000000 + NTP_EPOCH_S));
    write_be32(to + 12, (uint32_t)(((uint64_t)(wall % 1000000000) << 32) / 1000000000));
    write_be32(to + 16, sender->base + ticks);
    write_be32(to + 20, (uint32_t)sender->counted);
    write_be32(to + 24, (uint32_t)sender->octets);
}

static void write_channel(uint8_t *to, int channel, size_t bytes)
{
    to[0] = '$';
    to[1] = (uint8_t)channel;
    write_be16(to + 2, (uint32_t)bytes);
}

static void report(struct rtp_sender *sender, int64_t now)
{
    uint8_t bytes[REPORT_BYTES];
    write_report(sender, bytes, now);
    sender->reported_ns = now;
    if (sender->udp) {
        sendto(sender->rtcp_fd, bytes, sizeof bytes, MSG_DONTWAIT,
               (struct sockaddr *)&sender->rtcp_to,
               sizeof sender->rtcp_to); // an unsent report counts as a lost one
        return;
    }
    write_channel(sender->out + sender->used, sender->channel + 1, sizeof bytes);
    memcpy(sender->out + sender->used + TCP_HEAD, bytes, sizeof bytes);
    sender->used += TCP_HEAD + sizeof bytes;
}

// True for one packet in `withhold`, but none of the first group of pictures.
static bool withheld(const struct rtp_sender *sender)
{
    const struct clip_units *clip = sender->rtp->clip;
    const int second = clip_units_keyframe(clip, 1);
    return sender->withhold && sender->index - sender->first >= (second ? second : clip->n) &&
           sender->counted % (uint64_t)sender->withhold == 0;
}

static void compose_packet(struct rtp_sender *sender, const struct rtp_payload *payload,
                           int64_t shown, bool last)
{
    const size_t head = sender->udp ? 0 : TCP_HEAD;
    uint8_t *to = sender->out + sender->used;
    const struct rtp_numbers numbers = {.sequence = sender->sequence++,
                                        .timestamp = rtp_time(sender, shown),
                                        .ssrc = sender->ssrc,
                                        .marker = last};
    sender->counted++;
    if (withheld(sender)) {
        atomic_fetch_add(&sender->record->withheld, 1);
        return;
    }
    const size_t bytes = rtp_packet_write(to + head, payload, &numbers);
    if (sender->udp)
        sender->sizes[sender->n_sizes++] = (uint16_t)bytes;
    else
        write_channel(to, sender->channel, bytes);
    sender->used += head + bytes;
    sender->octets += bytes - RTP_HEADER;
    atomic_fetch_add(&sender->record->packets, 1);
}

// Composes the next burst of the current picture.
static void compose_burst(struct rtp_sender *sender, int64_t now)
{
    const struct rtp_picture *picture = picture_under_way(sender);
    const int64_t shown = shown_index(sender);
    if (sender->payload == 0) {
        struct rtp_record *record = sender->record;
        // The first picture is sent late on purpose.
        if (sender->index > sender->first && now - sender->due_ns > atomic_load(&record->latest_ns))
            atomic_store(&record->latest_ns, now - sender->due_ns);
        if (now - sender->reported_ns > REPORT_NS)
            report(sender, now);
    }
    while (sender->payload < picture->n && sender->used < RTP_BURST_BYTES &&
           sender->n_sizes < RTP_BURST_PACKETS) {
        const int i = sender->payload++;
        compose_packet(sender, &picture->payloads[i], shown, i + 1 == picture->n);
    }
    if (sender->payload == picture->n)
        sender->stamp = &sender->record->sent_ns[shown % sender->rtp->clip->n];
}

// --- sending

static int send_tcp(struct rtp_sender *sender)
{
    while (sender->sent < sender->used) {
        ssize_t n = send(sender->fd, sender->out + sender->sent, sender->used - sender->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        sender->sent += (size_t)n;
    }
    return 0;
}

static int send_udp(struct rtp_sender *sender)
{
    struct mmsghdr messages[RTP_BURST_PACKETS];
    struct iovec parts[RTP_BURST_PACKETS];
    size_t at = 0;
    for (int i = 0; i < sender->n_sizes; at += sender->sizes[i++]) {
        parts[i] = (struct iovec){sender->out + at, sender->sizes[i]};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &sender->rtp_to,
                                                   .msg_namelen = sizeof sender->rtp_to,
                                                   .msg_iov = &parts[i],
                                                   .msg_iovlen = 1}};
    }
    for (int sent = 0; sent < sender->n_sizes;) {
        const int n = sendmmsg(sender->rtp_fd, messages + sent, (unsigned)(sender->n_sizes - sent),
                               0); // blocks: loopback takes a packet at once
        if (n <= 0 && errno != ECONNREFUSED && errno != EINTR)
            return -errno;
        sent += n > 0 ? n : 1;
    }
    return 0;
}

int rtp_sender_flush(struct rtp_sender *sender)
{
    if (sender->used == 0 && sender->n_sizes == 0 && !sender->stamp)
        return 0;
    if (sender->stamp) // set before sending: the reader must not be faster than the record
        atomic_store(sender->stamp, monotonic_ns());
    int rc = sender->n_sizes ? send_udp(sender) : send_tcp(sender);
    if (rc < 0)
        return rc;
    sender->used = sender->sent = 0;
    sender->n_sizes = 0;
    sender->stamp = NULL;
    return 0;
}

int rtp_sender_reply(struct rtp_sender *sender, const char *text, size_t bytes)
{
    int rc = rtp_sender_flush(sender);
    if (rc < 0 && rc != -EAGAIN)
        return rc;
    if (bytes > sizeof sender->out - sender->used)
        return -ENOBUFS;
    memcpy(sender->out + sender->used, text, bytes);
    sender->used += bytes;
    return rtp_sender_flush(sender);
}

int rtp_sender_send(struct rtp_sender *sender)
{
    const int64_t now = monotonic_ns();
    int rc = rtp_sender_flush(sender);
    if (rc < 0 || !sender->playing || now < sender->due_ns)
        return rc;
    compose_burst(sender, now);
    const double bits = 8.0 * (double)sender->used;
    if (sender->payload == picture_under_way(sender)->n) {
        atomic_fetch_add(&sender->record->pictures, 1);
        sender->index++;
        sender->payload = 0;
        sender->due_ns = sender->start_ns + clip_units_ns(sender->rtp->clip, sender->index);
    } else {
        sender->due_ns = now + (int64_t)(bits / sender->link * 1e9);
    }
    return rtp_sender_flush(sender);
}
