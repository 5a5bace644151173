// A folder of one's own for sockets and other files that do not last.
#ifndef FRAMED_DAEMON_BENCH_FOLDER_H
#define FRAMED_DAEMON_BENCH_FOLDER_H

// Under $TMPDIR, or /tmp where that would be too long for the paths of sockets. 0 or negative
// errno.
int folder_make(char path[64]);
void folder_remove(const char *path); // with the files in it; accepts ""

#endif
