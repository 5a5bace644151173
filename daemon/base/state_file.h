// Small files that outlive the process, in the service's state directory. Any thread; blocks.
#ifndef FRAMED_DAEMON_BASE_STATE_FILE_H
#define FRAMED_DAEMON_BASE_STATE_FILE_H

// Returns the first folder of $STATE_DIRECTORY, as set by systemd, to be freed; NULL: none.
char *state_folder(void);
// Replaces the file atomically and sets its mode. Returns 0 or a negative errno.
int state_file_write(const char *path, const char *text, unsigned mode);

#endif
