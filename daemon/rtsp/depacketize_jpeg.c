// MJPEG in RTP (RFC 2435), with ONVIF's header extension. A picture is given out as a JFIF file
// would hold it; what is behind a hole in it is left out.
#include <string.h>

#include "daemon/base/big_endian.h"
#include "daemon/rtsp/depacketize.h"
#include "daemon/rtsp/jpeg_header.h"
#include "daemon/rtsp/rtp_receiver.h"

enum { MAIN_HEADER = 8, RESTART_HEADER = 4, TABLES_HEADER = 4 };
enum { TYPE_MAX = 1, WITH_RESTART = 64 };
enum { Q_COMPUTED_MAX = 99, Q_SENT = 128, Q_ALWAYS_SENT = 255, Q_CACHED = Q_ALWAYS_SENT - Q_SENT };
enum { INITIAL_EXTENSION = 0xffd8, NEXT_EXTENSION = 0xffff };
enum { SIZE_UNIT = 8, SIZE_WRAP = 256 * SIZE_UNIT }; // a byte says so many pixels by 8

struct jpeg {
    struct assembly *assembly;
    int width, height; // by SDP; 0: unknown
    struct jpeg_memory memory;
    struct jpeg_quantization cached[Q_CACHED]; // by Q, from Q_SENT on
    // Of the open picture:
    struct jpeg_quantization quantization;
    struct jpeg_header header;
    uint8_t segments[JPEG_SEGMENTS_MAX];
    bool begun;   // the header's facts are there,
    bool written; // and in the unit
    bool broken;  // a hole came: nothing more is taken
    bool closed;  // the last two bytes of the unit are an EOI that was not sent
    uint32_t next_offset;
};

struct payload { // of one packet
    uint32_t offset;
    int type, q, width, height, restart_interval;
    const uint8_t *tables; // NULL: no header of them
    size_t table_bytes;
    uint8_t precision;
    const uint8_t *data;
    size_t bytes;
};

// False: it is not well formed, or of a type that RFC 2435 does not define.
static bool read_payload(struct payload *p, const uint8_t *data, size_t bytes)
{
    *p = (struct payload){0};
    if (bytes < MAIN_HEADER)
        return false;
    p->offset = big_endian_read(data + 1, 3);
    p->type = data[4] % WITH_RESTART;
    p->q = data[5];
    p->width = data[6] * SIZE_UNIT;
    p->height = data[7] * SIZE_UNIT;
    size_t at = MAIN_HEADER;
    if (data[4] >= 2 * WITH_RESTART || p->type > TYPE_MAX)
        return false;
    if (data[4] >= WITH_RESTART) {
        if (bytes < at + RESTART_HEADER)
            return false;
        p->restart_interval = (int)big_endian_read(data + at, 2);
        at += RESTART_HEADER;
    }
    if (p->q >= Q_SENT && p->offset == 0) {
        if (bytes < at + TABLES_HEADER)
            return false;
        p->precision = data[at + 1];
        p->table_bytes = big_endian_read(data + at + 2, 2);
        at += TABLES_HEADER;
        if (p->table_bytes > bytes - at)
            return false;
        p->tables = data + at;
        at += p->table_bytes;
    }
    p->data = data + at;
    p->bytes = bytes - at;
    return true;
}

// --- the header of a picture

// 255 is sent with each picture, from 128 on tables are kept where none are sent. Q 0 is ONVIF's:
// the tables of the last picture.
static const struct jpeg_quantization *choose_quantization(struct jpeg *j, const struct payload *p)
{
    struct jpeg_quantization *q = &j->quantization;
    *q = (struct jpeg_quantization){0};
    if (p->q < Q_SENT) {
        if (p->q == 0)
            return NULL;
        jpeg_quantization_of(q, p->q < Q_COMPUTED_MAX ? p->q : Q_COMPUTED_MAX);
        return q;
    }
    struct jpeg_quantization *kept = p->q < Q_ALWAYS_SENT ? &j->cached[p->q - Q_SENT] : NULL;
    if (p->table_bytes == 0)
        return kept && kept->bytes[0] > 0 ? kept : NULL;
    for (size_t i = 0, at = 0; i < 2; at += (size_t)q->bytes[i++]) {
        const size_t bytes = p->precision >> i & 1 ? 128 : 64;
        if (at + bytes > p->table_bytes)
            break;
        memcpy(q->data + at, p->tables + at, bytes);
        q->bytes[i] = (int)bytes;
    }
    if (q->bytes[0] == 0)
        return NULL;
    if (kept)
        *kept = *q;
    return q;
}

// A byte holds 2040 pixels at most: of a larger size it holds the rest.
static bool is_rest_of(int rest, int size)
{
    return size > 0 &&
           (rest == 0 || (size >= SIZE_WRAP &&
                          (size + SIZE_UNIT - 1) / SIZE_UNIT * SIZE_UNIT % SIZE_WRAP == rest));
}

static void choose_size(struct jpeg *j, const struct payload *p)
{
    static const struct {
        int width, height, true_width, true_height;
    } cut[] = {{512, 1440, 2560, 1440}, {1792, 112, 3840, 2160}, {256, 1296, 2304, 1296}};
    int width = p->width, height = p->height;
    const bool sdp_width = is_rest_of(width, j->width), sdp_height = is_rest_of(height, j->height);
    width = sdp_width ? j->width : width;
    height = sdp_height ? j->height : height;
    for (size_t i = 0; !sdp_width && !sdp_height && i < sizeof cut / sizeof cut[0]; i++)
        if (width == cut[i].width && height == cut[i].height) {
            width = cut[i].true_width;
            height = cut[i].true_height;
            break;
        }
    j->header.width = width;
    j->header.height = height;
}

static void begin_picture(struct jpeg *j, const struct payload *p, bool extended)
{
    j->header = (struct jpeg_header){.half_height = p->type == 1,
                                     .restart_interval = p->restart_interval,
                                     .segments = j->segments,
                                     .extended = extended};
    j->header.quantization = choose_quantization(j, p);
    choose_size(j, p);
    j->begun = true;
    j->written = j->broken = j->closed = false;
    j->next_offset = 0;
}

// --- the bytes of a picture

static void append_bytes(struct jpeg *j, const uint8_t *data, size_t bytes)
{
    struct assembly_unit *u = j->assembly->open;
    if (j->closed)
        u->bytes -= 2;
    j->closed = false;
    uint8_t *to = assembly_room(j->assembly, bytes + 2);
    if (!to) {
        assembly_damage(j->assembly);
        j->broken = true;
        bytes = 0;
    } else {
        memcpy(to, data, bytes);
        u->bytes += bytes;
    }
    if (u->bytes < 2 || memcmp(u->data + u->bytes - 2, "\xff\xd9", 2) == 0)
        return;
    memcpy(u->data + u->bytes, "\xff\xd9", 2); // there is room: padding follows each unit
    u->bytes += 2;
    j->closed = true;
}

static void write_header(struct jpeg *j)
{
    uint8_t header[JPEG_HEADER_MAX];
    const size_t bytes = jpeg_header_write(header, &j->header, &j->memory);
    j->written = true;
    if (bytes == 0) { // nobody can decode it
        assembly_damage(j->assembly);
        j->broken = true;
        return;
    }
    append_bytes(j, header, bytes);
    if (!j->broken)
        assembly_slice(j->assembly, &(struct assembly_slice){.random_access = true, .intra = true});
}

// Segments that come ahead of the scan data; those behind belong into it.
static void add_extension(struct jpeg *j, const struct rtp_packet *packet)
{
    if (j->written) {
        append_bytes(j, packet->extension, packet->extension_bytes);
        return;
    }
    if (packet->extension_bytes > sizeof j->segments - j->header.segment_bytes) {
        assembly_damage(j->assembly);
        j->broken = true;
        return;
    }
    memcpy(j->segments + j->header.segment_bytes, packet->extension, packet->extension_bytes);
    j->header.segment_bytes += packet->extension_bytes;
}

static bool has_extension(const struct rtp_packet *packet, int profile)
{
    return packet->extension && packet->extension_profile == profile;
}

// What this packet is to the open picture: its first, another, or none of it. One whose offset is 0
// goes on where the first had an extension alone.
static enum assembly_piece tell_packet(const struct jpeg *j, const struct rtp_packet *packet,
                                       const struct payload *p, bool readable)
{
    if (has_extension(packet, INITIAL_EXTENSION))
        return PIECE_FIRST;
    if (has_extension(packet, NEXT_EXTENSION))
        return PIECE_NEXT;
    if (!readable)
        return PIECE_SKIPPED;
    const bool awaited = j->begun && !j->written && j->header.extended;
    return p->offset == 0 && !awaited ? PIECE_FIRST : PIECE_NEXT;
}

// Whether the packet's scan data are behind a hole. ONVIF's extension gives offsets no meaning.
static bool is_behind_hole(const struct jpeg *j, const struct rtp_packet *packet,
                           const struct payload *p)
{
    const bool gap = p->bytes > 0 && p->offset != j->next_offset && !j->header.extended;
    return packet->lost || packet->lost_unknown || !j->begun || gap;
}

static void jpeg_packet(void *state, const struct rtp_packet *packet)
{
    struct jpeg *j = state;
    struct assembly *a = j->assembly;
    struct payload p;
    const bool readable = read_payload(&p, packet->payload, packet->bytes);
    if (!readable)
        p = (struct payload){0};
    assembly_packet(a, packet);
    j->begun &= a->open->picture;
    const enum assembly_piece piece = tell_packet(j, packet, &p, readable);
    if (piece == PIECE_FIRST) {
        assembly_piece(a, a->open->bytes, PIECE_FIRST);
        begin_picture(j, &p, has_extension(packet, INITIAL_EXTENSION));
    } else if (piece == PIECE_NEXT) {
        assembly_piece(a, a->open->bytes, PIECE_NEXT);
        if (!j->broken && is_behind_hole(j, packet, &p)) {
            assembly_damage(a);
            j->broken = true;
        }
    }
    if (!j->broken && j->begun &&
        (has_extension(packet, INITIAL_EXTENSION) || has_extension(packet, NEXT_EXTENSION)))
        add_extension(j, packet);
    if (j->begun && !j->written && !j->broken && (p.bytes > 0 || packet->marker))
        write_header(j);
    if (j->begun && !j->broken && p.bytes > 0) {
        append_bytes(j, p.data, p.bytes);
        j->next_offset = p.offset + (uint32_t)p.bytes;
    }
    if (packet->marker)
        assembly_marker(a);
}

static void jpeg_open(void *state, struct assembly *assembly, const struct sdp_media *media)
{
    struct jpeg *j = state;
    j->assembly = assembly;
    j->width = media->width;
    j->height = media->height;
}

static void jpeg_flush(void *state)
{
    ((struct jpeg *)state)->begun = false;
}

const struct depacketize_codec depacketize_jpeg = {sizeof(struct jpeg), jpeg_open, jpeg_packet,
                                                   jpeg_flush, NULL};
