// The descriptors that this process was started with: `url: pipe:N` may read no others.
#ifndef FRAMED_DAEMON_DESCRIPTORS_H
#define FRAMED_DAEMON_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_MAX = 1024 }; // higher numbers count as not inherited

// To be called before the process opens anything, once.
void descriptors_record(void);
// Whether `fd` was open for reading then. Any thread.
bool descriptors_inherited(int fd);

#endif
