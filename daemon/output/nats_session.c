#include "daemon/output/nats_session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/nats_url.h"

enum {
    // A server that does not answer is given up after 10.5 to 14 s: later than it may let who
    // publishes wait, and before an acknowledgement is overdue, so that lines go back.
    PING_MS = 3500,
    PINGS = 3, // that may be without an answer
    // That wait for the caller: of what is on its way, and of as much that was given up before.
    ACKS = 2 * NATS_FLYING_MAX,
    INBOX_MAX = 64,
};

// Acknowledgements on their way from a thread of libnats, which may still call back when the
// session is closed.
struct ack_box {
    pthread_mutex_t lock;
    int refs;
    void (*wake)(void *opaque); // NULL: the session is closed
    void *opaque;
    int first, n;
    struct nats_ack ack[ACKS];
};

struct nats_session {
    natsConnection *connection;
    natsSubscription *subscription; // of the inbox; NULL: nothing is acknowledged
    char inbox[INBOX_MAX];
    struct ack_box *box;
};

// --- what went wrong

// Servers' own words may be anything.
static void put_text(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    for (char *c = why; *c; c++)
        *c = *c < ' ' || *c == 127 ? '?' : *c;
}

// "(conn.c:3531): Timeout", without the place in libnats.
static const char *skip_place(const char *text)
{
    const char *end = text && *text == '(' ? strstr(text, "): ") : NULL;
    return end ? end + strlen("): ") : text;
}

static int put_why(natsStatus status, char *why, size_t size)
{
    natsStatus last;
    const char *text = skip_place(nats_GetLastError(&last));
    put_text(why, size, text && *text && last == status ? text : natsStatus_GetText(status));
    switch (status) {
    case NATS_OK:
        return 0;
    case NATS_NO_MEMORY:
        return -ENOMEM;
    case NATS_TIMEOUT:
        return -ETIMEDOUT;
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
        return -EACCES;
    default:
        return -ENOTCONN;
    }
}

// --- acknowledgements

static void release_box(struct ack_box *box)
{
    pthread_mutex_lock(&box->lock);
    const bool last = --box->refs == 0;
    pthread_mutex_unlock(&box->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&box->lock);
    free(box);
}

static void subscription_ended(void *opaque)
{
    release_box(opaque);
}

// {"stream":"S","seq":7}, or {"error":{"description":"maximum messages exceeded"}}.
static void read_ack(natsMsg *message, struct nats_ack *ret)
{
    if (natsMsg_IsNoResponders(message)) {
        put_text(ret->why, sizeof ret->why, "no stream takes the subject");
        return;
    }
    json_t *json =
        json_loadb(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), 0, NULL);
    const json_t *error = json_object_get(json, "error");
    const char *description = json_string_value(json_object_get(error, "description"));
    ret->stored = !error && json_is_string(json_object_get(json, "stream"));
    if (!ret->stored)
        put_text(ret->why, sizeof ret->why,
                 description ? description : "the server's answer is not a stream's");
    json_decref(json);
}

// Called by a thread of libnats. Where there is no more room, what the acknowledgement is for
// is given up in its time.
static void ack_came(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                     void *opaque)
{
    struct ack_box *box = opaque;
    struct nats_ack ack = {0};
    const char *dot = strrchr(natsMsg_GetSubject(message), '.');
    (void)connection, (void)subscription;
    ack.number = dot ? strtoull(dot + 1, NULL, 10) : 0;
    read_ack(message, &ack);
    natsMsg_Destroy(message);
    pthread_mutex_lock(&box->lock);
    if (box->n < ACKS)
        box->ack[(box->first + box->n++) % ACKS] = ack;
    if (box->wake)
        box->wake(box->opaque);
    pthread_mutex_unlock(&box->lock);
}

bool nats_session_ack(struct nats_session *session, struct nats_ack *ret)
{
    struct ack_box *box = session->box;
    if (!box)
        return false;
    pthread_mutex_lock(&box->lock);
    const bool any = box->n > 0;
    if (any) {
        *ret = box->ack[box->first];
        box->first = (box->first + 1) % ACKS;
        box->n--;
    }
    pthread_mutex_unlock(&box->lock);
    return any;
}

static natsStatus subscribe(struct nats_session *session,
                            const struct nats_session_options *options)
{
    natsInbox *inbox = NULL;
    char all[INBOX_MAX + 2];
    session->box = calloc(1, sizeof *session->box);
    if (!session->box)
        return NATS_NO_MEMORY;
    pthread_mutex_init(&session->box->lock, NULL);
    session->box->refs = 1;
    session->box->wake = options->wake;
    session->box->opaque = options->opaque;
    natsStatus status = natsInbox_Create(&inbox);
    if (status != NATS_OK)
        return status;
    snprintf(session->inbox, sizeof session->inbox, "%s", inbox);
    snprintf(all, sizeof all, "%s.*", session->inbox);
    natsInbox_Destroy(inbox);
    status = natsConnection_Subscribe(&session->subscription, session->connection, all, ack_came,
                                      session->box);
    if (status != NATS_OK)
        return status;
    session->box->refs++; // the subscription's: it calls back until it has ended
    status =
        natsSubscription_SetOnCompleteCB(session->subscription, subscription_ended, session->box);
    if (status != NATS_OK)
        session->box->refs--;
    return status;
}

// A message's id is a header, and its acknowledgement comes to the inbox.
static int check_acks(struct nats_session *session, char *why, size_t size)
{
    const int rc = nats_session_flush(session, why, size);
    if (rc < 0)
        return rc;
    if (natsConnection_HasHeaderSupport(session->connection) != NATS_OK) {
        snprintf(why, size, "the server knows no headers, which jetstream needs");
        return -EPROTONOSUPPORT;
    }
    const char *text = NULL;
    if (natsConnection_GetLastError(session->connection, &text) != NATS_NOT_PERMITTED)
        return 0;
    snprintf(why, size, "the user may not subscribe to _INBOX.>, which jetstream needs");
    return -EACCES;
}

// --- life

// Each as "nats://HOST:PORT".
static natsStatus set_servers(natsOptions *options, const char *servers)
{
    char text[NATS_SERVERS_MAX][NATS_SERVERS_BYTES + 8];
    const char *list[NATS_SERVERS_MAX];
    int n = 0;
    for (const char *at = servers; at && n < NATS_SERVERS_MAX; n++) {
        const char *comma = strchr(at, ',');
        const int length = comma ? (int)(comma - at) : (int)strlen(at);
        snprintf(text[n], sizeof text[n], "nats://%.*s", length, at);
        list[n] = text[n];
        at = comma ? comma + 1 : NULL;
    }
    return natsOptions_SetServers(options, list, n);
}

static void ignore_error(natsConnection *connection, natsSubscription *subscription,
                         natsStatus status, void *opaque)
{
    (void)connection, (void)subscription, (void)status, (void)opaque; // asked for after a flush
}

// Each publication is written at once by the thread that publishes: no other thread of libnats has
// bytes that an error would lose unseen.
static natsStatus make_options(natsOptions **ret, const struct nats_session_options *from)
{
    const struct nats_config *config = from->config;
    natsOptions *options = NULL;
    natsStatus status = natsOptions_Create(&options);
    *ret = options;
    if (status == NATS_OK)
        status = set_servers(options, from->servers);
    if (status == NATS_OK && config->user)
        status = natsOptions_SetUserInfo(options, config->user,
                                         config->password ? config->password : "");
    if (status == NATS_OK && config->ca)
        status = natsOptions_SetSecure(options, true);
    if (status == NATS_OK && config->ca)
        status = natsOptions_LoadCATrustedCertificates(options, config->ca);
    if (status != NATS_OK)
        return status;
    natsOptions_SetName(options, "framed");
    natsOptions_SetTimeout(options, NATS_CONNECT_MS);
    natsOptions_SetWriteDeadline(options, NATS_WRITE_MS);
    natsOptions_SetAllowReconnect(options, false);
    natsOptions_SetIgnoreDiscoveredServers(options, true);
    natsOptions_SetSendAsap(options, true);
    natsOptions_SetPingInterval(options, PING_MS);
    natsOptions_SetMaxPingsOut(options, PINGS);
    return natsOptions_SetErrorHandler(options, ignore_error, NULL);
}

int nats_session_open(struct nats_session **ret, const struct nats_session_options *from, char *why,
                      size_t size)
{
    natsOptions *options = NULL;
    struct nats_session *session = calloc(1, sizeof *session);
    if (!session) {
        snprintf(why, size, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    natsStatus status = make_options(&options, from);
    if (status == NATS_OK)
        status = natsConnection_Connect(&session->connection, options);
    if (status == NATS_OK && from->acknowledged)
        status = subscribe(session, from);
    int rc = put_why(status, why, size);
    if (rc == 0 && from->acknowledged)
        rc = check_acks(session, why, size);
    natsOptions_Destroy(options);
    if (rc < 0)
        nats_session_close(session);
    else
        *ret = session;
    return rc;
}

void nats_session_close(struct nats_session *session)
{
    if (!session)
        return;
    struct ack_box *box = session->box;
    if (box) {
        pthread_mutex_lock(&box->lock);
        box->wake = NULL;
        pthread_mutex_unlock(&box->lock);
    }
    natsSubscription_Destroy(session->subscription);
    natsConnection_Destroy(session->connection);
    if (box)
        release_box(box);
    free(session);
}

bool nats_session_is_open(struct nats_session *session)
{
    return !natsConnection_IsClosed(session->connection);
}

// --- publishing

static natsStatus publish_for_ack(const struct nats_session *session, const char *subject,
                                  uint64_t number, const char *id, const char *text, size_t bytes)
{
    char reply[INBOX_MAX + 24];
    natsMsg *message = NULL;
    snprintf(reply, sizeof reply, "%s.%" PRIu64, session->inbox, number);
    natsStatus status = natsMsg_Create(&message, subject, reply, text, (int)bytes);
    if (status == NATS_OK && id)
        status = natsMsgHeader_Set(message, "Nats-Msg-Id", id);
    if (status == NATS_OK)
        status = natsConnection_PublishMsg(session->connection, message);
    natsMsg_Destroy(message);
    return status;
}

int nats_session_publish(struct nats_session *session, const char *subject, uint64_t number,
                         const char *id, const char *text, size_t bytes, char *why, size_t size)
{
    const natsStatus status =
        session->box ? publish_for_ack(session, subject, number, id, text, bytes)
                     : natsConnection_Publish(session->connection, subject, text, (int)bytes);
    if (status == NATS_MAX_PAYLOAD) {
        snprintf(why, size, "a line has %zu bytes, the servers take %lld (max_payload)", bytes,
                 (long long)natsConnection_GetMaxPayload(session->connection));
        return -EMSGSIZE;
    }
    return put_why(status, why, size);
}

// libnats drops the error of writing a PING, and then says that the flush went well when the
// connection breaks. Only the last error of the thread knows: so it is first set to one that no
// flush of a connection has, and if it is another afterwards, there was no PONG.
int nats_session_flush(struct nats_session *session, char *why, size_t size)
{
    natsStatus last = NATS_OK;
    natsConnection_FlushTimeout(NULL, 1);
    natsStatus status = natsConnection_FlushTimeout(session->connection, NATS_CONFIRM_MS);
    nats_GetLastError(&last);
    if (status == NATS_OK && last != NATS_INVALID_ARG)
        status = last == NATS_OK ? NATS_CONNECTION_CLOSED : last;
    return put_why(status, why, size);
}

// "Permissions Violation for Publish to "SUBJECT"", of which libnats has the last alone. Another
// that comes in this moment may garble it.
bool nats_session_denies(struct nats_session *session, const char *subject)
{
    char quoted[NATS_SUBJECT_MAX + 3], error[512];
    const char *text = NULL;
    if (natsConnection_GetLastError(session->connection, &text) != NATS_NOT_PERMITTED || !text)
        return false;
    snprintf(error, sizeof error, "%s", text);
    snprintf(quoted, sizeof quoted, "\"%s\"", subject);
    return strstr(error, quoted);
}
