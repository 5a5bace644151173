// Ids of the groups that outputs name. A lookup may wait for a server: not on the loop thread.
#ifndef FRAMED_DAEMON_BASE_GROUPS_H
#define FRAMED_DAEMON_BASE_GROUPS_H

#include <sys/types.h>

#include "config/config.h"

// Returns 0, or -EINVAL: this machine has no such group.
int group_look_up(const char *name, gid_t *ret);
// Sets `group_id` of each output whose group exists.
void groups_look_up(struct config *);

// Stores the result of the lookup in *ret, (gid_t)-1 if the output names no group. Returns 0, or
// -EINVAL with a reason in `why`: the lookup failed. Does not block.
int group_of_output(const struct output_config *, gid_t *ret, char *why, size_t size);

#endif
