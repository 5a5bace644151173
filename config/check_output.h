// Rules between the keys of one output, which a row of the schema cannot express.
#ifndef FRAMED_CONFIG_CHECK_OUTPUT_H
#define FRAMED_CONFIG_CHECK_OUTPUT_H

#include "config/mistakes.h"
#include "config/schema.h"

// Notes each rule that `output`, the last one in `config`, breaks, and chooses its protocol. A key
// from `defaults` that this output cannot have is dropped without a mistake. `path` is the output's
// dotted name; `given` is indexed by the rows of output_table.
void check_output(struct mistakes *, const struct config *config, struct output_config *output,
                  const struct given given[], const char *path);

#endif
