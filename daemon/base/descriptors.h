// The descriptors that this process inherited: `url: pipe:N` may read no others. The standard ones
// are always open.
#ifndef FRAMED_DAEMON_BASE_DESCRIPTORS_H
#define FRAMED_DAEMON_BASE_DESCRIPTORS_H

#include <stdbool.h>

enum { DESCRIPTORS_MAX = 1024 }; // higher numbers count as not inherited

// Call once, before the process opens anything.
void descriptors_record(void);
// Opens /dev/null in place of a closed standard input, output or error. Otherwise the next file or
// socket would get its number, and printed text would go there. Call after descriptors_record,
// before anything is opened.
void descriptors_fill_standard(void);
// Returns true if `fd` was open for reading at that time. Any thread.
bool descriptors_inherited(int fd);

#endif
