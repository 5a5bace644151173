// Clients of a listening unix socket that do what a script says, on the loop's own thread. A
// script's bytes are sent as they are, but for these:
//     \+ another client connects, and it speaks from here on; the first one needs none
//     \> the next client speaks, in turn
//     \. the loop turns until it has nothing to do
//     \< the client reads what has come
//     \! it sends no more          \- it closes
//     \r a carriage return         \ before any other byte: that byte
#ifndef FRAMED_TESTS_FUZZ_DIALOGUE_H
#define FRAMED_TESTS_FUZZ_DIALOGUE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { SPEAKERS_MAX = 40 };

struct bytes_of { // a string too, ends with a zero that does not count
    char *at;
    size_t n;
};

struct speaker {
    int fd;               // -1: it closed
    bool silent;          // it sends no more
    bool ended;           // the other end closed
    struct bytes_of said; // what the socket took
    struct bytes_of heard;
};

struct dialogue {
    uv_loop_t loop;
    char path[64]; // of the socket, for whoever is tried to listen on
    struct speaker speaker[SPEAKERS_MAX];
    int n, current;
};

void dialogue_open(struct dialogue *);
// The first client connects, then all do what the script says; those that are still open have heard
// all that came for them when it returns.
void dialogue_run(struct dialogue *, const char *script, size_t size);
// One client more, which says this and hears all that comes of it.
const struct speaker *dialogue_ask(struct dialogue *, const char *text, size_t size);
void dialogue_hang_up(struct dialogue *); // all clients; what they said and heard stays
// When who listened closes: nothing of it may stay, neither in the loop nor at the path.
void dialogue_close(struct dialogue *);

#endif
