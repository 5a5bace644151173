#include "daemon/output/nats_sending.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

static const int64_t MS = 1000000;

// --- lists

void nats_list_clear(struct nats_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

void nats_list_add(struct nats_list *list, struct nats_lines *lines)
{
    lines->next = NULL;
    *list->last = lines;
    list->last = &lines->next;
}

struct nats_lines *nats_list_take(struct nats_list *list)
{
    struct nats_lines *lines = list->first;
    if (!lines)
        return NULL;
    list->first = lines->next;
    if (!list->first)
        list->last = &list->first;
    return lines;
}

// --- one line

static void settle(struct nats_lines *lines, int i, enum nats_fate fate, const char *why)
{
    lines->line[i].fate = fate;
    lines->n_settled++;
    if (why)
        snprintf(lines->why, sizeof lines->why, "%s", why);
}

// 0 also where the line is lost by that; negative errno: the session is over.
static int publish_line(struct nats_session *session, struct nats_lines *lines, uint64_t number,
                        char *why, size_t size)
{
    const int i = lines->n_published;
    struct nats_line *line = &lines->line[i];
    char id[sizeof lines->id + 24];
    snprintf(id, sizeof id, "%s.%" PRIu64, lines->id, lines->first + (uint64_t)i);
    const int rc = nats_session_publish(session, lines->subject, number, id, lines->text + line->at,
                                        line->bytes, why, size);
    if (rc < 0 && rc != -EMSGSIZE)
        return rc;
    lines->n_published++;
    line->fate = NATS_SENT;
    if (rc == -EMSGSIZE)
        settle(lines, i, NATS_LOST, why);
    return 0;
}

static int count_flying(const struct nats_lines *lines)
{
    return lines->n_published - lines->n_settled;
}

static bool is_done(const struct nats_lines *lines)
{
    return lines->n_settled == lines->n ||
           (lines->doubted && lines->n_published > 0 && count_flying(lines) == 0);
}

// Takes those that are done out of the list.
static void sort_out(struct nats_sending *sending)
{
    struct nats_list rest;
    struct nats_lines *lines;
    nats_list_clear(&rest);
    while ((lines = nats_list_take(&sending->list)))
        nats_list_add(is_done(lines) ? &sending->done : &rest, lines);
    while ((lines = nats_list_take(&rest)))
        nats_list_add(&sending->list, lines);
}

static void settle_sent(struct nats_lines *lines, enum nats_fate fate, const char *why)
{
    for (int i = 0; i < lines->n_published; i++)
        if (lines->line[i].fate == NATS_SENT)
            settle(lines, i, fate, why);
}

// --- without acknowledgements

// Whether a subject is refused can be told of the last one alone that was: so what was published is
// confirmed before others follow.
static int try_subject(const struct nats_sending *sending, struct nats_session *session,
                       struct nats_lines *lines, char *why, size_t size)
{
    const int rc = nats_session_flush(session, why, size);
    if (rc < 0)
        return rc;
    lines->tried = sending->session;
    lines->denied = nats_session_denies(session, lines->subject);
    return 0;
}

static int turn_plain(struct nats_sending *sending, struct nats_session *session, char *why,
                      size_t size)
{
    int rc = 0;
    for (struct nats_lines *lines = sending->list.first; rc == 0 && lines; lines = lines->next) {
        while (rc == 0 && lines->n_published < lines->n)
            rc = publish_line(session, lines, 0, why, size);
        if (rc == 0 && lines->tried != sending->session && count_flying(lines) > 0)
            rc = try_subject(sending, session, lines, why, size);
    }
    if (rc == 0 && sending->list.first)
        rc = nats_session_flush(session, why, size);
    if (rc < 0)
        return rc;
    for (struct nats_lines *lines = sending->list.first; lines; lines = lines->next) {
        lines->denied |= nats_session_denies(session, lines->subject);
        settle_sent(lines, lines->denied ? NATS_LOST : NATS_DELIVERED,
                    lines->denied ? NATS_NOT_ALLOWED : NULL);
    }
    sort_out(sending);
    return 0;
}

// --- with acknowledgements

static struct nats_flying *place_of(struct nats_sending *sending, uint64_t number)
{
    return &sending->flying[number % NATS_FLYING_MAX];
}

// A number behind the last, whose place is free: there is one.
static uint64_t free_number(struct nats_sending *sending)
{
    uint64_t number = sending->number + 1;
    while (place_of(sending, number)->lines)
        number++;
    return number;
}

static void land(struct nats_sending *sending, struct nats_flying *flying, enum nats_fate fate,
                 const char *why)
{
    settle(flying->lines, flying->i, fate, why);
    *flying = (struct nats_flying){0};
    sending->n_flying--;
}

static void take_acks(struct nats_sending *sending, struct nats_session *session)
{
    struct nats_ack ack;
    while (nats_session_ack(session, &ack)) {
        struct nats_flying *flying = place_of(sending, ack.number);
        if (!flying->lines || flying->number != ack.number)
            continue; // it was given up
        flying->lines->doubted = false;
        land(sending, flying, ack.stored ? NATS_DELIVERED : NATS_LOST, ack.stored ? NULL : ack.why);
    }
}

static void give_up_late(struct nats_sending *sending, struct nats_session *session, int64_t now_ns)
{
    for (int i = 0; sending->n_flying > 0 && i < NATS_FLYING_MAX; i++) {
        struct nats_flying *flying = &sending->flying[i];
        if (!flying->lines || flying->until_ns > now_ns)
            continue;
        flying->lines->doubted = true;
        land(sending, flying, NATS_LOST,
             nats_session_denies(session, flying->lines->subject)
                 ? NATS_NOT_ALLOWED
                 : "no stream has acknowledged it");
    }
}

static bool may_fly(const struct nats_sending *sending, const struct nats_lines *lines)
{
    return lines->n_published < lines->n && sending->n_flying < NATS_FLYING_MAX &&
           count_flying(lines) < (lines->doubted ? 1 : NATS_FLYING_EACH) && !is_done(lines);
}

static int fly(struct nats_sending *sending, struct nats_session *session, struct nats_lines *lines,
               char *why, size_t size)
{
    const int i = lines->n_published;
    sending->number = free_number(sending);
    const int rc = publish_line(session, lines, sending->number, why, size);
    if (rc < 0 || lines->line[i].fate != NATS_SENT)
        return rc;
    *place_of(sending, sending->number) =
        (struct nats_flying){lines, i, sending->number, monotonic_ns() + NATS_CONFIRM_MS * MS};
    sending->n_flying++;
    return 0;
}

static int turn_acknowledged(struct nats_sending *sending, struct nats_session *session, char *why,
                             size_t size)
{
    int rc = 0;
    take_acks(sending, session);
    give_up_late(sending, session, monotonic_ns());
    for (struct nats_lines *lines = sending->list.first; rc == 0 && lines; lines = lines->next)
        while (rc == 0 && may_fly(sending, lines))
            rc = fly(sending, session, lines, why, size);
    sort_out(sending);
    return rc;
}

// --- all

void nats_sending_open(struct nats_sending *sending)
{
    *sending = (struct nats_sending){.session = 1};
    nats_list_clear(&sending->list);
    nats_list_clear(&sending->done);
}

void nats_sending_add(struct nats_sending *sending, struct nats_lines *lines)
{
    nats_list_add(&sending->list, lines);
}

int nats_sending_turn(struct nats_sending *sending, struct nats_session *session, bool acknowledged,
                      char *why, size_t size)
{
    return acknowledged ? turn_acknowledged(sending, session, why, size)
                        : turn_plain(sending, session, why, size);
}

int64_t nats_sending_due_ns(const struct nats_sending *sending)
{
    int64_t due = INT64_MAX;
    for (int i = 0; sending->n_flying > 0 && i < NATS_FLYING_MAX; i++)
        if (sending->flying[i].lines && sending->flying[i].until_ns < due)
            due = sending->flying[i].until_ns;
    return due;
}

void nats_sending_break(struct nats_sending *sending, bool acknowledged)
{
    struct nats_lines *lines;
    while ((lines = nats_list_take(&sending->list))) {
        if (!acknowledged)
            settle_sent(lines, NATS_LOST, NULL);
        nats_list_add(&sending->done, lines);
    }
    sending->session++;
    memset(sending->flying, 0, sizeof sending->flying);
    sending->n_flying = 0;
}

struct nats_lines *nats_sending_take(struct nats_sending *sending)
{
    return nats_list_take(&sending->done);
}
