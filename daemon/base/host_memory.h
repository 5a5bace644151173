// Memory of the host that programs could still take.
#ifndef FRAMED_DAEMON_BASE_HOST_MEMORY_H
#define FRAMED_DAEMON_BASE_HOST_MEMORY_H

// Bytes, as the system estimates it; -1: it does not say. Any thread.
long long host_memory_available(void);

#endif
