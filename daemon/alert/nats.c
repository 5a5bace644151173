#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "config/nats_url.h"
#include "daemon/alert/delivery.h"
#include "daemon/base/clock.h"
#include "daemon/output/nats_session.h"

static const int64_t MS = 1000000;

enum { LOOK_MS = 20 }; // between looks for an acknowledgement

// A session of its own, from an event to the end: it is seldom needed, and its thread may block.
struct nats {
    struct delivery_context context;
    struct nats_url url;
    struct nats_session *session; // NULL: not connected
    uint64_t number;
};

static int open_nats(void **ret, const struct delivery_context *context)
{
    struct nats *nats = calloc(1, sizeof *nats);
    if (!nats)
        return -ENOMEM;
    nats->context = *context;
    nats_url_parse(&nats->url, context->config->notify.nats);
    *ret = nats;
    return 0;
}

static void disconnect(struct nats *nats)
{
    nats_session_close(nats->session);
    nats->session = NULL;
}

static void close_nats(void *opaque)
{
    disconnect(opaque);
    free(opaque);
}

static int connect_server(struct nats *nats, char *why, size_t size)
{
    const struct nats_config *config = &nats->context.config->nats;
    const struct nats_session_options options = {
        .servers = nats->url.servers, .config = config, .acknowledged = config->jetstream};
    if (nats->session && nats_session_is_open(nats->session))
        return 0;
    disconnect(nats);
    return nats_session_open(&nats->session, &options, why, size);
}

static int await_ack(struct nats *nats, char *why, size_t size)
{
    const int64_t until = monotonic_ns() + NATS_CONFIRM_MS * MS;
    struct pollfd stop = {.fd = nats->context.stop_fd, .events = POLLIN};
    struct nats_ack ack;
    while (monotonic_ns() < until && !atomic_load(nats->context.stop)) {
        while (nats_session_ack(nats->session, &ack)) {
            if (ack.number != nats->number)
                continue;
            snprintf(why, size, "%s", ack.why);
            return ack.stored ? 0 : -EIO;
        }
        poll(&stop, 1, LOOK_MS);
    }
    snprintf(why, size, "%s",
             nats_session_denies(nats->session, nats->url.subject)
                 ? NATS_NOT_ALLOWED
                 : "no stream has acknowledged it");
    return atomic_load(nats->context.stop) ? -ECANCELED : -ETIMEDOUT;
}

static int await_server(struct nats *nats, char *why, size_t size)
{
    const int rc = nats_session_flush(nats->session, why, size);
    if (rc < 0 || !nats_session_denies(nats->session, nats->url.subject))
        return rc;
    snprintf(why, size, "%s", NATS_NOT_ALLOWED);
    return -EACCES;
}

// A stream takes an event once, however often it is tried.
static int publish(struct nats *nats, const struct alert_event *event, const char *json, char *why,
                   size_t size)
{
    char id[HOST_NAME_MAX + ALERT_ID_MAX + 16], alert[ALERT_ID_MAX];
    alert_event_id(event, alert);
    snprintf(id, sizeof id, "%.*s-%s-%s", HOST_NAME_MAX, nats->context.host, alert,
             event->raised ? "raised" : "cleared");
    return nats_session_publish(nats->session, nats->url.subject, ++nats->number, id, json,
                                strlen(json), why, size);
}

static int deliver_to_nats(void *opaque, const struct alert_event *event, const char *json,
                           char *why, size_t size)
{
    struct nats *nats = opaque;
    const bool acknowledged = nats->context.config->nats.jetstream;
    int rc = connect_server(nats, why, size);
    if (rc < 0)
        return atomic_load(nats->context.stop) ? -ECANCELED : -EIO;
    rc = publish(nats, event, json, why, size);
    if (rc == -EMSGSIZE)
        return -EINVAL;
    if (rc == 0 && acknowledged)
        return await_ack(nats, why, size);
    if (rc == 0)
        rc = await_server(nats, why, size);
    if (rc < 0)
        disconnect(nats);
    return rc < 0 ? -EIO : 0;
}

const struct delivery_driver nats_driver = {
    .name = "NATS",
    .open = open_nats,
    .deliver = deliver_to_nats,
    .close = close_nats,
};
