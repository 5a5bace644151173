// A process of framed: its command line and exit codes, the descriptors and signals that it gets,
// and the files that outlive it.
#ifndef FRAMED_DAEMON_BASE_PROCESS_H
#define FRAMED_DAEMON_BASE_PROCESS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

// Exit codes of framed's commands. Some are from sysexits(3).
enum exit_code {
    EXIT_OK = 0,
    EXIT_RUNTIME = 1,
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 69, // a device that the configuration requires is missing
    EXIT_CONFIG = 78,
};

// --- the options of a command, read by getopt_long(3)

struct command_line {
    const char *command;          // as the user calls it: "framed status"
    const char *letters;          // short options, after a colon; h is help
    const struct option *options; // long options, ending with a zeroed one
    void (*usage)(FILE *to);      // NULL: the caller prints it
    int (*take)(void *opaque, int option, const char *text); // returns EXIT_OK or another exit code
    // The same for each argument that is not an option, in order. NULL: none are allowed.
    int (*take_argument)(void *opaque, const char *text);
};

// Passes each option to `take`. Returns EXIT_OK, and sets *help if help was requested. Returns
// EXIT_USAGE after printing one line to stderr.
int command_line_read(const struct command_line *, int argc, char **argv, void *opaque, bool *help);
// Prints what is wrong with an option of the command, without any password in it. Returns
// EXIT_USAGE.
int command_line_refuse(const char *command, const char *option, const char *what);
// Call at the end of the command. Returns `code`. If standard output failed, as on a full disk,
// prints a line to stderr and returns EXIT_RUNTIME in place of EXIT_OK.
int command_line_finish(const char *command, int code);

// --- the descriptors that this process inherited: `url: pipe:N` may read no others. The standard
// ones are always open.

// Call once, before the process opens anything.
void descriptors_record(void);
// Opens /dev/null in place of a closed standard input, output or error. Otherwise the next file or
// socket would get its number, and printed text would go there. Call after descriptors_record,
// before anything is opened.
void descriptors_fill_standard(void);
// Returns true if `fd` was open for reading at that time. Any thread.
bool descriptors_inherited(int fd);

// --- signals

// Returns at once unless this is process 1, the first one of a container, which the kernel makes
// the parent of orphans. Process 1 forks, and the call returns in the child. The parent reaps
// orphans, forwards signals to the child, and exits with its status. Call before threads start.
// Returns 0, or a negative errno: there is no child, and process 1 continues alone.
int first_process_leave(void);

// Makes SIGABRT log one line and end the process with EXIT_RUNTIME. If the system refuses libuv
// memory, a thread or a watch, libuv calls abort(). systemd sends the same signal to a daemon that
// missed its watchdog deadline.
void sigabrt_catch(void);
// Other programs can truncate named memory (struct shared_object). An access beyond its new end
// raises SIGBUS. Makes such an access replace the memory from its page on with private memory,
// invisible to other processes; shared_object_is_lost reports it. Other causes of SIGBUS end the
// process as before.
void sigbus_catch(void);

// --- small files that outlive the process, in the service's state directory. Any thread; blocks.

// Returns the first folder of $STATE_DIRECTORY, as set by systemd, to be freed; NULL: none.
char *state_folder(void);
// Replaces the file atomically and sets its mode. Returns 0 or a negative errno.
int state_file_write(const char *path, const char *text, unsigned mode);

#endif
