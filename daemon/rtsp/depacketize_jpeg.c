// MJPEG in RTP (RFC 2435), with ONVIF's header extension. Writes each picture as a JFIF file and
// leaves out its data behind a hole.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/jpeg_header.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

enum { MAIN_HEADER = 8, RESTART_HEADER = 4, TABLES_HEADER = 4 };
enum { TYPE_MAX = 1, WITH_RESTART = 64 };
enum { Q_COMPUTED_MAX = 99, Q_SENT = 128, Q_ALWAYS_SENT = 255, Q_CACHED = Q_ALWAYS_SENT - Q_SENT };
enum { INITIAL_EXTENSION = 0xffd8, NEXT_EXTENSION = 0xffff };
enum {
    SIZE_UNIT = 8,   // pixels per unit of the header's size
    SIZE_TRUST = 25, // pictures with one header before the size is searched again
};

struct jpeg {
    struct depacketizer *depacketizer;
    struct jpeg_size announced;        // from the SDP
    struct jpeg_size declared;         // from the header of the open picture
    struct jpeg_size known_for, known; // known: size of pictures with header known_for; 0: unknown
    int known_type, trust;             // trust: pictures until the size is searched again
    char complaint[128];
    struct jpeg_memory memory;
    struct jpeg_quantization cached[Q_CACHED]; // by Q, from Q_SENT on
    // State of the open picture:
    struct jpeg_quantization quantization;
    struct jpeg_header header;
    uint8_t segments[JPEG_SEGMENTS_MAX];
    bool begun;    // `header` is filled in
    bool written;  // the header is in the unit
    bool broken;   // has a hole: further data is dropped
    bool sized;    // its size is known or likely
    bool doubtful; // its tables are a guess
    uint32_t next_offset;
};

struct payload { // of one packet
    uint32_t offset;
    int type, q, width, height, restart_interval;
    const uint8_t *tables; // NULL: no tables header
    size_t table_bytes;
    uint8_t precision;
    const uint8_t *data;
    size_t bytes;
};

// Returns false if it is malformed or of a type that RFC 2435 does not define.
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

static void complain_of_q(struct jpeg *j, int q, const char *what)
{
    snprintf(j->complaint, sizeof j->complaint, "JPEG with the quantization (Q) %d, %s", q, what);
}

// Q 255 sends tables with each picture; Q 128 to 254 reuses kept tables if none are sent. Q 0
// (ONVIF) means the tables of the last picture.
static const struct jpeg_quantization *choose_quantization(struct jpeg *j, const struct payload *p,
                                                           bool extended)
{
    struct jpeg_quantization *q = &j->quantization;
    *q = (struct jpeg_quantization){0};
    if (p->q < Q_SENT) {
        if (p->q == 0 && !extended)
            complain_of_q(j, 0, "which RFC 2435 reserves: there are no tables to decode it with");
        if (p->q == 0)
            return NULL;
        if (p->q > Q_COMPUTED_MAX)
            complain_of_q(j, p->q, "which RFC 2435 reserves: framed takes the tables of 99");
        jpeg_quantization_of(q, p->q < Q_COMPUTED_MAX ? p->q : Q_COMPUTED_MAX);
        return q;
    }
    struct jpeg_quantization *kept = p->q < Q_ALWAYS_SENT ? &j->cached[p->q - Q_SENT] : NULL;
    if (p->table_bytes == 0 && (!kept || kept->bytes[0] == 0))
        complain_of_q(j, p->q, "whose tables it has not sent");
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

static int choose_side(int declared, int announced)
{
    return jpeg_size_is_rest(declared, announced) ? announced : declared;
}

static bool is_known(const struct jpeg *j)
{
    return j->known.width > 0 && j->known_for.width == j->declared.width &&
           j->known_for.height == j->declared.height && j->known_type == j->header.half_height;
}

// Chooses a preliminary size; finish_size() corrects it in the frame header.
static void choose_size(struct jpeg *j, const struct payload *p)
{
    j->declared = (struct jpeg_size){p->width, p->height};
    const struct jpeg_size likely = {choose_side(p->width, j->announced.width),
                                     choose_side(p->height, j->announced.height)};
    const struct jpeg_size size = is_known(j) ? j->known : likely;
    j->header.width = size.width ? size.width : SIZE_UNIT;
    j->header.height = size.height ? size.height : SIZE_UNIT;
    j->sized = size.width > 0 && size.height > 0;
}

static void begin_picture(struct jpeg *j, const struct payload *p, bool extended)
{
    j->header = (struct jpeg_header){.half_height = p->type == 1,
                                     .restart_interval = p->restart_interval,
                                     .segments = j->segments,
                                     .extended = extended};
    j->header.quantization = choose_quantization(j, p, extended);
    if (!extended)
        choose_size(j, p);
    else
        j->header.width = p->width, j->header.height = p->height;
    j->doubtful = !extended && p->q > Q_COMPUTED_MAX && p->q < Q_SENT;
    j->begun = true;
    j->written = j->broken = false;
    j->next_offset = 0;
}

// --- the bytes of a picture

static void break_picture(struct jpeg *j)
{
    assembly_damage(j->depacketizer);
    j->broken = true;
}

static void append_bytes(struct jpeg *j, const uint8_t *data, size_t bytes)
{
    if (!assembly_append(j->depacketizer, data, bytes))
        break_picture(j);
}

static void write_header(struct jpeg *j)
{
    uint8_t header[JPEG_HEADER_MAX];
    const size_t bytes = jpeg_header_write(header, &j->header, &j->memory);
    j->written = true;
    if (bytes == 0) // no size or no tables: undecodable
        break_picture(j);
    else
        append_bytes(j, header, bytes);
    if (!j->broken)
        assembly_slice(j->depacketizer,
                       &(struct assembly_slice){.random_access = true, .intra = true});
}

// Keeps segments for the header; those after the header belong to the scan data.
static void add_extension(struct jpeg *j, const struct rtp_packet *packet)
{
    if (j->written) {
        append_bytes(j, packet->extension, packet->extension_bytes);
    } else if (packet->extension_bytes > sizeof j->segments - j->header.segment_bytes) {
        break_picture(j);
    } else {
        memcpy(j->segments + j->header.segment_bytes, packet->extension, packet->extension_bytes);
        j->header.segment_bytes += packet->extension_bytes;
    }
}

static bool has_extension(const struct rtp_packet *packet, int profile)
{
    return packet->extension && packet->extension_profile == profile;
}

// Classifies the packet: the first of a picture, a later one, or neither. Offset 0 continues a
// picture whose first packet had only an extension.
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

// Returns true if a hole precedes the packet's scan data. ONVIF's extension does not use offsets.
static bool is_behind_hole(const struct jpeg *j, const struct rtp_packet *packet,
                           const struct payload *p)
{
    const bool gap = p->bytes > 0 && p->offset != j->next_offset && !j->header.extended;
    return packet->lost || packet->lost_unknown || !j->begun || gap;
}

static void jpeg_packet(void *state, const struct rtp_packet *packet)
{
    struct jpeg *j = state;
    struct depacketizer *d = j->depacketizer;
    struct payload p;
    const bool readable = read_payload(&p, packet->payload, packet->bytes);
    if (!readable)
        p = (struct payload){0};
    assembly_packet(d, packet);
    j->begun &= assembly_open_unit(d)->picture;
    const bool initial = has_extension(packet, INITIAL_EXTENSION);
    const enum assembly_piece piece = tell_packet(j, packet, &p, readable);
    assembly_piece(d, assembly_bytes(d), piece);
    if (piece == PIECE_FIRST)
        begin_picture(j, &p, initial);
    else if (piece == PIECE_NEXT && !j->broken && is_behind_hole(j, packet, &p))
        break_picture(j);
    if (!j->broken && j->begun && (initial || has_extension(packet, NEXT_EXTENSION)))
        add_extension(j, packet);
    if (j->begun && !j->written && !j->broken && (p.bytes > 0 || packet->marker))
        write_header(j);
    if (j->begun && !j->broken && p.bytes > 0) {
        append_bytes(j, p.data, p.bytes);
        j->next_offset = p.offset + (uint32_t)p.bytes;
    }
    if (packet->marker)
        assembly_marker(d);
}

static void complain_of_size(struct jpeg *j)
{
    snprintf(j->complaint, sizeof j->complaint,
             "JPEG whose size is not the %dx%d of its header, nor any other that framed can find",
             j->declared.width, j->declared.height);
}

// Finds the size from the scan: the RTP header wraps at 2048 pixels, or has 0.
static void finish_size(struct jpeg *j, struct assembly_unit *u)
{
    uint8_t *const data = assembly_data(j->depacketizer);
    const size_t bytes = assembly_bytes(j->depacketizer);
    const bool known = is_known(j);
    struct jpeg_size size = {j->header.width, j->header.height};
    int rc = u->unit.damaged || (known && j->trust > 0)
                 ? -EBADMSG
                 : jpeg_size_find(&size, data, bytes, j->declared, j->announced);
    j->trust -= j->trust > 0;
    if (rc == 0) {
        j->known_for = j->declared;
        j->known_type = j->header.half_height;
        j->known = size;
        j->trust = j->declared.width > 0 && j->declared.height > 0 ? SIZE_TRUST : 0;
        jpeg_size_write(data, bytes, size);
    }
    if (rc == -ERANGE || (rc < 0 && !j->sized && !u->unit.damaged))
        complain_of_size(j);
    u->unit.damaged |= rc == -ERANGE;
    if (rc < 0 && !j->sized)
        u->slices = 0;
}

static void finish_picture(void *state, struct assembly_unit *u)
{
    struct jpeg *j = state;
    const size_t bytes = assembly_bytes(j->depacketizer);
    if (memcmp(assembly_data(j->depacketizer) + bytes - 2, "\xff\xd9", 2) != 0)
        u->unit.damaged |= !assembly_append(j->depacketizer, "\xff\xd9", 2);
    if (!j->header.extended)
        finish_size(j, u);
    u->unit.damaged |= j->doubtful;
}

static void jpeg_open(void *state, struct depacketizer *depacketizer, const struct sdp_media *media)
{
    struct jpeg *j = state;
    j->depacketizer = depacketizer;
    j->announced = (struct jpeg_size){media->width, media->height};
}

static const char *jpeg_complaint(const void *state)
{
    const struct jpeg *j = state;
    return *j->complaint ? j->complaint : NULL;
}

static void jpeg_flush(void *state)
{
    ((struct jpeg *)state)->begun = false;
}

const struct depacketize_codec depacketize_jpeg = {
    .bytes = sizeof(struct jpeg),
    .open = jpeg_open,
    .packet = jpeg_packet,
    .flush = jpeg_flush,
    .finish = finish_picture,
    .complaint = jpeg_complaint,
};
