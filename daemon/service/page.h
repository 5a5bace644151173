// The files of the web page, embedded in the binary. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_PAGE_H
#define FRAMED_DAEMON_SERVICE_PAGE_H

#include "daemon/service/http.h"

// Serves "/" and "/page/NAME", as a route's `serve`. If the environment variable FRAMED_WEB names a
// folder, reads the files from there at each request instead, for development of the page.
void page_serve(void *opaque, struct http_exchange *);

#endif
