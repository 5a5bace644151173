// Other programs can truncate named memory (base/shared_object.h). An access beyond its new end
// raises SIGBUS.
#ifndef FRAMED_DAEMON_BASE_SIGBUS_H
#define FRAMED_DAEMON_BASE_SIGBUS_H

// Makes such an access replace the whole mapping with private memory, invisible to other processes;
// shared_object_is_lost reports it. Other causes of SIGBUS end the process as before.
void sigbus_catch(void);

#endif
