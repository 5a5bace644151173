// The files of the web page, which the binary holds. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_PAGE_H
#define FRAMED_DAEMON_SERVICE_PAGE_H

#include "daemon/service/http.h"

// Serves "/" and "/page/NAME", a route's `serve`. While the environment variable FRAMED_WEB names a
// folder, files come from there instead, as they are at the time: for whoever changes the page.
void page_serve(void *opaque, struct http_exchange *);

#endif
