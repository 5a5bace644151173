// Runs framed as the first process of a container, which the kernel makes the parent of orphans.
#ifndef FRAMED_DAEMON_BASE_FIRST_PROCESS_H
#define FRAMED_DAEMON_BASE_FIRST_PROCESS_H

// Returns at once unless this is process 1. Process 1 forks, and the call returns in the child. The
// parent reaps orphans, forwards signals to the child, and exits with its status. Call before
// threads start. Returns 0, or a negative errno: there is no child, and process 1 continues alone.
int first_process_leave(void);

#endif
