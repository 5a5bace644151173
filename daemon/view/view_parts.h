// Data for a viewer of one camera as multipart/x-mixed-replace: parts of a JPEG each. A newer
// picture replaces one that has not begun to be sent. The header of each part is sent with the part
// before, since browsers show a part when the next one begins; so no part can contain its length.
// Loop thread.
#ifndef FRAMED_DAEMON_VIEW_VIEW_PARTS_H
#define FRAMED_DAEMON_VIEW_VIEW_PARTS_H

#include "daemon/view/previews.h"

#define VIEW_PARTS_TYPE "multipart/x-mixed-replace; boundary=framed"

struct view_parts {               // zeroed: nothing was sent
    struct preview_picture *next; // a reference, or NULL
    struct preview_picture *part; // a reference, or NULL: being sent
    bool begun;                   // the first header was sent, or is being sent
    size_t at;                    // bytes sent, of the part or of that header
};

void view_parts_close(struct view_parts *);
// Takes a reference of a picture with a JPEG.
void view_parts_put(struct view_parts *, struct preview_picture *);
// As view_messages_fill.
size_t view_parts_fill(struct view_parts *, char *to, size_t room);

#endif
