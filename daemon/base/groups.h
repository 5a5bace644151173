// The ids of the groups that outputs name. The system may ask a server for them: whoever looks them
// up may wait for it, and is not the loop thread.
#ifndef FRAMED_DAEMON_BASE_GROUPS_H
#define FRAMED_DAEMON_BASE_GROUPS_H

#include <sys/types.h>

#include "config/config.h"

// 0, or -EINVAL: there is no such group on this machine.
int group_look_up(const char *name, gid_t *ret);
// Sets `group_id` of each output that names a group which is there.
void groups_look_up(struct config *);

// What was found: *ret, or (gid_t)-1 for an output that names no group. -EINVAL: nothing was found,
// and `why` says so. Does not block.
int group_of_output(const struct output_config *, gid_t *ret, char *why, size_t size);

#endif
