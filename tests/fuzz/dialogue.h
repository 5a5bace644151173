// Clients of a listening unix socket that follow a script, on the loop's own thread. The script's
// bytes are sent unchanged, except for these:
//     \+ another client connects and becomes the sender; the first one connects without it
//     \> the next client becomes the sender, in turn
//     \. the loop runs until it has nothing to do
//     \< the client reads all pending bytes
//     \! it sends no more          \- it closes
//     \r a carriage return         \ before any other byte: that byte
#ifndef FRAMED_TESTS_FUZZ_DIALOGUE_H
#define FRAMED_TESTS_FUZZ_DIALOGUE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { SPEAKERS_MAX = 40 };

struct bytes_of { // ends with a zero, which is not counted; thus also a string
    char *at;
    size_t n;
};

struct speaker {
    int fd;               // -1: closed
    bool silent;          // it sends no more
    bool ended;           // the other end closed
    struct bytes_of said; // accepted by the socket
    struct bytes_of heard;
};

struct dialogue {
    uv_loop_t loop;
    char path[64]; // of the socket, for the listener under test
    struct speaker speaker[SPEAKERS_MAX];
    int n, current;
};

void dialogue_open(struct dialogue *);
// Connects the first client, then runs the script. When it returns, clients that are still open
// have read everything sent to them.
void dialogue_run(struct dialogue *, const char *script, size_t size);
// Connects one more client, which sends the text and reads the whole reply.
const struct speaker *dialogue_ask(struct dialogue *, const char *text, size_t size);
void dialogue_hang_up(struct dialogue *); // closes all clients; their sent and received bytes stay
// Checks that the closed listener has left nothing in the loop or at the path.
void dialogue_close(struct dialogue *);

#endif
