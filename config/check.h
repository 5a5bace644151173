// Rules that a row cannot say: across the keys of an output, of a camera's URL, and of what the
// daemon itself listens on.
#ifndef FRAMED_CONFIG_CHECK_H
#define FRAMED_CONFIG_CHECK_H

#include "config/mistakes.h"
#include "config/schema.h"

// What a mapping said about one row of its table.
struct given {
    struct place key; // line 0: nothing, so the member holds a default
    struct place value;
    int node;   // of the YAML document
    bool wrong; // the value was a mistake already
};

// Notes every rule that `output`, the last of those in `config`, breaks, and settles what depends
// on several keys (its protocol). `path` is its dotted name, `given` goes by the rows of
// output_table.
void check_output(struct mistakes *, const struct config *config, struct output_config *output,
                  const struct given given[], const char *path);

// The same for a camera, once its outputs are read: settles their `overflow`. `given` goes by the
// rows of camera_table.
void check_camera(struct mistakes *, struct camera_config *camera, const struct given given[],
                  const char *path);

// The same for what stands at the top, once all is read; `given` goes by the rows of root_table.
void check_root(struct mistakes *, struct config *config, const struct given given[]);

// What the file says, or no longer says, that framed heeds at its start alone; `given` goes by the
// rows of root_table.
void check_restart(struct mistakes *, const struct config *running, const struct config *next,
                   const struct given given[]);

#endif
