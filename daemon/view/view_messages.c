#include "daemon/view/view_messages.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct view_item {
    struct preview_picture *next; // NULL: nothing newer
    char *told;                   // facts that were sent last; NULL: none
};

struct view_messages {
    int n;
    int last; // index served last, for a round robin
    bool alive;
    // The message being sent:
    uint8_t header[VIEW_HEADER_BYTES];
    const void *body;
    size_t size, at;                 // bytes of both; bytes sent
    struct preview_picture *current; // source of the body, a reference; NULL: none
    enum view_kind kind;
    struct view_item item[];
};

int view_messages_open(struct view_messages **ret, int n)
{
    struct view_messages *messages =
        calloc(1, sizeof *messages + (size_t)n * sizeof *messages->item);
    if (!messages)
        return -ENOMEM;
    messages->n = n;
    *ret = messages;
    return 0;
}

void view_messages_close(struct view_messages *messages)
{
    if (!messages)
        return;
    for (int i = 0; i < messages->n; i++) {
        preview_picture_unref(messages->item[i].next);
        free(messages->item[i].told);
    }
    preview_picture_unref(messages->current);
    free(messages);
}

void view_messages_put(struct view_messages *messages, int index, struct preview_picture *picture)
{
    struct view_item *item = &messages->item[index];
    preview_picture_unref(item->next);
    item->next = preview_picture_ref(picture);
}

void view_messages_put_alive(struct view_messages *messages)
{
    messages->alive = true;
}

static void put_header(struct view_messages *messages, enum view_kind kind, int index, size_t size,
                       const struct preview_picture *of)
{
    const struct {
        uint32_t length;
        uint16_t kind, index;
        uint32_t epoch, flags;
        uint64_t capture_ns, sequence;
    } header = {
        .length = htole32((uint32_t)size),
        .kind = htole16((uint16_t)kind),
        .index = htole16((uint16_t)index),
        .epoch = htole32(of ? of->epoch : 0),
        .flags = htole32(of ? of->flags : 0),
        .capture_ns = htole64(of ? (uint64_t)of->capture_ns : 0),
        .sequence = htole64(of ? of->sequence : 0),
    };
    _Static_assert(sizeof header == VIEW_HEADER_BYTES, "as the clients have it");
    memcpy(messages->header, &header, sizeof header);
    messages->kind = kind;
    messages->size = sizeof header + size;
    messages->at = 0;
}

static void begin_facts(struct view_messages *messages, int index)
{
    struct view_item *item = &messages->item[index];
    struct preview_picture *picture = messages->current;
    free(item->told);
    item->told = strdup(picture->facts); // on failure they are sent again
    messages->body = picture->facts;
    put_header(messages, VIEW_FACTS, index, strlen(picture->facts), picture);
}

static void begin_jpeg(struct view_messages *messages, int index)
{
    const struct preview_picture *picture = messages->current;
    messages->body = picture->file;
    put_header(messages, VIEW_JPEG, index, picture->size, picture);
}

static void drop_current(struct view_messages *messages)
{
    preview_picture_unref(messages->current);
    messages->current = NULL;
}

static bool begin_picture(struct view_messages *messages)
{
    for (int turn = 1; turn <= messages->n; turn++) {
        const int index = (messages->last + turn) % messages->n;
        struct view_item *item = &messages->item[index];
        if (!item->next)
            continue;
        const bool known = item->told && strcmp(item->told, item->next->facts) == 0;
        messages->last = index;
        messages->current = item->next;
        item->next = NULL;
        if (!known)
            begin_facts(messages, index);
        else if (messages->current->size > 0)
            begin_jpeg(messages, index);
        else
            drop_current(messages);
        if (messages->current)
            return true;
    }
    return false;
}

// Begins the next message after the last was sent. False: there is none.
static bool begin_next(struct view_messages *messages)
{
    if (messages->current && messages->kind == VIEW_FACTS && messages->current->size > 0) {
        begin_jpeg(messages, messages->last);
        return true;
    }
    drop_current(messages);
    messages->size = messages->at = 0;
    if (begin_picture(messages))
        return true;
    if (!messages->alive)
        return false;
    messages->alive = false;
    put_header(messages, VIEW_ALIVE, 0, 0, NULL);
    return true;
}

static size_t copy_piece(struct view_messages *messages, char *to, size_t room)
{
    const size_t at = messages->at;
    const bool in_header = at < VIEW_HEADER_BYTES;
    const size_t left = (in_header ? VIEW_HEADER_BYTES : messages->size) - at;
    const size_t n = left < room ? left : room;
    const uint8_t *from = in_header ? messages->header + at
                                    : (const uint8_t *)messages->body + at - VIEW_HEADER_BYTES;
    memcpy(to, from, n);
    messages->at += n;
    return n;
}

size_t view_messages_fill(struct view_messages *messages, char *to, size_t room)
{
    size_t used = 0;
    while (used < room && (messages->at < messages->size || begin_next(messages)))
        used += copy_piece(messages, to + used, room - used);
    return used;
}

// --- one camera in parts

// Follows a picture; the first header lacks the line's end.
static const char part_header[] = "\r\n--framed\r\nContent-Type: image/jpeg\r\n\r\n";
enum { PART_HEADER = sizeof part_header - 1, FIRST_AT = 2 };

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
        parts->at = PART_HEADER; // no picture: done
    parts->part = parts->next;
    parts->next = NULL;
    return parts->part;
}

size_t view_parts_fill(struct view_parts *parts, char *to, size_t room)
{
    size_t used = 0;
    while (used < room) {
        const size_t size = parts->part ? parts->part->size : 0;
        const bool is_over = !parts->begun || parts->at == size + PART_HEADER;
        if (is_over && !begin_part(parts))
            break;
        const size_t picture = parts->part ? parts->part->size : 0;
        const bool in_picture = parts->at < picture;
        const size_t left = (in_picture ? picture : picture + PART_HEADER) - parts->at;
        const size_t n = left < room - used ? left : room - used;
        const void *from = in_picture ? (const void *)(parts->part->file + parts->at)
                                      : (const void *)&part_header[parts->at - picture];
        memcpy(to + used, from, n);
        used += n;
        parts->at += n;
    }
    return used;
}
