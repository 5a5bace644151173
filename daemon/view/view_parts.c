#include "daemon/view/view_parts.h"

#include <string.h>

// Follows a picture; the first header lacks the line's end.
static const char header[] = "\r\n--framed\r\nContent-Type: image/jpeg\r\n\r\n";
enum { HEADER = sizeof header - 1, FIRST_AT = 2 };

void view_parts_close(struct view_parts *parts)
{
    preview_picture_unref(parts->next);
    preview_picture_unref(parts->part);
    *parts = (struct view_parts){0};
}

void view_parts_put(struct view_parts *parts, struct preview_picture *picture)
{
    preview_picture_unref(parts->next);
    parts->next = preview_picture_ref(picture);
}

// False: there is nothing to send.
static bool begin_part(struct view_parts *parts)
{
    preview_picture_unref(parts->part);
    parts->part = NULL;
    parts->at = parts->begun ? 0 : FIRST_AT;
    if (!parts->begun)
        return parts->begun = true;
    if (!parts->next)
        parts->at = HEADER; // no picture: done
    parts->part = parts->next;
    parts->next = NULL;
    return parts->part;
}

size_t view_parts_fill(struct view_parts *parts, char *to, size_t room)
{
    size_t used = 0;
    while (used < room) {
        const size_t size = parts->part ? parts->part->size : 0;
        const bool is_over = !parts->begun || parts->at == size + HEADER;
        if (is_over && !begin_part(parts))
            break;
        const size_t picture = parts->part ? parts->part->size : 0;
        const bool in_picture = parts->at < picture;
        const size_t left = (in_picture ? picture : picture + HEADER) - parts->at;
        const size_t n = left < room - used ? left : room - used;
        const void *from = in_picture ? (const void *)(parts->part->file + parts->at)
                                      : (const void *)&header[parts->at - picture];
        memcpy(to + used, from, n);
        used += n;
        parts->at += n;
    }
    return used;
}
