// Lines on their way to NATS servers, of many outputs by one session: each is settled once, as
// delivered or lost, or goes back. Of one thread; a session's calls may block it.
//
// Without acknowledgements a line is delivered once the server has answered a PING behind it; one
// that was on its way when the connection broke is lost, since nobody knows whether it came. With
// them a line is delivered once a stream has it; one that is not acknowledged yet goes back, and is
// published again with the same id, by which the stream knows it.
#ifndef FRAMED_DAEMON_OUTPUT_NATS_SENDING_H
#define FRAMED_DAEMON_OUTPUT_NATS_SENDING_H

#include "config/nats_url.h"
#include "daemon/output/nats_session.h"

enum {
    NATS_LINES_MAX = 256,         // of one output on their way
    NATS_LINES_BYTES = 256 << 10, // a line has less
    NATS_FLYING_EACH = 64,        // of one output; while it is doubted 1
};

enum nats_fate { NATS_WAITING, NATS_SENT, NATS_DELIVERED, NATS_LOST };

// Some lines of one output, in their order.
struct nats_lines {
    struct nats_lines *next;
    void *owner; // the caller's
    char subject[NATS_SUBJECT_MAX + 1], id[40];
    uint64_t first; // number of the first line; with it `id` makes the ids of all
    int n, n_published, n_settled;
    // What was published before was not acknowledged in time: one line at a time tries whether that
    // is over, so that an output without a stream takes no room from others.
    bool doubted;
    // In which session the subject was tried alone (0: in none), and what that showed.
    uint64_t tried;
    bool denied;
    char why[NATS_WHY_MAX]; // of the last that was lost for a reason of its own
    struct nats_line {
        uint32_t at, bytes; // in text
        enum nats_fate fate;
    } line[NATS_LINES_MAX];
    char text[];
};

// The list's end is a pointer to the last `next`.
struct nats_list {
    struct nats_lines *first, **last;
};

struct nats_sending {
    struct nats_list list; // all that is on its way
    struct nats_list done; // every line is settled
    struct nats_flying {
        struct nats_lines *lines; // NULL: the place is free
        int i;
        uint64_t number;
        int64_t until_ns; // CLOCK_MONOTONIC
    } flying[NATS_FLYING_MAX];
    int n_flying;
    uint64_t session; // its number, from 1 on
    uint64_t number;  // of the last publication; modulo NATS_FLYING_MAX that of its place
};

void nats_list_clear(struct nats_list *); // forgets what is in it
void nats_list_add(struct nats_list *, struct nats_lines *);
struct nats_lines *nats_list_take(struct nats_list *); // NULL: it is empty

void nats_sending_open(struct nats_sending *);
void nats_sending_add(struct nats_sending *, struct nats_lines *); // until it comes back
// Publishes what waits, as far as it may, and learns what has become of the rest. 0 or negative
// errno: the session is over. With why.
int nats_sending_turn(struct nats_sending *, struct nats_session *, bool acknowledged, char *why,
                      size_t size);
// When the next acknowledgement is overdue; INT64_MAX: none is awaited.
int64_t nats_sending_due_ns(const struct nats_sending *);
// The session is over: all comes back by nats_sending_take, settled or not.
void nats_sending_break(struct nats_sending *, bool acknowledged);
// Lines that are settled, or of which what is not published is to wait; NULL: there are none now.
struct nats_lines *nats_sending_take(struct nats_sending *);

#endif
