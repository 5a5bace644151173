// A daemon that sends any bytes: libframed returns nothing that points outside its memory, and goes
// on with the next connection.
//
// The input is a script: each byte is an action, some with arguments. Numbers count from '0'.
// PATCHES are a number of patches, each an offset of two bytes and the new byte.
//     h PATCHES       a hello of a ring          H N PATCHES  the same with N descriptors
//     f SLOT PATCHES  a frame                    b SLOT COUNT PATCHES  a batch
//     e SLOT PATCHES  changes the headers of a slot's elements
//     p N             N bytes of a socket's payload          s SLOT TICKET  a slot's state word
//     r N BYTES       these bytes unchanged      n  the reader takes a view and reads all of it
//     g  returns the view                        x  the daemon closes, and another one starts
//     G N  the same with N boxes                 S ELEMENT FLAGS N  sends N boxes found in the view
//     d N BYTES  detects in the view, with an output that begins with these bytes
// The first byte selects: bit 0 ring or unix socket, bit 1 only the newest frame, bit 2 batches.
#include "client/framed.h"
#include "tests/client/fake_daemon.h"
#include "tests/fuzz/turns.h"

enum {
    MESSAGE_MAX = 4096,
    ANCHORS = 4,
    COLUMNS = 4 + 2 + 3 + 1 + 1, // a box, two classes, a keypoint, a coefficient, an angle
    BOXES_MAX = 310,             // more than a message takes
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct script {
    const uint8_t *at, *end;
};

struct play {
    struct script script;
    struct fake_daemon *daemon;
    struct framed_reader *reader;
    struct framed_view view, sent; // sent: the last view
    unsigned flags;
    uint32_t batch;
    bool is_ring;
    uint64_t tickets;
    uint8_t message[MESSAGE_MAX];
};

static uint8_t next_byte(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static uint8_t next_number(struct script *script)
{
    return (uint8_t)(next_byte(script) - '0');
}

static void patch(struct script *script, void *bytes, size_t size)
{
    for (int n = next_number(script); n > 0 && script->at < script->end; n--) {
        const size_t offset = next_byte(script) | (size_t)next_byte(script) << 8;
        ((uint8_t *)bytes)[offset % size] = next_byte(script);
    }
}

static void connect_reader(struct play *play)
{
    struct framed_view view;
    framed_close(play->reader);
    play->view = play->sent = (struct framed_view){.device = -1};
    play->reader = framed_open(play->daemon->name, FRAMED_ONCE | play->flags);
    MUST(play->reader && framed_next(play->reader, &view, 0) == 0 && fake_accept(play->daemon));
}

// --- the daemon's messages

static void say_hello(struct play *play, int n)
{
    struct framed_ring_hello hello = fake_hello(play->batch);
    patch(&play->script, &hello, sizeof hello);
    fake_send_with(play->daemon, &hello, sizeof hello, play->daemon->memfd, n);
}

static void say_frame(struct play *play)
{
    const uint32_t slot = next_number(&play->script);
    struct framed_ring_frame frame = fake_frame(slot, ++play->tickets);
    *fake_state(play->daemon, slot % FAKE_SLOTS) = play->tickets;
    patch(&play->script, &frame, sizeof frame);
    fake_send(play->daemon, &frame, play->is_ring ? sizeof frame : sizeof frame.header);
}

static void say_batch(struct play *play)
{
    const uint32_t slot = next_number(&play->script), count = next_number(&play->script);
    struct framed_batch batch = fake_batch(slot, ++play->tickets, count);
    *fake_state(play->daemon, slot % FAKE_SLOTS) = play->tickets;
    for (uint32_t i = 0; i < FAKE_BATCH; i++)
        fake_headers(play->daemon, slot % FAKE_SLOTS)[i] = fake_element(play->tickets, i);
    patch(&play->script, &batch, sizeof batch);
    fake_send(play->daemon, &batch, sizeof batch);
    if (!play->is_ring)
        fake_send(play->daemon, fake_headers(play->daemon, slot % FAKE_SLOTS),
                  (count % (FAKE_BATCH + 1)) * sizeof(struct framed_element_header));
}

static void say_bytes(struct play *play, bool is_payload)
{
    size_t size = next_byte(&play->script), left = (size_t)(play->script.end - play->script.at);
    if (is_payload) {
        memset(play->message, (int)size, sizeof play->message);
        size *= 16;
    } else {
        size = size < left ? size : left;
        memcpy(play->message, play->script.at, size);
        play->script.at += size;
    }
    fake_send(play->daemon, play->message, size);
}

// --- the reader's views

static void check_header(const struct framed_header *header, uint64_t bytes)
{
    MUST(memchr(header->camera, 0, sizeof header->camera));
    MUST(memchr(header->output, 0, sizeof header->output));
    MUST(memchr(header->format, 0, sizeof header->format));
    MUST(header->payload_bytes > 0 && header->payload_bytes <= bytes);
    MUST(header->width > 0 && header->height > 0 && header->planes > 0 && header->planes <= 4);
    if (strcmp(header->format, "rgb") == 0 && strcmp(header->dtype, "u8") == 0 &&
        memcmp(header->layout, "nchw", 4) == 0)
        MUST(header->payload_bytes == (uint64_t)3 * header->width * header->height &&
             header->plane_offset[2] < bytes);
}

static void take_view(struct play *play)
{
    struct framed_view *view = &play->view;
    if (framed_next(play->reader, view, 0) <= 0)
        return;
    play->sent = *view;
    const uint8_t *data = view->data;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < view->bytes; i++)
        sum += data[i];
    check_header(&view->header, view->bytes);
    MUST((view->batch.count > 0) == (view->elements != NULL));
    MUST(view->batch.count == 0 || view->bytes == view->batch.count * view->batch.element_bytes);
    for (uint32_t i = 0; i < view->batch.count; i++)
        check_header(&view->elements[i].header, view->bytes);
    float box[4] = {0, 0, (float)sum, 1};
    framed_to_source(&view->header, box, 1, 4, FRAMED_CLIP);
    MUST(!(box[2] > (float)view->header.source_width));
    framed_whole(play->reader, view);
}

static struct framed_detector *open_detector(void)
{
    struct framed_model model;
    framed_model_init(&model, FRAMED_HEAD_YOLOV8);
    model.width = FAKE_WIDTH;
    model.height = FAKE_HEIGHT;
    model.anchors = ANCHORS;
    model.classes = 2;
    model.keypoints = model.coefficients = 1;
    model.keypoint_columns = 3;
    model.rotated = model.quads = 1;
    model.pictures = FAKE_BATCH - 1;
    model.format[FRAMED_BOXES].dtype = FRAMED_F16;
    struct framed_detector *detector = framed_detector_open(&model, NULL);
    MUST(detector);
    return detector;
}

static void check_found(const struct framed_found *found, const struct framed_header *header)
{
    MUST(found->count <= ANCHORS && found->count + found->dropped <= found->candidates);
    for (uint32_t i = 0; i < found->count; i++) {
        const struct framed_detection *box = &found->detections[i];
        MUST(!(box->x2 > (float)header->source_width) && !(box->y1 < 0));
        MUST(box->class_id < 2 && box->score > 0.25f && found->anchors[i] < ANCHORS);
    }
}

static void detect(struct play *play)
{
    static struct framed_detector *detector;
    static uint16_t output[FAKE_BATCH][ANCHORS * COLUMNS];
    struct framed_detection boxes[ANCHORS];
    struct framed_found found[FAKE_BATCH];
    size_t size = next_byte(&play->script), left = (size_t)(play->script.end - play->script.at);
    size = size < left ? size : left;
    memset(output, 0, sizeof output);
    memcpy(output, play->script.at, size);
    play->script.at += size;
    detector = detector ? detector : open_detector();
    const struct framed_output at = {.tensor = {output}};
    const int n = framed_detect_view(detector, &at, &play->view, found, FAKE_BATCH);
    MUST(n <= FAKE_BATCH - 1 && (n >= 0 || errno == EINVAL || errno == ESTALE));
    for (int i = 0; i < n; i++)
        check_found(&found[i],
                    play->view.elements ? &play->view.elements[i].header : &play->view.header);
    MUST(framed_detect(detector, output, &play->view, boxes, ANCHORS) <= ANCHORS);
}

// Sends at most one message, of at most the size that a reader may send, for any request.
static void send_found(struct play *play, bool with_slot)
{
    static const struct framed_detection boxes[BOXES_MAX];
    const uint32_t element = with_slot ? 0 : next_number(&play->script);
    const unsigned flags = with_slot ? 0 : next_number(&play->script);
    const int n = (next_number(&play->script) * 5) % BOXES_MAX;
    const int rc = with_slot ? framed_release(play->reader, &play->view, boxes, n)
                             : framed_send(play->reader, &play->sent, element, boxes, n, flags, 0);
    MUST(rc == 0 || (rc == -1 && errno > 0));
    MUST(rc < 0 || (play->is_ring && n <= FRAMED_DETECTIONS_MAX));
}

static void act(struct play *play, uint8_t what)
{
    uint32_t slot;
    switch (what) {
    case 'h':
        return say_hello(play, 1);
    case 'H':
        return say_hello(play, next_number(&play->script) % 4);
    case 'f':
        return say_frame(play);
    case 'b':
        return say_batch(play);
    case 'e':
        slot = next_number(&play->script) % FAKE_SLOTS;
        return patch(&play->script, fake_headers(play->daemon, slot),
                     FAKE_BATCH * sizeof(struct framed_element_header));
    case 'p':
    case 'r':
        return say_bytes(play, what == 'p');
    case 's':
        slot = next_number(&play->script) % FAKE_SLOTS;
        *fake_state(play->daemon, slot) = next_number(&play->script);
        return;
    case 'n':
        return take_view(play);
    case 'g':
        framed_release(play->reader, &play->view, NULL, 0);
        return;
    case 'G':
    case 'S':
        return send_found(play, what == 'G');
    case 'd':
        return detect(play);
    case 'x':
        return connect_reader(play);
    default:
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fake_daemon daemon;
    static struct play play;
    play = (struct play){.script = {data, data + size}};
    const uint8_t choice = next_byte(&play.script);
    play.is_ring = choice & 1;
    play.flags = choice & 2 ? FRAMED_NEWEST : 0;
    play.batch = choice & 4 ? FAKE_BATCH : 0;
    play.daemon = &daemon;
    fake_open(play.daemon, play.is_ring ? "ring" : "unix");
    connect_reader(&play);
    while (play.script.at < play.script.end)
        act(&play, next_byte(&play.script));
    take_view(&play);
    framed_close(play.reader);
    fake_close(play.daemon);
    return 0;
}
