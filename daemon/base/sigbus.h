// Other programs can cut short memory that has a name (base/shared_object.h). An access beyond its
// new end raises SIGBUS.
#ifndef FRAMED_DAEMON_BASE_SIGBUS_H
#define FRAMED_DAEMON_BASE_SIGBUS_H

// From now on such an access replaces the whole mapping by private memory, which no other process
// sees; shared_object_is_lost says that it happened. Other causes of SIGBUS end the process as
// before.
void sigbus_catch(void);

#endif
