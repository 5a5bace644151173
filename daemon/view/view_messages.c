#include "daemon/view/view_messages.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct view_item {
    struct preview_picture *next; // NULL: nothing newer
    char *sent;                   // facts that were sent last; NULL: none
};

// What is sent at once.
struct piece {
    const void *data;
    size_t size;
};

struct view_messages {
    int n;
    bool parts; // of the one camera
    int last;   // index served last, for a round robin
    bool alive; // a sign of life is due; of parts: the first header
    // The message or part being sent:
    uint8_t header[VIEW_HEADER_BYTES];
    struct piece piece[2];
    size_t at;                       // bytes of both that were sent
    struct preview_picture *current; // with their data, a reference; NULL: none
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

int view_parts_open(struct view_messages **ret)
{
    int rc = view_messages_open(ret, 1);
    if (rc == 0)
        (*ret)->parts = (*ret)->alive = true;
    return rc;
}

void view_messages_close(struct view_messages *messages)
{
    if (!messages)
        return;
    for (int i = 0; i < messages->n; i++) {
        preview_picture_unref(messages->item[i].next);
        free(messages->item[i].sent);
    }
    preview_picture_unref(messages->current);
    free(messages);
}

void view_messages_put(struct view_messages *messages, int index, struct preview_picture *picture)
{
    struct view_item *item = &messages->item[index];
    if (messages->parts && picture->size == 0)
        return;
    preview_picture_unref(item->next);
    item->next = preview_picture_ref(picture);
}

void view_messages_put_alive(struct view_messages *messages)
{
    messages->alive |= !messages->parts;
}

static void begin_pieces(struct view_messages *messages, struct piece first, struct piece second)
{
    messages->piece[0] = first;
    messages->piece[1] = second;
    messages->at = 0;
}

// --- messages

static void begin_message(struct view_messages *messages, enum view_kind kind, struct piece body)
{
    const struct preview_picture *of = messages->current;
    const struct {
        uint32_t length;
        uint16_t kind, index;
        uint32_t epoch, flags;
        uint64_t capture_ns, sequence;
    } header = {
        .length = htole32((uint32_t)body.size),
        .kind = htole16((uint16_t)kind),
        .index = htole16((uint16_t)(of ? messages->last : 0)),
        .epoch = htole32(of ? of->epoch : 0),
        .flags = htole32(of ? of->flags : 0),
        .capture_ns = htole64(of ? (uint64_t)of->capture_ns : 0),
        .sequence = htole64(of ? of->sequence : 0),
    };
    _Static_assert(sizeof header == VIEW_HEADER_BYTES, "as the clients have it");
    memcpy(messages->header, &header, sizeof header);
    messages->kind = kind;
    begin_pieces(messages, (struct piece){messages->header, sizeof header}, body);
}

static void begin_jpeg(struct view_messages *messages)
{
    const struct preview_picture *picture = messages->current;
    begin_message(messages, VIEW_JPEG, (struct piece){picture->file, picture->size});
}

static void drop_current(struct view_messages *messages)
{
    preview_picture_unref(messages->current);
    messages->current = NULL;
}

// Takes the next picture of an index in *item. Returns false if there is none.
static bool take_next(struct view_messages *messages, struct view_item *item)
{
    drop_current(messages);
    messages->current = item->next;
    item->next = NULL;
    return messages->current;
}

static bool begin_picture(struct view_messages *messages)
{
    for (int i = 0; i < messages->n; i++) {
        messages->last = (messages->last + 1) % messages->n;
        struct view_item *item = &messages->item[messages->last];
        if (!take_next(messages, item))
            continue;
        char *facts = messages->current->facts;
        const bool known = item->sent && strcmp(item->sent, facts) == 0;
        if (!known) {
            free(item->sent);
            item->sent = strdup(facts); // on failure they are sent again
            begin_message(messages, VIEW_FACTS, (struct piece){facts, strlen(facts)});
        } else if (messages->current->size > 0) {
            begin_jpeg(messages);
        } else {
            continue;
        }
        return true;
    }
    return false;
}

static bool begin_next_message(struct view_messages *messages)
{
    if (messages->current && messages->kind == VIEW_FACTS && messages->current->size > 0) {
        begin_jpeg(messages);
        return true;
    }
    if (begin_picture(messages))
        return true;
    drop_current(messages);
    if (!messages->alive)
        return false;
    messages->alive = false;
    begin_message(messages, VIEW_ALIVE, (struct piece){0});
    return true;
}

// --- parts

// Follows a picture; the first header lacks the line's end.
static const char part_header[] = "\r\n--framed\r\nContent-Type: image/jpeg\r\n\r\n";
enum { PART_HEADER = sizeof part_header - 1, LINE_END = 2 };

static bool begin_part(struct view_messages *messages)
{
    const bool first = messages->alive;
    messages->alive = false;
    if (first)
        begin_pieces(messages, (struct piece){part_header + LINE_END, PART_HEADER - LINE_END},
                     (struct piece){0});
    else if (take_next(messages, &messages->item[0]))
        begin_pieces(messages, (struct piece){messages->current->file, messages->current->size},
                     (struct piece){part_header, PART_HEADER});
    else
        return false;
    return true;
}

// --- both

// Begins what comes after the last was sent. False: there is nothing.
static bool begin_next(struct view_messages *messages)
{
    const bool begun = messages->parts ? begin_part(messages) : begin_next_message(messages);
    if (!begun)
        begin_pieces(messages, (struct piece){0}, (struct piece){0});
    return begun;
}

size_t view_messages_fill(struct view_messages *messages, char *to, size_t room)
{
    const struct piece *piece = messages->piece;
    size_t used = 0;
    while (used < room && (messages->at < piece[0].size + piece[1].size || begin_next(messages))) {
        const bool second = messages->at >= piece[0].size;
        const size_t at = messages->at - (second ? piece[0].size : 0);
        const size_t left = piece[second].size - at;
        const size_t n = left < room - used ? left : room - used;
        memcpy(to + used, (const uint8_t *)piece[second].data + at, n);
        messages->at += n;
        used += n;
    }
    return used;
}
