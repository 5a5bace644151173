#include "daemon/output/nats_link.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "config/load.h"
#include "config/object.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/input/retry.h"

enum {
    LOOK_MS = 500, // between looks whether an idle connection is still there
    JOIN_MS = 300, // that the end waits for a thread
};
static const int64_t MS = 1000000;
static const int64_t STEADY_NS = 10 * INT64_C(1000000000); // that a connection holds: it is well

struct nats_links {
    struct event_queue *events;
    struct config *config; // of which the keys of `nats` are
    struct config *next;   // of a reload that is under way, or NULL
    struct nats_link *list;
    char id[17]; // of this process
    uint64_t feeds;
};

struct nats_link {
    struct nats_links *links;
    struct nats_link *next;
    char servers[NATS_SERVERS_BYTES];
    struct nats_feed *feeds;
    pthread_t thread;
    struct event changed; // what follows the lock has changed
    bool is_up;           // as the feeds know it, and after how many changes
    uint64_t n_known;

    pthread_mutex_t lock; // of what follows
    pthread_cond_t wake;
    struct config *config; // new one for the thread, or NULL
    struct nats_list given, back;
    bool acked; // acknowledgements have come
    bool up;
    uint64_t n_changes;
    char why[NATS_WHY_MAX];
    bool stop, ended;
    bool silent; // no event may be posted any more

    // The thread's:
    struct config *own;
    struct nats_session *session; // NULL: not connected
    struct nats_sending *sending;
    struct retry retry;
    int64_t connected_ns, next_ns; // CLOCK_MONOTONIC
    bool told;                     // that there is no connection, and not yet that there is again
};

// --- the thread

static void tell_loop(struct nats_link *link)
{
    if (!link->silent)
        event_post(link->links->events, &link->changed);
}

static void ack_has_come(void *opaque)
{
    struct nats_link *link = opaque;
    pthread_mutex_lock(&link->lock);
    link->acked = true;
    pthread_cond_signal(&link->wake);
    pthread_mutex_unlock(&link->lock);
}

static void set_up(struct nats_link *link, bool up, const char *why)
{
    pthread_mutex_lock(&link->lock);
    link->up = up;
    link->n_changes++;
    snprintf(link->why, sizeof link->why, "%s", why);
    tell_loop(link);
    pthread_mutex_unlock(&link->lock);
}

static void hand_back(struct nats_link *link)
{
    struct nats_lines *lines = nats_sending_take(link->sending);
    if (!lines)
        return;
    pthread_mutex_lock(&link->lock);
    for (; lines; lines = nats_sending_take(link->sending))
        nats_list_add(&link->back, lines);
    tell_loop(link);
    pthread_mutex_unlock(&link->lock);
}

static void disconnect(struct nats_link *link, const char *why)
{
    const bool acknowledged = link->own->nats.jetstream;
    nats_session_close(link->session);
    link->session = NULL;
    nats_sending_break(link->sending, acknowledged);
    set_up(link, false, why);
    hand_back(link);
}

static void lose_connection(struct nats_link *link, int rc, const char *why)
{
    const int64_t now = monotonic_ns();
    if (link->session && now - link->connected_ns > STEADY_NS)
        retry_reset(&link->retry);
    disconnect(link, why);
    link->next_ns = now + retry_next_ns(&link->retry, rc == -EACCES);
    if (!link->told)
        log_event(LOG_LEVEL_WARNING,
                  "no connection to NATS at %s: %s; lines wait, and the oldest are lost",
                  link->servers, why);
    link->told = true;
}

static void connect_servers(struct nats_link *link)
{
    char why[NATS_WHY_MAX] = "";
    const struct nats_session_options options = {
        .servers = link->servers,
        .config = &link->own->nats,
        .acknowledged = link->own->nats.jetstream,
        .wake = ack_has_come,
        .opaque = link,
    };
    const int rc = nats_session_open(&link->session, &options, why, sizeof why);
    if (rc < 0) {
        lose_connection(link, rc, why);
        return;
    }
    link->connected_ns = monotonic_ns();
    if (!link->told)
        log_event(LOG_LEVEL_INFO, "connected to NATS at %s", link->servers);
    set_up(link, true, "");
}

// Servers that break each connection at once are not there again: only one that settles lines, or
// that holds, is.
static void tell_again(struct nats_link *link)
{
    if (!link->told ||
        (!link->sending->done.first && monotonic_ns() - link->connected_ns <= STEADY_NS))
        return;
    log_event(LOG_LEVEL_INFO, "connected to NATS at %s again", link->servers);
    link->told = false;
}

static void send_lines(struct nats_link *link)
{
    char why[NATS_WHY_MAX] = "";
    int rc =
        nats_sending_turn(link->sending, link->session, link->own->nats.jetstream, why, sizeof why);
    if (rc == 0 && !nats_session_is_open(link->session)) {
        rc = -ENOTCONN;
        snprintf(why, sizeof why, "the connection was lost");
    }
    if (rc < 0) {
        lose_connection(link, rc, why);
        return;
    }
    tell_again(link);
    hand_back(link);
}

// When the thread has to do something by itself.
static int64_t next_time_ns(const struct nats_link *link)
{
    if (!link->session)
        return link->next_ns;
    const int64_t look = monotonic_ns() + LOOK_MS * MS, due = nats_sending_due_ns(link->sending);
    return due < look ? due : look;
}

// Waits until there is something to do, and takes what is given. False: the thread is to end.
static bool take_given(struct nats_link *link, struct config **config)
{
    const int64_t until_ns = next_time_ns(link);
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    struct nats_lines *lines;
    pthread_mutex_lock(&link->lock);
    int rc = 0;
    while (!link->stop && !link->config && !link->given.first && !link->acked && rc == 0)
        rc = pthread_cond_timedwait(&link->wake, &link->lock, &until);
    link->acked = false;
    while ((lines = nats_list_take(&link->given)))
        nats_sending_add(link->sending, lines);
    *config = link->config;
    link->config = NULL;
    const bool goes_on = !link->stop;
    pthread_mutex_unlock(&link->lock);
    return goes_on;
}

static void take_config(struct nats_link *link, struct config *config)
{
    if (link->session)
        disconnect(link, "");
    config_free(link->own);
    link->own = config;
    link->next_ns = 0;
    retry_reset(&link->retry);
}

// Lines that were given when the connection had just gone wait where they came from.
static void *run(void *opaque)
{
    struct nats_link *link = opaque;
    struct config *config = NULL;
    pthread_setname_np(pthread_self(), "nats");
    while (take_given(link, &config)) {
        if (config)
            take_config(link, config);
        if (link->session) {
            send_lines(link);
            continue;
        }
        nats_sending_break(link->sending, true);
        hand_back(link);
        if (monotonic_ns() >= link->next_ns)
            connect_servers(link);
    }
    config_free(config);
    disconnect(link, "");
    pthread_mutex_lock(&link->lock);
    link->ended = true;
    pthread_cond_signal(&link->wake);
    tell_loop(link);
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

// --- a link, on the loop

static void free_lines(struct nats_list *list)
{
    struct nats_lines *lines;
    while ((lines = nats_list_take(list)))
        free(lines);
}

static void free_link(struct nats_link *link)
{
    free_lines(&link->given);
    free_lines(&link->back);
    config_free(link->config);
    config_free(link->own);
    pthread_cond_destroy(&link->wake);
    pthread_mutex_destroy(&link->lock);
    free(link->sending);
    free(link);
}

static void forget_link(struct nats_link *link)
{
    struct nats_link **at = &link->links->list;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
}

static void return_lines(struct nats_list *back)
{
    struct nats_lines *lines;
    while ((lines = nats_list_take(back))) {
        struct nats_feed *feed = lines->owner;
        if (!feed) {
            free(lines);
            continue;
        }
        feed->lines = NULL;
        feed->returned(feed, lines);
    }
}

static struct nats_link *link_of(struct event *event)
{
    return (struct nats_link *)((char *)event - offsetof(struct nats_link, changed));
}

static void link_has_changed(struct event *event)
{
    struct nats_link *link = link_of(event);
    struct nats_list back;
    struct nats_lines *lines;
    char why[NATS_WHY_MAX];
    nats_list_clear(&back);
    pthread_mutex_lock(&link->lock);
    while ((lines = nats_list_take(&link->back)))
        nats_list_add(&back, lines);
    const bool new = link->n_changes != link->n_known;
    const bool ended = link->ended && !atomic_load(&link->changed.posted);
    link->is_up = link->up;
    link->n_known = link->n_changes;
    memcpy(why, link->why, sizeof why);
    pthread_mutex_unlock(&link->lock);
    return_lines(&back);
    for (struct nats_feed *feed = link->feeds, *next; new &&feed; feed = next) {
        next = feed->next; // it may be closed by the call
        feed->changed(feed, why);
    }
    if (!ended)
        return;
    pthread_join(link->thread, NULL); // it is on its last steps
    forget_link(link);
    free_link(link);
}

static int open_link(struct nats_link **ret, struct nats_links *links, const char *servers)
{
    pthread_condattr_t attributes;
    struct nats_link *link = calloc(1, sizeof *link);
    if (!link)
        return -ENOMEM;
    link->links = links;
    snprintf(link->servers, sizeof link->servers, "%s", servers);
    link->changed.callback = link_has_changed;
    nats_list_clear(&link->given);
    nats_list_clear(&link->back);
    link->retry.seed = (uint32_t)monotonic_ns();
    pthread_mutex_init(&link->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&link->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    link->own = config_copy_notify(links->config);
    link->sending = malloc(sizeof *link->sending);
    int rc = link->own && link->sending ? 0 : -ENOMEM;
    if (rc == 0) {
        nats_sending_open(link->sending);
        rc = -pthread_create(&link->thread, NULL, run, link);
    }
    if (rc < 0) {
        free_link(link);
        return rc;
    }
    link->next = links->list;
    links->list = link;
    *ret = link;
    return 0;
}

static void stop_link(struct nats_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->stop = true;
    pthread_cond_signal(&link->wake);
    pthread_mutex_unlock(&link->lock);
}

// --- feeds

static struct nats_link *find_link(const struct nats_links *links, const char *servers)
{
    struct nats_link *link = links->list;
    while (link && (!link->feeds || strcmp(link->servers, servers) != 0)) // without one it ends
        link = link->next;
    return link;
}

int nats_feed_open(struct nats_feed *feed, struct nats_links *links, const char *servers)
{
    struct nats_link *link = find_link(links, servers);
    const int rc = link ? 0 : open_link(&link, links, servers);
    if (rc < 0)
        return rc;
    feed->link = link;
    feed->number = ++links->feeds;
    feed->next = link->feeds;
    link->feeds = feed;
    return 0;
}

void nats_feed_close(struct nats_feed *feed)
{
    struct nats_link *link = feed->link;
    struct nats_feed **at = &link->feeds;
    if (feed->lines)
        feed->lines->owner = NULL;
    feed->lines = NULL;
    while (*at != feed)
        at = &(*at)->next;
    *at = feed->next;
    if (!link->feeds)
        stop_link(link);
}

bool nats_feed_is_up(const struct nats_feed *feed)
{
    return feed->link->is_up;
}

void nats_feed_give(struct nats_feed *feed, struct nats_lines *lines)
{
    struct nats_link *link = feed->link;
    snprintf(lines->id, sizeof lines->id, "%s.%" PRIu64, link->links->id, feed->number);
    lines->owner = feed;
    feed->lines = lines;
    pthread_mutex_lock(&link->lock);
    nats_list_add(&link->given, lines);
    pthread_cond_signal(&link->wake);
    pthread_mutex_unlock(&link->lock);
}

// --- all links

int nats_links_open(struct nats_links **ret, struct event_queue *events,
                    const struct config *config)
{
    struct nats_links *links = calloc(1, sizeof *links);
    uint64_t id = (uint64_t)monotonic_ns();
    if (!links)
        return -ENOMEM;
    links->events = events;
    links->config = config_copy_notify(config);
    if (!links->config) {
        free(links);
        return -ENOMEM;
    }
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) < 0)
        log_event(LOG_LEVEL_DEBUG, "getrandom: %s", strerror(errno)); // the time will do
    snprintf(links->id, sizeof links->id, "%016" PRIx64, id);
    *ret = links;
    return 0;
}

int nats_links_prepare(struct nats_links *links, const struct config *config)
{
    config_free(links->next);
    links->next = config_copy_notify(config);
    return links->next ? 0 : -ENOMEM;
}

// A thread for which there is no memory goes on as it did.
static void give_config(struct nats_link *link, const struct config *config)
{
    struct config *copy = config_copy_notify(config);
    if (!copy) {
        log_event(LOG_LEVEL_ERROR, "NATS at %s: %s", link->servers, strerror(ENOMEM));
        return;
    }
    pthread_mutex_lock(&link->lock);
    config_free(link->config);
    link->config = copy;
    pthread_cond_signal(&link->wake);
    pthread_mutex_unlock(&link->lock);
}

void nats_links_commit(struct nats_links *links)
{
    if (!links->next)
        return;
    const bool same = config_same_nats(links->config, links->next);
    config_free(links->config);
    links->config = links->next;
    links->next = NULL;
    for (struct nats_link *link = links->list; !same && link; link = link->next)
        give_config(link, links->config);
}

void nats_links_stop(struct nats_links *links)
{
    for (struct nats_link *link = links ? links->list : NULL; link; link = link->next) {
        stop_link(link);
        pthread_mutex_lock(&link->lock);
        link->silent = true;
        pthread_mutex_unlock(&link->lock);
    }
}

static bool join_link(struct nats_link *link, int64_t until_ns)
{
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    int rc = 0;
    pthread_mutex_lock(&link->lock);
    while (!link->ended && rc == 0)
        rc = pthread_cond_timedwait(&link->wake, &link->lock, &until);
    const bool ended = link->ended;
    pthread_mutex_unlock(&link->lock);
    if (ended)
        pthread_join(link->thread, NULL);
    else
        pthread_detach(link->thread);
    return ended;
}

void nats_links_close(struct nats_links *links)
{
    const int64_t until_ns = monotonic_ns() + JOIN_MS * MS;
    bool hangs = false;
    if (!links)
        return;
    for (struct nats_link *link = links->list, *next; link; link = next) {
        next = link->next;
        if (join_link(link, until_ns))
            free_link(link);
        else
            hangs = true;
    }
    if (hangs)
        return; // a thread may still look at it
    config_free(links->config);
    config_free(links->next);
    free(links);
}
