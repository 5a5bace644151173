// Host memory that programs can still allocate.
#ifndef FRAMED_DAEMON_BASE_HOST_MEMORY_H
#define FRAMED_DAEMON_BASE_HOST_MEMORY_H

// Returns the system's estimate in bytes; -1: not available. Any thread.
long long host_memory_available(void);

#endif
