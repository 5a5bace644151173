// If the system refuses libuv memory, a thread or a watch, libuv calls abort(). systemd sends the
// same signal to a daemon that missed its watchdog deadline.
#ifndef FRAMED_DAEMON_BASE_SIGABRT_H
#define FRAMED_DAEMON_BASE_SIGABRT_H

// Makes SIGABRT log one line and end the process with EXIT_RUNTIME.
void sigabrt_catch(void);

#endif
