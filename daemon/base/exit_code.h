// Exit codes of framed's commands. Some are from sysexits(3).
#ifndef FRAMED_DAEMON_BASE_EXIT_CODE_H
#define FRAMED_DAEMON_BASE_EXIT_CODE_H

enum exit_code {
    EXIT_OK = 0,
    EXIT_RUNTIME = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 69, // a device that the configuration requires is missing
    EXIT_CONFIG = 78,
};

#endif
