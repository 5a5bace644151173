// Memory with a name (base/shared_object.h) can be cut short by others, and the next access to what
// is gone is SIGBUS.
#ifndef FRAMED_DAEMON_BASE_SIGBUS_H
#define FRAMED_DAEMON_BASE_SIGBUS_H

// From now on such an access goes to private memory, in place of the whole mapping, of which no
// other process sees anything: shared_object_is_lost tells. Other causes of SIGBUS end the process
// as ever.
void sigbus_catch(void);

#endif
