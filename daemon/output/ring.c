// A socket whose clients read the slots themselves: frames and returns are short messages
// (daemon/wire.h), and no pixel is copied.
//
// A client holds a slot from the message on until it gives it back or loses it: by age, when it is
// gone, or for a newer frame (pool_claim).
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/clock.h"
#include "daemon/base/pool_region.h"
#include "daemon/output/protocol.h"
#include "daemon/output/server.h"
#include "daemon/wire.h"

_Static_assert((int)RING_CLIENTS_MAX <= (int)HOLDERS_MAX, "each client is a holder");

enum {
    RETURNS_MAX = 256, // in one message
    MESSAGES_A_READ = 8,
    LAST_READS = 64, // of what a client sent before it went
};
static const int64_t HOLD_NS = 1000000000; // that a slot may be held, where max_age does not say

struct ring_client {
    struct server_client base;
    int holder;
    bool wrong;            // it sent what is no return
    uint32_t generation;   // of the region in its last hello; 0: there was none
    struct slot_info info; // of the frame behind its last hello
};

struct ring_sink {
    struct server server;
    uv_timer_t timer; // runs while slots are held
    uint64_t holders; // bit i: a client is holder i
};

// --- holding

// 0: for ever.
static int64_t hold_ns(const struct ring_sink *ring)
{
    int64_t max_age = ring->server.sink.context.config->max_age.ns;
    return max_age > 0 || server_waits(&ring->server) ? max_age : HOLD_NS;
}

static void expire(uv_timer_t *timer);

static void watch_age(struct ring_sink *ring, int64_t ns)
{
    uv_timer_start(&ring->timer, expire, (uint64_t)(ns / 1000000) + 1, 0);
}

static void expire(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct ring_sink *ring = (struct ring_sink *)server;
    int64_t due = monotonic_ns() - hold_ns(ring);
    int64_t first = pool_expire(server->sink.context.pool, due);
    server_retire(server, LOSS_LATE);
    if (first > 0)
        watch_age(ring, first - due);
    server_close_when_drained(server);
}

// The client was told of the slot.
static void hold(struct ring_sink *ring, struct ring_client *client, struct result *slot)
{
    pool_hold(ring->server.sink.context.pool, slot, client->holder);
    if (hold_ns(ring) > 0 && !uv_is_active((uv_handle_t *)&ring->timer))
        watch_age(ring, hold_ns(ring));
}

// --- sending

static int send_message(int fd, void *bytes, size_t size, const int fds[], int n_fds)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = "";
    struct iovec piece = {bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (n_fds > 0) {
        size_t length = (size_t)n_fds * sizeof(int);
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(length);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        *rights = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(length), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(rights), fds, length);
    }
    while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static void put_frame(struct framed_ring_frame *to, const struct server *server,
                      const struct result *slot, const struct reader *reader)
{
    const struct sink_context *context = &server->sink.context;
    char header[PROTOCOL_HEADER_MAX];
    protocol_header(PROTOCOL_FRAMED, slot, context->camera, context->config->name, reader, false,
                    header);
    *to = (struct framed_ring_frame){
        .slot = htole32((uint32_t)slot->number),
        .ticket = htole64(slot->ticket),
    };
    memcpy(&to->header, header, sizeof to->header);
}

static void put_shape(struct framed_ring_hello *to, const struct framed_header *from)
{
    to->slot_bytes = from->payload_bytes;
    to->width = from->width;
    to->height = from->height;
    to->planes = from->planes;
    memcpy(to->format, from->format, sizeof to->format);
    memcpy(to->dtype, from->dtype, sizeof to->dtype);
    memcpy(to->layout, from->layout, sizeof to->layout);
    memcpy(to->plane_offset, from->plane_offset, sizeof to->plane_offset);
    memcpy(to->plane_stride, from->plane_stride, sizeof to->plane_stride);
    memcpy(to->camera, from->camera, sizeof to->camera);
    memcpy(to->output, from->output, sizeof to->output);
}

static int send_hello(int fd, const struct server *server, const struct pool_region *region,
                      const struct framed_header *header)
{
    bool on_device = pool_region_on_device(region);
    int fds[2] = {region->host.fd, region->device.fd};
    struct framed_ring_hello hello = {
        .magic = {'F', 'R', 'N', 'G'},
        .version = htole16(FRAMED_VERSION),
        .hello_bytes = htole16(sizeof hello),
        .slots = htole32((uint32_t)pool_count(server->sink.context.pool)),
        .memory = htole32(on_device ? FRAMED_RING_CUDA : FRAMED_RING_HOST),
        .slot_offset = htole64(region->first),
        .slot_stride = htole64(region->stride),
        .memfd_bytes = htole64(region->host.bytes),
        .device_bytes = htole64(region->device.bytes),
    };
    memcpy(hello.device_uuid, region->device.uuid, sizeof hello.device_uuid);
    put_shape(&hello, header);
    return send_message(fd, &hello, sizeof hello, fds, on_device ? 2 : 1);
}

// Tells the client of a pinned slot. -EAGAIN: it could not be told, as if nothing had been tried.
static int tell(struct server *server, struct ring_client *client, const struct result *slot)
{
    struct framed_ring_frame frame;
    struct reader reader = client->base.reader;
    reader_take(&reader, &slot->info);
    put_frame(&frame, server, slot, &reader);
    if (client->generation != slot->region->generation ||
        !protocol_continues(PROTOCOL_RAW, &client->info, &slot->info)) {
        int rc = send_hello(client->base.fd, server, slot->region, &frame.header);
        if (rc < 0)
            return rc;
        client->generation = slot->region->generation;
        client->info = slot->info;
    }
    int rc = send_message(client->base.fd, &frame, sizeof frame, NULL, 0);
    if (rc == 0)
        client->base.reader = reader;
    return rc;
}

static int send_ready(struct server *server, struct server_client *base)
{
    struct ring_client *client = (struct ring_client *)base;
    struct result *slot;
    int rc = 0;
    while (rc == 0 && (slot = sink_begin(&server->sink, &base->next))) {
        rc = tell(server, client, slot);
        if (rc == 0) {
            hold((struct ring_sink *)server, client, slot);
        } else {
            base->next = slot->info.ordinal;
            pool_unpin(server->sink.context.pool, slot, false);
        }
    }
    server_retire(server, LOSS_LATE); // what sink_begin passed over
    return rc;
}

// --- receiving

// One message of returns. False: it is none.
static bool take_message(struct pool *pool, const struct ring_client *client,
                         const struct framed_ring_return returned[], const struct mmsghdr *message)
{
    size_t n = message->msg_len / sizeof returned[0];
    if (message->msg_len % sizeof returned[0] || (message->msg_hdr.msg_flags & MSG_TRUNC))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t number = le32toh(returned[i].slot);
        if (number >= (uint32_t)pool_count(pool) || returned[i].reserved != 0)
            return false;
        pool_give_back(pool, (int)number, le64toh(returned[i].ticket), client->holder);
    }
    return true;
}

static int receive(int fd, struct framed_ring_return returned[][RETURNS_MAX],
                   struct mmsghdr message[MESSAGES_A_READ])
{
    struct iovec piece[MESSAGES_A_READ];
    for (int i = 0; i < MESSAGES_A_READ; i++) {
        piece[i] = (struct iovec){returned[i], sizeof returned[i]};
        message[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &piece[i], .msg_iovlen = 1}};
    }
    int n = recvmmsg(fd, message, MESSAGES_A_READ, MSG_DONTWAIT, NULL);
    return n < 0 ? -errno : n;
}

// -EPIPE: the client has ended; -EPROTO: it sent what is no return, which is logged.
static int read_returns(struct server *server, struct server_client *base)
{
    struct ring_client *client = (struct ring_client *)base;
    struct framed_ring_return returned[MESSAGES_A_READ][RETURNS_MAX];
    struct mmsghdr message[MESSAGES_A_READ];
    int n = receive(base->fd, returned, message);
    if (n < 0)
        return n == -EAGAIN || n == -EINTR ? 0 : n;
    for (int i = 0; i < n; i++) {
        if (message[i].msg_len == 0)
            return -EPIPE;
        if (take_message(server->sink.context.pool, client, returned[i], &message[i]))
            continue;
        client->wrong = true;
        sink_event(&server->sink, LOG_LEVEL_WARNING,
                   "a client was dropped: it sent what gives no slot back");
        return -EPROTO;
    }
    server_retire(server, LOSS_CLIENT);
    return n == MESSAGES_A_READ ? -EAGAIN : 0;
}

// --- life

static void enter(struct server *server, struct server_client *base)
{
    struct ring_sink *ring = (struct ring_sink *)server;
    struct ring_client *client = (struct ring_client *)base;
    client->holder = __builtin_ctzll(~ring->holders); // one is free: there are no more peers
    ring->holders |= UINT64_C(1) << client->holder;
}

// A client may give back its last slots and go at once.
static void leave(struct server *server, struct server_client *base)
{
    struct ring_sink *ring = (struct ring_sink *)server;
    struct ring_client *client = (struct ring_client *)base;
    int rc = -EAGAIN; // or -ECONNRESET, reported once, before what is there to read
    for (int i = 0; i < LAST_READS && !client->wrong && (rc == -EAGAIN || rc == -ECONNRESET); i++)
        rc = read_returns(server, base);
    server_retire(server, LOSS_CLIENT); // what it gave back is over before it stops counting
    pool_let_go(server->sink.context.pool, client->holder);
    ring->holders &= ~(UINT64_C(1) << client->holder);
}

static bool is_busy(struct server *server, const struct server_client *base)
{
    const struct ring_client *client = (const struct ring_client *)base;
    return base->blocked || pool_holds(server->sink.context.pool, client->holder);
}

static void close_timer(struct server *server)
{
    uv_close((uv_handle_t *)&((struct ring_sink *)server)->timer, server_handle_closed);
}

static const struct server_driver driver = {
    .client_size = sizeof(struct ring_client),
    .enter = enter,
    .send = send_ready,
    .receive = read_returns,
    .busy = is_busy,
    .leave = leave,
    .close = close_timer,
};

static int open_sink(struct sink **ret, const struct sink_context *context, char *why, size_t size)
{
    struct server *server;
    int rc =
        server_open(&server, sizeof(struct ring_sink), &driver, &ring_sink, context, why, size);
    if (rc < 0)
        return rc;
    struct ring_sink *ring = (struct ring_sink *)server;
    uv_timer_init(context->loop, &ring->timer);
    ring->timer.data = server;
    server->handles++;
    *ret = &server->sink;
    return 0;
}

const struct sink_driver ring_sink = {
    .open = open_sink,
    .pump = server_pump,
    .finish = server_finish,
    .clients = server_clients,
    .listener = server_listener,
    .check_path = server_check_path,
    .yield = server_yield,
};
