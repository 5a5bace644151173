// Rules between the keys of one output, which a row of the schema cannot say.
#ifndef FRAMED_CONFIG_CHECK_OUTPUT_H
#define FRAMED_CONFIG_CHECK_OUTPUT_H

#include "config/mistakes.h"
#include "config/schema.h"

// Notes every rule that `output`, the last of those in `config`, breaks, and settles its protocol.
// A key from `defaults` that this output cannot have is no mistake: it gives way. `path` is the
// output's dotted name; `given` goes by the rows of output_table.
void check_output(struct mistakes *, const struct config *config, struct output_config *output,
                  const struct given given[], const char *path);

#endif
