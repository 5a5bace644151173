// Small files that outlive the process, in the service's state directory. Any thread; blocks.
#ifndef FRAMED_DAEMON_BASE_STATE_FILE_H
#define FRAMED_DAEMON_BASE_STATE_FILE_H

// The first folder of $STATE_DIRECTORY, as systemd has it; NULL: there is none. To be freed.
char *state_folder(void);
// Replaces the file, which gets the mode: all or nothing, whatever ends meanwhile. Negative errno.
int state_file_write(const char *path, const char *text, unsigned mode);

#endif
