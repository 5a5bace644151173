// When another spare connection may be opened beside a silent session, after spares that were of no
// use: the session went on by itself, or the spare failed. Pure.
#ifndef FRAMED_DAEMON_INPUT_SPARE_PAUSE_H
#define FRAMED_DAEMON_INPUT_SPARE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct spare_pause { // zeroed: a spare may be opened at once. Times: CLOCK_MONOTONIC
    int64_t begun_ns, until_ns;
    int useless; // spares in a row that were of no use
};

// 10 s, doubled with each spare, 160 s at most. If the last pause began an hour ago or earlier, the
// service was good since, for no spare was needed: it is 10 s again.
void spare_pause_begin(struct spare_pause *, int64_t now_ns);
// No other spare is opened beside this session.
void spare_pause_for_good(struct spare_pause *);
bool spare_pause_is_over(const struct spare_pause *, int64_t now_ns);

#endif
