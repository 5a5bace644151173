// A socket whose clients read the pool's memory themselves: frames, returns and results are
// messages (daemon/wire.h), and no pixel is copied. A result is lent to a client from its message
// until the client returns it or leaves, or until it is revoked: by age, or for a newer one.
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/access.h"
#include "daemon/base/clock.h"
#include "daemon/output/server.h"
#include "daemon/wire.h"

enum {
    RETURNS_MAX = 256, // in one message
    MESSAGES_A_READ = 8,
    LAST_READS = 64, // reads of a leaving client's last messages
};
static const int64_t LENT_NS = 1000000000; // longest time that a result is lent, without max_age

struct ring_client {
    struct server_client base;
    struct results_client results;
    bool wrong;                  // it sent a message that is neither a return nor a result
    uint32_t generation;         // of the region in its last hello; 0: none so far
    struct result_format format; // of the frame after its last hello
};

struct ring_sink {
    struct server server;
    uv_timer_t timer;                      // runs while results are lent
    uint64_t headers_of[POOL_RESULTS_MAX]; // ticket of the batch whose headers lie in each slot
    bool logged;                           // logged that the memory lost its name
};

// --- the age of what is lent

// Returns how long a result may be lent; 0: without limit.
static int64_t lent_ns_max(const struct ring_sink *ring)
{
    const struct sink_context *context = &ring->server.sink.context;
    const int64_t max_age = context->config->max_age.ns;
    return max_age > 0 || pool_waits(context->pool) ? max_age : LENT_NS;
}

static void revoke_old(uv_timer_t *timer);

static void start_timer(struct ring_sink *ring, int64_t ns)
{
    uv_timer_start(&ring->timer, revoke_old, (uint64_t)(ns / 1000000) + 1, 0);
}

static void revoke_old(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct ring_sink *ring = (struct ring_sink *)server;
    int64_t due_ns = monotonic_ns() - lent_ns_max(ring);
    int64_t first_ns = pool_revoke(server->sink.context.pool, due_ns);
    if (first_ns > 0)
        start_timer(ring, first_ns - due_ns);
    server_close_when_drained(server);
}

// --- the name of the memory, with `shared:`

static int open_shared(const struct sink_context *context, char *why, size_t size)
{
    const struct output_config *config = context->config;
    gid_t group;
    if (!config->shared.name)
        return 0;
    int rc = group_of_output(config, &group, why, size);
    return rc < 0 ? rc
                  : shared_object_open(context->shared, config->shared.name, config->mode.mode,
                                       group, why, size);
}

static void close_shared(const struct sink_context *context)
{
    if (context->config->shared.name)
        shared_object_close(context->shared);
}

// If the object was removed or truncated, moves frames to new memory with that name.
static void check_shared(struct server *server)
{
    struct ring_sink *ring = (struct ring_sink *)server;
    const struct sink *sink = &server->sink;
    const char *name = sink->context.config->shared.name;
    char why[256];
    const bool listens = server->listener.fd >= 0;
    if (!name || !listens || !shared_object_is_lost(sink->context.shared))
        return;
    int rc = open_shared(&sink->context, why, sizeof why);
    if (rc == 0)
        sink_event(
            sink, LOG_LEVEL_WARNING,
            "the shared memory %s was removed or cut short: frames go to another of that name",
            name);
    else if (!ring->logged)
        sink_event(sink, LOG_LEVEL_WARNING,
                   "the shared memory %s was removed: %s (tried again every second)", name, why);
    ring->logged = rc < 0;
    if (rc == 0)
        pool_renew_memory(sink->context.pool);
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

// The message that notifies a client of a result.
struct notice {
    union {
        struct framed_ring_frame frame;
        struct framed_batch batch; // the headers of its elements lie in the region
    };
    size_t size;
};

// Writes the headers of a batch's elements to the region, where all clients read them.
static void share_headers(struct ring_sink *ring, const struct result *result)
{
    void *headers = pool_region_headers(result->region, result->number);
    if (ring->headers_of[result->number] != result->ticket)
        protocol_element_headers(headers, ring->server.sink.context.config, result);
    ring->headers_of[result->number] = result->ticket;
}

static struct notice notice_of(struct ring_sink *ring, const struct result *result,
                               const struct stream_position *position)
{
    const struct output_config *config = ring->server.sink.context.config;
    const uint32_t slot = htole32((uint32_t)result->number);
    const uint64_t ticket = htole64(result->ticket);
    struct notice notice;
    if (result->closed_by != CLOSED_NOT) {
        share_headers(ring, result);
        protocol_batch(&notice.batch, config, result, position);
        notice.batch.slot = slot;
        notice.batch.ticket = ticket;
        notice.size = sizeof notice.batch;
        return notice;
    }
    notice.frame = (struct framed_ring_frame){.slot = slot, .ticket = ticket};
    protocol_header(config, result, position, false, (char *)&notice.frame.header);
    notice.size = sizeof notice.frame;
    return notice;
}

static void put_shape(struct framed_ring_hello *to, const struct framed_header *from)
{
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

// Takes the shape from the header of the frame, or of the batch's first element.
static void put_result(struct framed_ring_hello *to, const struct result *result,
                       const struct notice *notice)
{
    to->slot_bytes = htole64(result->size);
    if (result->closed_by == CLOSED_NOT) {
        put_shape(to, &notice->frame.header);
        return;
    }
    put_shape(to, pool_region_headers(result->region, result->number));
    memset(to->camera, 0, sizeof to->camera);
    to->batch = htole32((uint32_t)result->n_items);
    to->header_offset = htole64(result->region->headers);
}

static enum framed_ring_memory memory_of(const struct pool_region *region)
{
    if (!pool_region_on_device(region))
        return FRAMED_RING_HOST;
    return region->device.kind == REGION_DEVICE_IPC ? FRAMED_RING_CUDA_IPC : FRAMED_RING_CUDA;
}

static int send_hello(int fd, const struct server *server, const struct result *result,
                      const struct notice *notice)
{
    const struct pool_region *region = result->region;
    const enum framed_ring_memory memory = memory_of(region);
    const int fds[2] = {region->host.fd, region->device.fd};
    struct framed_ring_hello_cuda_ipc whole = {0};
    const size_t size = memory == FRAMED_RING_CUDA_IPC ? sizeof whole : sizeof whole.hello;
    struct framed_ring_hello *hello = &whole.hello;
    *hello = (struct framed_ring_hello){
        .magic = {'F', 'R', 'N', 'G'},
        .version = htole16(FRAMED_VERSION),
        .hello_bytes = htole16((uint16_t)size),
        .slots = htole32((uint32_t)server->sink.context.config->slots),
        .memory = htole32(memory),
        .slot_offset = htole64(region->first),
        .slot_stride = htole64(region->stride),
        .memfd_bytes = htole64(region->host.bytes),
        .device_bytes = htole64(region->device.bytes),
    };
    if (region->host.named)
        strcpy(hello->shared, server->sink.context.config->shared.name);
    memcpy(hello->device_uuid, region->device.uuid, sizeof hello->device_uuid);
    memcpy(whole.handle, region->device.handle, sizeof whole.handle);
    put_result(hello, result, notice);
    return send_message(fd, &whole, size, fds, memory == FRAMED_RING_CUDA ? 2 : 1);
}

// Notifies the client of the result that it holds. -EAGAIN: not notified, try again later.
static int notify_client(struct server *server, struct ring_client *client,
                         const struct result *result)
{
    struct stream_position position = client->base.position;
    stream_advance(&position, result);
    struct notice notice = notice_of((struct ring_sink *)server, result, &position);
    if (client->generation != result->region->generation ||
        !protocol_continues(PROTOCOL_RAW, &client->format, &result->format)) {
        int rc = send_hello(client->base.fd, server, result, &notice);
        if (rc < 0)
            return rc;
        client->generation = result->region->generation;
        client->format = result->format;
    }
    int rc = send_message(client->base.fd, &notice, notice.size, NULL, 0);
    if (rc == 0)
        client->base.position = position;
    return rc;
}

static int send_notices(struct server *server, struct server_client *base)
{
    struct ring_sink *ring = (struct ring_sink *)server;
    struct pool *pool = server->sink.context.pool;
    struct ring_client *client = (struct ring_client *)base;
    struct result *result;
    int rc = 0;
    while (rc == 0 && (result = pool_acquire(pool, &base->consumer))) {
        rc = notify_client(server, client, result);
        if (rc == 0)
            results_lend(server->sink.context.results, &client->results, result);
        pool_lend(pool, &base->consumer, rc == 0); // from here on it may be revoked
        if (rc == 0 && lent_ns_max(ring) > 0 && !uv_is_active((uv_handle_t *)&ring->timer))
            start_timer(ring, lent_ns_max(ring));
    }
    return rc;
}

// --- receiving

// A client's message, with room for the longest.
union message {
    struct framed_ring_return returned[RETURNS_MAX];
    struct framed_ring_result result;
    char bytes[RESULT_BYTES_MAX];
};
_Static_assert(sizeof(union message) == RESULT_BYTES_MAX, "a result is the longest message");

// Takes back a slot from the client. Returns false if there is no such slot.
static bool take_return(struct server *server, struct ring_client *client, uint32_t slot,
                        uint64_t ticket)
{
    const struct sink_context *context = &server->sink.context;
    const int rc = pool_return(context->pool, &client->base.consumer, slot, ticket);
    if (rc > 0)
        results_return(context->results, &client->results, ticket);
    return rc >= 0;
}

static bool take_returns(struct server *server, struct ring_client *client,
                         const union message *message, size_t bytes)
{
    const struct framed_ring_return *returned = message->returned;
    const size_t n = bytes / sizeof returned[0];
    if (bytes % sizeof returned[0] || n > RETURNS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (returned[i].reserved != 0 ||
            !take_return(server, client, le32toh(returned[i].slot), le64toh(returned[i].ticket)))
            return false;
    return true;
}

// Takes returns or a result; a truncated message has more `bytes` than there is room for. Returns
// false if it is neither.
static bool take_message(struct server *server, struct ring_client *client,
                         const union message *message, size_t bytes)
{
    const struct framed_ring_result *result = &message->result;
    if (bytes < sizeof *result || memcmp(result->magic, FRAMED_RING_RESULT_MAGIC, 4) != 0)
        return take_returns(server, client, message, bytes);
    results_take(server->sink.context.results, &client->results, &client->base.consumer, result,
                 bytes);
    if (le16toh(result->flags) & FRAMED_RESULT_RETURN)
        take_return(server, client, le32toh(result->slot), le64toh(result->ticket));
    return true;
}

static int receive_messages(int fd, union message received[MESSAGES_A_READ],
                            struct mmsghdr message[MESSAGES_A_READ])
{
    struct iovec piece[MESSAGES_A_READ];
    for (int i = 0; i < MESSAGES_A_READ; i++) {
        piece[i] = (struct iovec){&received[i], sizeof received[i]};
        message[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &piece[i], .msg_iovlen = 1}};
    }
    int n = recvmmsg(fd, message, MESSAGES_A_READ, MSG_DONTWAIT, NULL);
    return n < 0 ? -errno : n;
}

// Returns 0; -EAGAIN: there may be more; -EPIPE: the client has ended; -EPROTO: invalid, logged.
static int read_messages(struct server *server, struct server_client *base)
{
    struct ring_client *client = (struct ring_client *)base;
    union message received[MESSAGES_A_READ];
    struct mmsghdr message[MESSAGES_A_READ];
    int n = receive_messages(base->fd, received, message);
    if (n < 0)
        return n == -EAGAIN || n == -EINTR ? 0 : n;
    for (int i = 0; i < n; i++) {
        const bool cut = message[i].msg_hdr.msg_flags & MSG_TRUNC;
        if (message[i].msg_len == 0)
            return -EPIPE;
        if (take_message(server, client, &received[i], message[i].msg_len + cut))
            continue;
        client->wrong = true;
        sink_event(&server->sink, LOG_LEVEL_WARNING,
                   "a client was dropped: it sent neither slots that it gives back nor a result");
        return -EPROTO;
    }
    return n == MESSAGES_A_READ ? -EAGAIN : 0;
}

// --- life

static void attach_client(struct server *server, struct server_client *base)
{
    results_attach(server->sink.context.results, &((struct ring_client *)base)->results);
}

// A client may send its last results and slots and leave at once: reads these first.
static void detach_client(struct server *server, struct server_client *base)
{
    struct ring_client *client = (struct ring_client *)base;
    int rc = -EAGAIN; // or -ECONNRESET, reported once, before unread data
    for (int i = 0; i < LAST_READS && !client->wrong && (rc == -EAGAIN || rc == -ECONNRESET); i++)
        rc = read_messages(server, base);
    results_detach(server->sink.context.results, &client->results);
}

static void open_timer(struct server *server)
{
    struct ring_sink *ring = (struct ring_sink *)server;
    uv_timer_init(server->sink.context.loop, &ring->timer);
    ring->timer.data = server;
    server->handles++;
}

static void close_timer(struct server *server)
{
    uv_close((uv_handle_t *)&((struct ring_sink *)server)->timer, server_handle_closed);
}

const struct server_driver ring_server = {
    .size = sizeof(struct ring_sink),
    .client_size = sizeof(struct ring_client),
    .prepare = open_shared,
    .release = close_shared,
    .begin = open_timer,
    .close = close_timer,
    .check = check_shared,
    .enter = attach_client,
    .send = send_notices,
    .receive = read_messages,
    .leave = detach_client,
};
