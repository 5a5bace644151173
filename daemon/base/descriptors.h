// The descriptors that this process was started with: `url: pipe:N` may read no others, and the
// standard ones are always there.
#ifndef FRAMED_DAEMON_BASE_DESCRIPTORS_H
#define FRAMED_DAEMON_BASE_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_MAX = 1024 }; // higher numbers count as not inherited

// To be called before the process opens anything, once.
void descriptors_record(void);
// Puts /dev/null where standard input, output or error is closed: the next file or socket would
// have its number, and what is printed would go there. After descriptors_record, before anything
// opens.
void descriptors_fill_standard(void);
// Whether `fd` was open for reading then. Any thread.
bool descriptors_inherited(int fd);

#endif
