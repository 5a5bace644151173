#include "daemon/cluster/etcd.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/expand.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/cluster/etcd_call.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)

enum { CONNECTIONS_MAX = 16, ERROR_MAX = 256 };

static const int64_t watch_start_ns = 5 * S; // until etcd confirms a watch
static const int64_t watch_line_ns = 10 * S; // until an incomplete line is whole
static const int64_t watch_pause_ns = 2 * S; // at most, between tries
static const int64_t watch_lived_ns = S;     // minimum life of a good connection
static const int64_t refused_ns = S;         // until a refused password is sent again
static const int64_t unresolved_ns = 5 * S;  // until a name that hung in the resolver is tried

struct endpoint {
    char *url;
    int64_t shunned_until_ns;
};

struct request {
    struct request *next;
    enum etcd_method method;
    char *body;
    char *prefix;  // of the answer's keys; NULL: any
    int64_t lease; // of the request; 0: none
    int64_t start_ns, deadline_ns;
    int64_t turn_ns; // when the next endpoint is tried
    int first;       // endpoint
    int tried;
    bool renewed; // the token was renewed for this request
    bool ended;
    int rc; // of the last endpoint
    struct etcd_reply reply;
    etcd_done *done;
    void *opaque;
    int n_calls; // of `calls`
    struct etcd_call *calls[];
};

struct watch {
    char *prefix;    // NULL: no watch
    uint64_t serial; // different for each watch
    char *body;
    int64_t next_revision; // next to receive; 0: from now on
    int endpoint;
    struct etcd_call *call;
    bool created;
    size_t scanned;  // received bytes without the end of a line
    int64_t line_ns; // last data that came with no line incomplete
    int64_t retry_ns, pause_ns;
    etcd_changed *changed;
    void *opaque;
};

struct etcd {
    CURLM *multi;
    struct endpoint *endpoints;
    int n_endpoints, preferred;
    char *user, *password, *ca, *cert, *key;
    char *token;
    bool open;                // etcd requires no token
    bool authenticating;      // a token is being requested
    int64_t refused_until_ns; // then user and password are sent again
    struct request *requests;
    struct watch watch;
    atomic_bool woken;
    char error[ERROR_MAX];
};

// --- endpoints

static int endpoint_after(const struct etcd *etcd, int endpoint, int n)
{
    return (endpoint + n) % etcd->n_endpoints;
}

static void note_error(struct etcd *etcd, int endpoint, const char *why)
{
    char text[2 * ERROR_MAX];
    snprintf(text, sizeof text, "%s: %s", etcd->endpoints[endpoint].url, why);
    log_scrub(etcd->error, sizeof etcd->error, text);
}

static void note_success(struct etcd *etcd, int endpoint)
{
    etcd->preferred = endpoint;
    etcd->error[0] = 0;
}

static void note_failure(struct etcd *etcd, int endpoint, const char *why)
{
    note_error(etcd, endpoint, why);
    if (endpoint == etcd->preferred)
        etcd->preferred = endpoint_after(etcd, endpoint, 1);
}

static int open_call(struct etcd *etcd, struct etcd_call **ret, int endpoint,
                     enum etcd_method method, const char *body, void *owner)
{
    const struct etcd_call_options options = {
        .endpoint = etcd->endpoints[endpoint].url,
        .body = body,
        .token = method == ETCD_AUTHENTICATE ? NULL : etcd->token,
        .ca = etcd->ca,
        .cert = etcd->cert,
        .key = etcd->key,
        .method = method,
        .owner = owner,
    };
    return etcd_call_open(ret, etcd->multi, &options);
}

// Gives up a call that has not ended. Shuns a name that hangs: each look-up costs a thread.
static void abandon_call(struct etcd *etcd, struct etcd_call **call, int endpoint, int64_t now)
{
    if (*call && !(*call)->ended && etcd_call_is_resolving(*call))
        etcd->endpoints[endpoint].shunned_until_ns = now + unresolved_ns;
    etcd_call_close(*call);
    *call = NULL;
}

// --- requests

static int endpoint_of(const struct etcd *etcd, const struct request *request, int call)
{
    return endpoint_after(etcd, request->first, call);
}

static void abandon_calls(struct etcd *etcd, struct request *request)
{
    const int64_t now = boottime_ns();
    for (int i = 0; i < request->n_calls; i++)
        abandon_call(etcd, &request->calls[i], endpoint_of(etcd, request, i), now);
}

static void free_request(struct request *request)
{
    etcd_reply_free(&request->reply);
    secret_free(request->body);
    free(request->prefix);
    free(request);
}

// deliver() calls the callback later.
static void end_request(struct etcd *etcd, struct request *request, int rc)
{
    abandon_calls(etcd, request);
    request->ended = true;
    request->rc = rc;
}

// Returns true if a second endpoint may be tried while the first is silent.
static bool may_run_twice(enum etcd_method method)
{
    return method != ETCD_GRANT && method != ETCD_TXN;
}

// Takes the body, also on failure. NULL: no memory.
static struct request *add_request(struct etcd *etcd, enum etcd_method method, char *body,
                                   int64_t timeout_ns, etcd_done *done, void *opaque)
{
    // A single endpoint gets a second connection, as the first may be dead.
    const int n = etcd->n_endpoints == 1 && may_run_twice(method) ? 2 : etcd->n_endpoints;
    struct request *request =
        body ? calloc(1, sizeof *request + (size_t)n * sizeof *request->calls) : NULL;
    if (!request) {
        secret_free(body);
        return NULL;
    }
    request->method = method;
    request->body = body;
    request->start_ns = boottime_ns();
    request->deadline_ns = request->start_ns + timeout_ns;
    request->first = etcd->preferred;
    request->rc = -ETIMEDOUT;
    request->done = done;
    request->opaque = opaque;
    request->n_calls = n;
    struct request **last = &etcd->requests;
    while (*last)
        last = &(*last)->next;
    *last = request;
    return request;
}

static int count_running(const struct request *request)
{
    int n = 0;
    for (int i = 0; i < request->n_calls; i++)
        n += request->calls[i] != NULL;
    return n;
}

// Begins at the next endpoint. Gives each endpoint the same share of the time left.
static void begin_call(struct etcd *etcd, struct request *request, int64_t now)
{
    const int call = request->tried++, left = request->n_calls - call;
    const int endpoint = endpoint_of(etcd, request, call);
    const int64_t share = (request->deadline_ns - now) / (left + may_run_twice(request->method));
    if (call == 0)
        request->first = endpoint;
    request->turn_ns = now;
    if (etcd->endpoints[endpoint].shunned_until_ns > now) {
        note_error(etcd, endpoint, "nothing resolves its name");
        request->rc = -ECONNREFUSED;
    } else if (open_call(etcd, &request->calls[call], endpoint, request->method, request->body,
                         request) < 0) {
        request->rc = -ENOMEM;
    } else {
        request->turn_ns = now + share;
    }
}

static void end_late(struct etcd *etcd, struct request *request)
{
    char why[64];
    if (count_running(request) > 0 || request->tried == 0) {
        snprintf(why, sizeof why, "no answer within %lld ms",
                 (long long)((request->deadline_ns - request->start_ns) / MS));
        note_failure(etcd, request->first, why);
    }
    end_request(etcd, request, -ETIMEDOUT);
}

// Gives up the earlier calls of a request that may not run twice. Returns false for a commit that
// may have arrived, as its outcome would be unknown.
static bool make_way(struct etcd *etcd, struct request *request)
{
    if (may_run_twice(request->method))
        return true;
    for (int i = 0; i < request->n_calls; i++)
        if (request->calls[i] && request->method == ETCD_TXN &&
            etcd_call_is_sent(request->calls[i]))
            return false;
    if (count_running(request) > 0)
        note_failure(etcd, endpoint_of(etcd, request, request->tried - 1), "no answer");
    abandon_calls(etcd, request);
    return true;
}

static bool has_turn(const struct etcd *etcd, const struct request *request, int64_t now)
{
    if (request->tried == 0)
        return true;
    // The second try at a single endpoint is only for a silent one.
    const bool more = request->tried < etcd->n_endpoints ||
                      (request->tried < request->n_calls && count_running(request) > 0);
    return more && now >= request->turn_ns;
}

static void ask_for_token(struct etcd *etcd, int64_t timeout_ns);

static bool needs_token(const struct etcd *etcd)
{
    return etcd->user && !etcd->token && !etcd->open;
}

static void advance_request(struct etcd *etcd, struct request *request, int64_t now)
{
    if (now >= request->deadline_ns) {
        end_late(etcd, request);
        return;
    }
    if (needs_token(etcd) && request->method != ETCD_AUTHENTICATE) {
        if (now < etcd->refused_until_ns)
            end_request(etcd, request, -EACCES);
        else
            ask_for_token(etcd, request->deadline_ns - now);
        return;
    }
    while (has_turn(etcd, request, now)) {
        if (!make_way(etcd, request)) {
            request->turn_ns = INT64_MAX;
            return;
        }
        begin_call(etcd, request, now);
    }
    if (count_running(request) == 0)
        end_request(etcd, request, request->rc);
}

// --- a request's call has ended

static void forget_token(struct etcd *etcd, const char *used)
{
    if (etcd->token && (!used || strcmp(etcd->token, used) != 0))
        return; // there is a newer one already
    secret_free(etcd->token);
    etcd->token = NULL;
    etcd->open = false;
}

// Returns true if the result is final, so that no other endpoint is tried.
static bool is_final(const struct request *request, int rc, bool certain, bool sent)
{
    if (request->method == ETCD_TXN && sent)
        return true;
    return rc == 0 || (certain && (rc == -EACCES || rc == -ENOSPC || rc == -ENOENT));
}

// Returns true if the lease is gone, so that the request is as good as done.
static bool is_gone_lease(const struct request *request, int rc)
{
    return rc == -ENOENT && (request->method == ETCD_KEEPALIVE || request->method == ETCD_REVOKE);
}

static void move_watch(struct etcd *, const char *why);

// An endpoint that was tried before the one that answered is still silent. Its watch may be silent
// too, unnoticed until something changes, so it moves.
static void leave_silent(struct etcd *etcd, const struct request *request, int answered)
{
    const int now_at = endpoint_of(etcd, request, answered);
    for (int i = 0; i < answered; i++)
        if (request->calls[i] && etcd->watch.call && endpoint_of(etcd, request, i) != now_at &&
            etcd->watch.endpoint == endpoint_of(etcd, request, i)) {
            move_watch(etcd, "no answer");
            etcd->watch.endpoint = now_at;
            return;
        }
}

static void take_result(struct etcd *etcd, struct request *request, int i)
{
    struct etcd_call *call = request->calls[i];
    const int endpoint = endpoint_of(etcd, request, i);
    const bool sent = etcd_call_is_sent(call);
    bool certain;
    struct etcd_reply reply;
    int rc = etcd_call_read(call, &reply, request->prefix, &certain);
    if (rc == -EKEYEXPIRED && etcd->user && !request->renewed) {
        request->renewed = true;
        request->tried = 0;
        forget_token(etcd, call->token);
        etcd_reply_free(&reply);
        abandon_calls(etcd, request);
        return;
    }
    rc = rc == -EKEYEXPIRED ? -EACCES : is_gone_lease(request, rc) ? 0 : rc;
    if (rc == 0 && request->lease && reply.answer.lease && reply.answer.lease != request->lease) {
        snprintf(reply.why, sizeof reply.why, "it answers for another lease");
        rc = -EPROTO;
    }
    reply.answer.sent_ns = call->sent_ns;
    etcd_call_close(call);
    request->calls[i] = NULL;
    if (rc == 0) {
        leave_silent(etcd, request, i);
        note_success(etcd, endpoint);
    } else {
        note_failure(etcd, endpoint, reply.why);
    }
    if (is_final(request, rc, certain, sent)) {
        request->reply = reply;
        end_request(etcd, request, rc);
        return;
    }
    etcd_reply_free(&reply);
    request->rc = rc;
    request->turn_ns = 0; // the next endpoint, at once
}

// --- user and password

// Ends the requests that wait for a token.
static void end_waiting(struct etcd *etcd, int rc)
{
    for (struct request *request = etcd->requests; request; request = request->next)
        if (!request->ended && request->tried == 0)
            end_request(etcd, request, rc);
}

static void take_token(struct etcd *etcd, struct request *request)
{
    etcd->authenticating = false;
    if (request->rc < 0) {
        if (request->rc == -EACCES)
            etcd->refused_until_ns = boottime_ns() + refused_ns;
        end_waiting(etcd, request->rc);
        return;
    }
    secret_free(etcd->token);
    etcd->token = request->reply.token;
    etcd->open = !etcd->token;
    request->reply.token = NULL;
}

static void ask_for_token(struct etcd *etcd, int64_t timeout_ns)
{
    if (etcd->authenticating)
        return;
    char *body = etcd_print_login(etcd->user, etcd->password ? etcd->password : "");
    etcd->authenticating = add_request(etcd, ETCD_AUTHENTICATE, body, timeout_ns, NULL, NULL);
}

// --- the watch

static void clear_watch(struct etcd *etcd)
{
    struct watch *watch = &etcd->watch;
    if (watch->prefix)
        abandon_call(etcd, &watch->call, watch->endpoint, boottime_ns());
    free(watch->prefix);
    free(watch->body);
    *watch = (struct watch){.serial = watch->serial + 1};
}

static void end_watch(struct etcd *etcd, int rc)
{
    const struct watch ended = etcd->watch;
    clear_watch(etcd);
    ended.changed(ended.opaque, rc, NULL);
}

// Pauses longer each time, except after a connection that has lived.
static void pause_watch(struct watch *watch, int64_t now, bool lived)
{
    const int64_t longer = watch->pause_ns > 0 ? 2 * watch->pause_ns : 50 * MS;
    watch->pause_ns = lived ? 0 : longer < watch_pause_ns ? longer : watch_pause_ns;
    watch->retry_ns = now + watch->pause_ns;
}

// Continues at the next endpoint.
static void move_watch(struct etcd *etcd, const char *why)
{
    struct watch *watch = &etcd->watch;
    const int64_t now = boottime_ns();
    pause_watch(watch, now,
                watch->created && watch->call && now - watch->call->sent_ns >= watch_lived_ns);
    abandon_call(etcd, &watch->call, watch->endpoint, now);
    note_failure(etcd, watch->endpoint, why);
    watch->endpoint = endpoint_after(etcd, watch->endpoint, 1);
}

static void fail_watch(struct etcd *etcd, int rc, bool certain, const char *why)
{
    if (certain && (rc == -EOVERFLOW || rc == -EACCES)) {
        note_error(etcd, etcd->watch.endpoint, why);
        end_watch(etcd, rc);
        return;
    }
    if (rc == -EKEYEXPIRED && etcd->watch.call)
        forget_token(etcd, etcd->watch.call->token);
    move_watch(etcd, why);
}

// Skips changes that were seen before a connection was lost.
static void tell_changes(struct watch *watch, struct etcd_answer *answer)
{
    while (answer->n > 0 && answer->entries->mod_revision < watch->next_revision) {
        answer->entries++;
        answer->n--;
    }
    if (answer->n == 0)
        return;
    watch->next_revision = answer->entries[answer->n - 1].mod_revision + 1;
    watch->changed(watch->opaque, 0, answer);
}

static void take_line(struct etcd *etcd, const char *line, size_t length)
{
    struct watch *watch = &etcd->watch;
    struct etcd_reply reply;
    int rc = etcd_reply_read(&reply, ETCD_WATCH, watch->prefix, line, length);
    if (rc == 0 && !watch->created && !reply.created)
        rc = -EPROTO;
    if (rc < 0) {
        fail_watch(etcd, rc, rc != -EPROTO && rc != -ENOMEM, reply.why);
    } else {
        if (!watch->created)
            note_success(etcd, watch->endpoint);
        watch->created = true;
        if (watch->next_revision == 0)
            watch->next_revision = reply.answer.revision + 1;
        tell_changes(watch, &reply.answer);
    }
    etcd_reply_free(&reply);
}

// A callback may end the watch and its call, so the received text is taken out of the call first.
static void take_lines(struct etcd *etcd, int64_t now)
{
    struct watch *watch = &etcd->watch;
    struct etcd_call *call = watch->call;
    char *const text = call->text;
    const size_t length = call->length;
    const uint64_t serial = watch->serial;
    size_t at = 0;
    if (length == watch->scanned || etcd_call_status(call) != 200)
        return;
    if (watch->scanned == 0)
        watch->line_ns = now;
    call->text = NULL;
    for (const char *end;
         (end = memchr(text + at + watch->scanned, '\n', length - at - watch->scanned));) {
        const size_t line = at;
        at = (size_t)(end - text) + 1;
        watch->scanned = 0;
        take_line(etcd, text + line, at - line);
        if (watch->serial != serial || watch->call != call) {
            free(text);
            return;
        }
    }
    memmove(text, text + at, length - at);
    call->text = text;
    call->length = watch->scanned = length - at;
}

static void take_end(struct etcd *etcd)
{
    struct etcd_call *call = etcd->watch.call;
    bool certain = false;
    struct etcd_reply reply = {.why = "it closed the connection"};
    int rc = -EIO;
    if (call->result != CURLE_OK || call->length > 0)
        rc = etcd_call_read(call, &reply, NULL, &certain);
    fail_watch(etcd, rc, certain, reply.why[0] ? reply.why : "it closed the connection");
    etcd_reply_free(&reply);
}

static void begin_watch(struct etcd *etcd, int64_t now)
{
    struct watch *watch = &etcd->watch;
    if (needs_token(etcd)) {
        pause_watch(watch, now, false);
        if (now >= etcd->refused_until_ns)
            ask_for_token(etcd, watch_start_ns);
        return;
    }
    free(watch->body);
    watch->body = etcd_print_watch(watch->prefix, watch->next_revision);
    watch->created = false;
    watch->scanned = 0;
    watch->line_ns = now;
    if (etcd->endpoints[watch->endpoint].shunned_until_ns > now)
        move_watch(etcd, "nothing resolves its name");
    else if (!watch->body ||
             open_call(etcd, &watch->call, watch->endpoint, ETCD_WATCH, watch->body, NULL) < 0)
        move_watch(etcd, strerror(ENOMEM));
}

// Returns when a watch is late: with its beginning, or with the rest of a line.
static int64_t watch_limit_ns(const struct watch *watch)
{
    return !watch->created      ? watch->call->sent_ns + watch_start_ns
           : watch->scanned > 0 ? watch->line_ns + watch_line_ns
                                : INT64_MAX;
}

static void advance_watch(struct etcd *etcd, int64_t now)
{
    struct watch *watch = &etcd->watch;
    const uint64_t serial = watch->serial;
    if (watch->call)
        take_lines(etcd, now);
    if (watch->serial != serial || !watch->prefix)
        return;
    if (watch->call && watch->call->ended)
        take_end(etcd);
    else if (watch->call && now >= watch_limit_ns(watch))
        move_watch(etcd, "no answer to a watch");
    else if (!watch->call && now >= watch->retry_ns)
        begin_watch(etcd, now);
}

// --- the loop

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t request_due_ns(const struct etcd *etcd, const struct request *request)
{
    if (needs_token(etcd) && request->method != ETCD_AUTHENTICATE)
        return etcd->authenticating ? request->deadline_ns : 0;
    if (count_running(request) == 0)
        return 0; // to begin, or to end
    if (!has_turn(etcd, request, INT64_MAX))
        return request->deadline_ns;
    return earlier(request->turn_ns, request->deadline_ns);
}

static int64_t next_due_ns(const struct etcd *etcd)
{
    const struct watch *watch = &etcd->watch;
    int64_t due = INT64_MAX;
    for (const struct request *request = etcd->requests; request; request = request->next)
        due = earlier(due, request_due_ns(etcd, request));
    if (watch->prefix)
        due = earlier(due, watch->call ? watch_limit_ns(watch) : watch->retry_ns);
    return due;
}

// Removes the ended requests from the list and returns them. NULL: none.
static struct request *take_ended(struct etcd *etcd)
{
    struct request *ended = NULL, **last = &ended;
    for (struct request **at = &etcd->requests; *at;) {
        struct request *request = *at;
        if (!request->ended) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->next = NULL;
        *last = request;
        last = &request->next;
    }
    return ended;
}

static void deliver(struct etcd *etcd)
{
    struct request *ended;
    while ((ended = take_ended(etcd)))
        while (ended) {
            struct request *request = ended;
            ended = request->next;
            if (request->method == ETCD_AUTHENTICATE)
                take_token(etcd, request);
            else
                request->done(request->opaque, request->rc,
                              request->rc == 0 ? &request->reply.answer : NULL);
            free_request(request);
        }
}

static void take_results(struct etcd *etcd)
{
    struct etcd_call *call;
    while ((call = etcd_call_next(etcd->multi))) {
        struct request *request = call->owner;
        for (int i = 0; request && i < request->n_calls; i++)
            if (request->calls[i] == call) {
                take_result(etcd, request, i);
                break;
            }
    }
}

static void advance_requests(struct etcd *etcd, int64_t now)
{
    // A request for a token comes after the requests that need it.
    for (struct request *request = etcd->requests; request; request = request->next)
        if (!request->ended)
            advance_request(etcd, request, now);
}

static void wait_until(struct etcd *etcd, int64_t until_ns)
{
    const int64_t left = until_ns - boottime_ns();
    const int64_t ms = left <= 0 ? 0 : left < 60 * S ? (left + MS - 1) / MS : 60000;
    if (curl_multi_poll(etcd->multi, NULL, 0, (int)ms, NULL) != CURLM_OK)
        usleep(10000); // no memory
}

void etcd_run(struct etcd *etcd, int64_t until_ns)
{
    for (;;) {
        int running;
        advance_requests(etcd, boottime_ns());
        curl_multi_perform(etcd->multi, &running);
        take_results(etcd);
        advance_watch(etcd, boottime_ns());
        deliver(etcd);
        if (atomic_exchange(&etcd->woken, false) || boottime_ns() >= until_ns)
            return;
        wait_until(etcd, earlier(until_ns, next_due_ns(etcd)));
    }
}

void etcd_wake(struct etcd *etcd)
{
    atomic_store(&etcd->woken, true);
    curl_multi_wakeup(etcd->multi);
}

const char *etcd_error(const struct etcd *etcd)
{
    return etcd->error;
}

// --- what is asked for

// Takes the body, also on failure.
static int ask_range(struct etcd *etcd, const char *prefix, char *body, int64_t timeout_ns,
                     etcd_done *done, void *opaque)
{
    char *copy = strdup(prefix);
    struct request *request =
        copy ? add_request(etcd, ETCD_RANGE, body, timeout_ns, done, opaque) : NULL;
    if (!copy)
        secret_free(body);
    if (!request) {
        free(copy);
        return -ENOMEM;
    }
    request->prefix = copy;
    return 0;
}

int etcd_get(struct etcd *etcd, const char *prefix, int64_t timeout_ns, etcd_done *done,
             void *opaque)
{
    return ask_range(etcd, prefix, etcd_print_range(prefix), timeout_ns, done, opaque);
}

int etcd_get_changes(struct etcd *etcd, const char *prefix, int64_t since, int64_t timeout_ns,
                     etcd_done *done, void *opaque)
{
    return ask_range(etcd, prefix, etcd_print_changes(prefix, since), timeout_ns, done, opaque);
}

int etcd_grant(struct etcd *etcd, int64_t ttl_s, int64_t timeout_ns, etcd_done *done, void *opaque)
{
    return add_request(etcd, ETCD_GRANT, etcd_print_grant(ttl_s), timeout_ns, done, opaque)
               ? 0
               : -ENOMEM;
}

static int ask_of_lease(struct etcd *etcd, enum etcd_method method, int64_t lease,
                        int64_t timeout_ns, etcd_done *done, void *opaque)
{
    struct request *request =
        add_request(etcd, method, etcd_print_lease(lease), timeout_ns, done, opaque);
    if (request)
        request->lease = lease;
    return request ? 0 : -ENOMEM;
}

int etcd_keepalive(struct etcd *etcd, int64_t lease, int64_t timeout_ns, etcd_done *done,
                   void *opaque)
{
    return ask_of_lease(etcd, ETCD_KEEPALIVE, lease, timeout_ns, done, opaque);
}

int etcd_revoke(struct etcd *etcd, int64_t lease, int64_t timeout_ns, etcd_done *done, void *opaque)
{
    return ask_of_lease(etcd, ETCD_REVOKE, lease, timeout_ns, done, opaque);
}

int etcd_commit(struct etcd *etcd, const struct etcd_compare compares[], int n_compares,
                const struct etcd_write writes[], int n_writes, int64_t timeout_ns, etcd_done *done,
                void *opaque)
{
    char *body = etcd_print_txn(compares, n_compares, writes, n_writes);
    return add_request(etcd, ETCD_TXN, body, timeout_ns, done, opaque) ? 0 : -ENOMEM;
}

int etcd_watch(struct etcd *etcd, const char *prefix, int64_t revision, etcd_changed *changed,
               void *opaque)
{
    const bool silent = etcd->watch.call && etcd->watch.endpoint == etcd->preferred;
    char *copy = strdup(prefix);
    if (!copy)
        return -ENOMEM;
    clear_watch(etcd);
    struct watch *watch = &etcd->watch;
    watch->prefix = copy;
    watch->next_revision = revision;
    watch->endpoint = endpoint_after(etcd, etcd->preferred, silent);
    watch->changed = changed;
    watch->opaque = opaque;
    return 0;
}

void etcd_unwatch(struct etcd *etcd)
{
    clear_watch(etcd);
}

// --- open and close

static char *copy_text(const char *text, bool *good)
{
    char *copy = text ? strdup(text) : NULL;
    *good &= !text || copy;
    return copy;
}

static bool copy_options(struct etcd *etcd, const struct etcd_options *options)
{
    bool good = true;
    etcd->endpoints = calloc((size_t)options->n_endpoints, sizeof *etcd->endpoints);
    if (!etcd->endpoints)
        return false;
    etcd->n_endpoints = options->n_endpoints;
    for (int i = 0; i < options->n_endpoints; i++)
        etcd->endpoints[i].url = copy_text(options->endpoints[i], &good);
    etcd->user = copy_text(options->user, &good);
    etcd->password = copy_text(options->password, &good);
    etcd->ca = copy_text(options->ca, &good);
    etcd->cert = copy_text(options->cert, &good);
    etcd->key = copy_text(options->key, &good);
    return good;
}

int etcd_open(struct etcd **ret, const struct etcd_options *options)
{
    struct etcd *etcd = calloc(1, sizeof *etcd);
    if (!etcd)
        return -ENOMEM;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(etcd);
        return -ENOMEM;
    }
    etcd->multi = curl_multi_init();
    if (!etcd->multi || !copy_options(etcd, options)) {
        etcd_close(etcd);
        return -ENOMEM;
    }
    curl_multi_setopt(etcd->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    *ret = etcd;
    return 0;
}

void etcd_close(struct etcd *etcd)
{
    if (!etcd)
        return;
    clear_watch(etcd);
    while (etcd->requests) {
        struct request *request = etcd->requests;
        etcd->requests = request->next;
        abandon_calls(etcd, request);
        free_request(request);
    }
    curl_multi_cleanup(etcd->multi);
    curl_global_cleanup();
    for (int i = 0; i < etcd->n_endpoints; i++)
        free(etcd->endpoints[i].url);
    free(etcd->endpoints);
    free(etcd->user);
    secret_free(etcd->password);
    free(etcd->ca);
    free(etcd->cert);
    free(etcd->key);
    secret_free(etcd->token);
    free(etcd);
}
