// framed as the first process of a container, whose kernel gives it all orphans there.
#ifndef FRAMED_DAEMON_BASE_FIRST_PROCESS_H
#define FRAMED_DAEMON_BASE_FIRST_PROCESS_H

// Returns at once unless this is process 1. Process 1 forks, and the call returns in the child. The
// parent reaps orphans, passes signals on to the child, and exits with its status. Call it before
// there are threads. 0, or negative errno: there is no child, and process 1 goes on alone.
int first_process_leave(void);

#endif
