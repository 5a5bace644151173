// What trials of one choice measured, and which of two choices is the better. Pure.
#ifndef FRAMED_DAEMON_TUNE_FIGURES_H
#define FRAMED_DAEMON_TUNE_FIGURES_H

#include <stdbool.h>

struct figures {
    double lost;     // share of the frames offered, 0 to 1
    double rate;     // frames/s of all outputs
    double cores;    // CPU
    double p99_ms;   // received to finished
    double resident; // bytes
};

enum objective {
    OBJECTIVE_RATE, // cameras at full speed: most frames, then least CPU, then least memory
    OBJECTIVE_LIVE, // cameras at their own pace: least CPU, then least latency, then least memory
};                  // but first of all nothing is lost

enum { TRIALS_MAX = 8 };

struct trials { // of one choice
    struct figures list[TRIALS_MAX];
    int n;
};

enum verdict { VERDICT_WORSE, VERDICT_SAME, VERDICT_BETTER, VERDICT_OPEN };

void trials_add(struct trials *, const struct figures *); // beyond TRIALS_MAX: nothing
struct figures trials_median(const struct trials *);      // of each figure by itself

// How far trials of the same lie apart, as a part of their median: of the figure that the objective
// goes by first. 0 of less than two.
double trials_noise(const struct trials *, enum objective);

// What the challenger is beside the holder. Better and worse are differences that are larger than
// what counts and than the spread of either's trials; OPEN: larger than the one, but not than the
// other, so more trials are wanted. `last`: there will be none, and OPEN is SAME.
enum verdict trials_judge(const struct trials *challenger, const struct trials *holder,
                          enum objective, bool last);
// Whether one trial is so far behind the holder's that more would be a waste.
bool trials_hopeless(const struct figures *, const struct trials *holder, enum objective);

#endif
