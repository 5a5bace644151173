// libuv, where the system refuses it memory, a thread or a watch, knows no other answer than
// abort().
#ifndef FRAMED_DAEMON_ABORT_H
#define FRAMED_DAEMON_ABORT_H

// From now on abort() logs one line and ends the process with EXIT_RUNTIME.
void abort_catch(void);

#endif
