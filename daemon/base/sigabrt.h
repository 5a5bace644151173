// libuv, where the system refuses it memory, a thread or a watch, knows no other answer than
// abort(). systemd sends the same signal to a daemon whose watchdog got no sign of life.
#ifndef FRAMED_DAEMON_BASE_SIGABRT_H
#define FRAMED_DAEMON_BASE_SIGABRT_H

// From now on SIGABRT logs one line and ends the process with EXIT_RUNTIME.
void sigabrt_catch(void);

#endif
