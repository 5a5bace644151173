// MJPEG in RTP (RFC 2435), with ONVIF's header extension. Writes each picture as a JFIF file and
// leaves out its data behind a hole.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/number.h"
#include "daemon/rtsp/depacketizer.h"
#include "daemon/rtsp/rtp_receiver.h"
#include "daemon/rtsp/sdp.h"

enum { // the second byte of a marker
    SOF0 = 0xc0,
    DHT = 0xc4,
    JPG = 0xc8,
    DAC = 0xcc,
    SOF15 = 0xcf,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
};

enum { MAIN_HEADER = 8, RESTART_HEADER = 4, TABLES_HEADER = 4 };
enum { TYPE_MAX = 1, WITH_RESTART = 64 };
enum { Q_COMPUTED_MAX = 99, Q_SENT = 128, Q_ALWAYS_SENT = 255, Q_CACHED = Q_ALWAYS_SENT - Q_SENT };
enum { INITIAL_EXTENSION = 0xffd8, NEXT_EXTENSION = 0xffff };
enum {
    SIZE_UNIT = 8,   // pixels per unit of the header's size
    SIZE_TRUST = 25, // pictures with one header before the size is searched again
    COMPONENTS_MAX = 4,
    SEGMENT_HEADER = 4, // bytes: marker and length
    TABLE_HEADER = 5,   // the same and the number of a quantization table
    FRAME_HEADER = 10,  // SOF without components, of COMPONENT_BYTES each
    COMPONENT_BYTES = 3,
    FRAME_BYTES = FRAME_HEADER + 3 * COMPONENT_BYTES,
    SCAN_HEADER_BYTES = 14, // SOS with three components
};

// Tables K.1 and K.2 of T.81, in zigzag order.
static const uint8_t quantization[2][64] = {
    {16, 11, 12,  14,  12,  10, 16, 14,  13,  14,  18,  17,  16, 19,  24,  40,
     26, 24, 22,  22,  24,  49, 35, 37,  29,  40,  58,  51,  61, 60,  57,  51,
     56, 55, 64,  72,  92,  78, 64, 68,  87,  69,  55,  56,  80, 109, 81,  87,
     95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99},
    {17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

struct tables {     // DQT segments: one for all components, or a second for colour
    uint16_t bytes; // 0: none
    uint8_t data[2 * (TABLE_HEADER + 128)];
};

struct segments { // with markers
    size_t bytes;
    uint8_t data[4096];
};

struct jpeg {
    struct depacketizer base;          // first
    struct jpeg_size announced;        // from the SDP
    struct jpeg_size declared;         // from the header of the open picture
    struct jpeg_size known_for, known; // known: size of pictures with header known_for; 0: unknown
    int trust;                         // pictures until the size is searched again
    struct tables cached[Q_CACHED];    // by Q, from Q_SENT on
    // Of the open picture; those with an extension take what they lack from the picture before.
    struct segments quantization, huffman, frame;
    // State of the open picture:
    bool half_height; // chroma: 4:2:0, else 4:2:2
    struct jpeg_size size;
    int restart_interval;      // 0: none
    bool quantized;            // it brings tables in RTP's header
    bool extended;             // it has ONVIF's extension, perhaps empty:
    struct segments extension; // 0xff may fill gaps
    bool begun;                // these are filled in
    bool written;              // the header is in the unit
    size_t header_bytes;       // of it
    bool broken;               // has a hole: further data is dropped
    bool sized;                // its size is known or likely
    bool doubtful;             // its tables are a guess
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

// --- quantization

static void complain_of_q(struct jpeg *j, int q, const char *what)
{
    snprintf(j->base.complaint, sizeof j->base.complaint, "JPEG with the quantization (Q) %d, %s",
             q, what);
}

static void add_table(struct tables *tables, int number, const uint8_t *table, size_t bytes)
{
    const uint8_t head[TABLE_HEADER] = {0xff, DQT, 0, (uint8_t)(bytes + TABLE_HEADER - 2),
                                        (uint8_t)((bytes > 64 ? 0x10 : 0) | number)};
    memcpy(tables->data + tables->bytes, head, sizeof head);
    memcpy(tables->data + tables->bytes + sizeof head, table, bytes);
    tables->bytes += (uint16_t)(sizeof head + bytes);
}

// Computes the tables of Q, 1 to 99.
static void compute_tables(struct tables *tables, int q)
{
    const int scale = q < 50 ? 5000 / q : 200 - 2 * q;
    uint8_t table[64];
    for (int number = 0; number < 2; number++) {
        for (int i = 0; i < 64; i++) {
            const int value = (quantization[number][i] * scale + 50) / 100;
            table[i] = (uint8_t)(value < 1 ? 1 : value > 255 ? 255 : value);
        }
        add_table(tables, number, table, sizeof table);
    }
}

static void read_tables(struct tables *tables, const struct payload *p)
{
    size_t at = 0;
    for (int number = 0; number < 2; number++) {
        const size_t bytes = p->precision >> number & 1 ? 128 : 64;
        if (at + bytes > p->table_bytes)
            return;
        add_table(tables, number, p->tables + at, bytes);
        at += bytes;
    }
}

// Q 255 sends tables with each picture; Q 128 to 254 reuses kept tables if none are sent. Q 0
// (ONVIF) means the tables of the last picture.
static struct tables choose_tables(struct jpeg *j, const struct payload *p)
{
    struct tables tables = {0}, *kept = &j->cached[p->q % Q_SENT];
    const bool sent = p->table_bytes > 0;
    if (p->q == 0 && !j->extended)
        complain_of_q(j, 0, "which RFC 2435 reserves: there are no tables to decode it with");
    if (p->q > Q_COMPUTED_MAX && p->q < Q_SENT)
        complain_of_q(j, p->q, "which RFC 2435 reserves: framed takes the tables of 99");
    if (p->q > 0 && p->q < Q_SENT)
        compute_tables(&tables, p->q < Q_COMPUTED_MAX ? p->q : Q_COMPUTED_MAX);
    else if (p->q >= Q_SENT && sent)
        read_tables(&tables, p);
    else if (p->q >= Q_SENT && p->q < Q_ALWAYS_SENT)
        tables = *kept;
    if (p->q >= Q_SENT && !sent && tables.bytes == 0)
        complain_of_q(j, p->q, "whose tables it has not sent");
    if (p->q >= Q_SENT && p->q < Q_ALWAYS_SENT && tables.bytes > 0)
        *kept = tables;
    return tables;
}

// --- the header of a picture

static int choose_side(int declared, int announced)
{
    return jpeg_size_is_rest(declared, announced) ? announced : declared;
}

static bool is_known(const struct jpeg *j)
{
    return j->known.width > 0 && j->known_for.width == j->declared.width &&
           j->known_for.height == j->declared.height;
}

// Chooses a preliminary size; finish_size() corrects it in the frame header.
static void choose_size(struct jpeg *j, const struct payload *p)
{
    j->declared = (struct jpeg_size){p->width, p->height};
    const struct jpeg_size likely = {choose_side(p->width, j->announced.width),
                                     choose_side(p->height, j->announced.height)};
    const struct jpeg_size size = is_known(j) ? j->known : likely;
    j->size.width = size.width ? size.width : SIZE_UNIT;
    j->size.height = size.height ? size.height : SIZE_UNIT;
    j->sized = size.width > 0 && size.height > 0;
}

// Adds segments if there is room.
static void add_segment(struct segments *to, const uint8_t *data, size_t bytes)
{
    if (bytes > sizeof to->data - to->bytes)
        return;
    memcpy(to->data + to->bytes, data, bytes);
    to->bytes += bytes;
}

static void write_size(uint8_t *frame, struct jpeg_size size)
{
    const int sides[] = {size.height, size.width};
    for (int i = 0; i < 2; i++) {
        frame[SEGMENT_HEADER + 1 + 2 * i] = (uint8_t)(sides[i] >> 8);
        frame[SEGMENT_HEADER + 2 + 2 * i] = (uint8_t)sides[i];
    }
}

// Makes a SOF of three components with the picture's size.
static void make_frame(struct jpeg *j, bool one_table)
{
    const uint8_t luma = j->half_height ? 0x22 : 0x21, colour = !one_table;
    const uint8_t frame[FRAME_BYTES] = {
        0xff, SOF0, 0,    FRAME_BYTES - 2, 8, 0,    0,     0, 0, 3, 1, luma,
        0,    2,    0x11, colour,          3, 0x11, colour};
    j->frame.bytes = 0;
    add_segment(&j->frame, frame, sizeof frame);
    write_size(j->frame.data, j->size);
}

static void begin_picture(struct jpeg *j, const struct payload *p, bool extended)
{
    j->extended = extended;
    j->half_height = p->type == 1;
    j->restart_interval = p->restart_interval;
    j->extension.bytes = 0;
    const struct tables tables = choose_tables(j, p);
    j->quantized = tables.bytes > 0;
    if (!extended)
        j->quantization.bytes = j->huffman.bytes = 0;
    if (j->quantized)
        j->quantization.bytes = 0;
    add_segment(&j->quantization, tables.data, tables.bytes);
    if (!extended)
        choose_size(j, p);
    else
        j->size = (struct jpeg_size){p->width, p->height};
    if (j->size.width > 0 && j->size.height > 0)
        make_frame(j, j->quantized && tables.bytes < 2 * (TABLE_HEADER + 64));
    j->doubtful = !extended && p->q > Q_COMPUTED_MAX && p->q < Q_SENT;
    j->begun = true;
    j->written = j->broken = false;
    j->next_offset = 0;
}

// --- the bytes of a picture

static void break_picture(struct jpeg *j)
{
    assembly_damage(&j->base);
    j->broken = true;
}

static void append_bytes(struct jpeg *j, const void *data, size_t bytes)
{
    if (j->broken)
        return;
    if (assembly_append(&j->base, data, bytes))
        j->base.piece = j->base.bytes;
    else
        break_picture(j);
}

// --- segments

struct segment {
    uint8_t marker;
    const uint8_t *data; // from its marker on
    size_t bytes;
};

// Reads the next segment of a header extension. Returns false at the end.
static bool next_segment(const uint8_t **at, const uint8_t *end, struct segment *ret)
{
    const uint8_t *p = *at;
    while (end - p >= 2 && p[0] == 0xff && (p[1] == 0xff || p[1] == SOI))
        p += p[1] == SOI ? 2 : 1;
    if (end - p < SEGMENT_HEADER || p[0] != 0xff || p[1] < SOF0 || (p[1] >= RST0 && p[1] <= EOI))
        return false;
    const size_t length = big_endian_read(p + 2, 2) + 2;
    if (length < SEGMENT_HEADER || length > (size_t)(end - p))
        return false;
    *ret = (struct segment){p[1], p, length};
    *at = p + length;
    return true;
}

static bool is_frame(const struct segment *s)
{
    const bool frame = s->marker >= SOF0 && s->marker <= SOF15 && s->marker != DHT &&
                       s->marker != JPG && s->marker != DAC;
    return frame && s->bytes >= FRAME_HEADER && s->data[FRAME_HEADER - 1] <= COMPONENTS_MAX &&
           s->bytes >= FRAME_HEADER + COMPONENT_BYTES * (size_t)s->data[FRAME_HEADER - 1];
}

// Takes a segment, behind those in `to` if there are `more` of this picture.
static void keep_segment(struct segments *to, bool more, const struct segment *s)
{
    to->bytes = more ? to->bytes : 0;
    add_segment(to, s->data, s->bytes);
}

// Takes the extension's DQT, DHT and SOF, and writes its other segments up to SOS, which is *scan,
// with all that follows it. Returns true if a restart interval is among them.
static bool write_extension(struct jpeg *j, struct segment *scan)
{
    const uint8_t *at = j->extension.data, *const end = at + j->extension.bytes;
    bool quantized = j->quantized, coded = false, restart = false;
    struct segment s = {0};
    while (next_segment(&at, end, &s) && s.marker != SOS) {
        if (s.marker == DQT)
            keep_segment(&j->quantization, quantized, &s);
        else if (s.marker == DHT)
            keep_segment(&j->huffman, coded, &s);
        else if (is_frame(&s))
            keep_segment(&j->frame, false, &s);
        else
            append_bytes(j, s.data, s.bytes);
        quantized |= s.marker == DQT;
        coded |= s.marker == DHT;
        restart |= s.marker == DRI;
    }
    if (s.marker == SOS)
        *scan = (struct segment){SOS, s.data, (size_t)(end - s.data)};
    return restart;
}

// Writes one scan of all components of the frame; the first is luma.
static void write_scan(struct jpeg *j)
{
    const uint8_t *frame = j->frame.data, count = frame[FRAME_HEADER - 1];
    uint8_t scan[SEGMENT_HEADER + 1 + 2 * COMPONENTS_MAX + 3] = {0xff, SOS, 0,
                                                                 (uint8_t)(6 + 2 * count), count};
    size_t at = SEGMENT_HEADER + 1;
    for (int i = 0; i < count; i++) { // is_frame() bounds them
        scan[at++] = frame[FRAME_HEADER + COMPONENT_BYTES * i];
        scan[at++] = i == 0 ? 0x00 : 0x11;
    }
    scan[at + 1] = 63;
    append_bytes(j, scan, at + 3);
}

// Writes the frame's header, and adds the picture as one slice.
static void write_header(struct jpeg *j)
{
    const uint8_t interval[] = {
        0xff, DRI, 0, 4, (uint8_t)(j->restart_interval >> 8), (uint8_t)j->restart_interval};
    const struct assembly_piece slice = {
        .kind = PIECE_NEXT, .slice = true, .random_access = true, .intra = true};
    struct segment scan = {0};
    j->written = true;
    append_bytes(j, "\xff\xd8", 2);
    const bool has_interval = write_extension(j, &scan) || j->restart_interval == 0;
    if (j->frame.bytes == 0 || j->quantization.bytes == 0) // undecodable
        break_picture(j);
    append_bytes(j, j->quantization.data, j->quantization.bytes);
    append_bytes(j, jpeg_huffman, sizeof jpeg_huffman);
    append_bytes(j, j->huffman.data, j->huffman.bytes);
    if (!has_interval)
        append_bytes(j, interval, sizeof interval);
    append_bytes(j, j->frame.data, j->frame.bytes);
    if (scan.bytes > 0)
        append_bytes(j, scan.data, scan.bytes);
    else if (!j->broken)
        write_scan(j);
    j->header_bytes = j->base.bytes - assembly_open_unit(&j->base)->begin;
    if (!j->broken)
        assembly_add(&j->base, &slice, 0);
}

// Keeps segments for the header; those after the header belong to the scan data.
static void add_extension(struct jpeg *j, const struct rtp_packet *packet)
{
    if (j->written)
        append_bytes(j, packet->extension, packet->extension_bytes);
    else if (packet->extension_bytes > sizeof j->extension.data - j->extension.bytes)
        break_picture(j);
    else
        add_segment(&j->extension, packet->extension, packet->extension_bytes);
}

static bool has_extension(const struct rtp_packet *packet, int profile)
{
    return packet->extension && packet->extension_profile == profile;
}

// Classifies the packet: the first of a picture, a later one, or neither. Offset 0 continues a
// picture whose first packet had only an extension.
static enum assembly_kind tell_packet(const struct jpeg *j, const struct rtp_packet *packet,
                                      const struct payload *p, bool readable)
{
    if (has_extension(packet, INITIAL_EXTENSION))
        return PIECE_FIRST;
    if (has_extension(packet, NEXT_EXTENSION))
        return PIECE_NEXT;
    if (!readable)
        return PIECE_SKIPPED;
    const bool awaited = j->begun && !j->written && j->extended;
    return p->offset == 0 && !awaited ? PIECE_FIRST : PIECE_NEXT;
}

// Returns true if a hole precedes the packet's scan data. ONVIF's extension does not use offsets.
static bool is_behind_hole(const struct jpeg *j, const struct rtp_packet *packet,
                           const struct payload *p)
{
    const bool gap = p->bytes > 0 && p->offset != j->next_offset && !j->extended;
    return packet->lost || packet->lost_unknown || !j->begun || gap;
}

static void jpeg_packet(struct depacketizer *d, const struct rtp_packet *packet)
{
    struct jpeg *j = (void *)d;
    struct payload p;
    const bool readable = read_payload(&p, packet->payload, packet->bytes);
    if (!readable)
        p = (struct payload){0};
    assembly_packet(d, packet);
    j->begun &= assembly_open_unit(d)->picture;
    const bool initial = has_extension(packet, INITIAL_EXTENSION);
    const struct assembly_piece piece = {.kind = tell_packet(j, packet, &p, readable)};
    assembly_add(d, &piece, 0);
    if (piece.kind == PIECE_FIRST)
        begin_picture(j, &p, initial);
    else if (piece.kind == PIECE_NEXT && !j->broken && is_behind_hole(j, packet, &p))
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

// --- the size

// Finds the size from the scan: the RTP header wraps at 2048 pixels, or has 0.
static void finish_size(struct jpeg *j, struct assembly_unit *u)
{
    uint8_t *const scan = j->base.data + u->begin + j->header_bytes;
    const struct jpeg_scan found = {scan, (size_t)(j->base.data + j->base.bytes - scan),
                                    j->half_height, j->restart_interval};
    struct jpeg_size size = j->size;
    int rc = u->unit.damaged || (is_known(j) && j->trust > 0)
                 ? -EBADMSG
                 : jpeg_size_find(&size, &found, j->declared, j->announced);
    j->trust -= j->trust > 0;
    if (rc == 0) {
        j->known_for = j->declared;
        j->known = size;
        j->trust = j->declared.width > 0 && j->declared.height > 0 ? SIZE_TRUST : 0;
        write_size(scan - SCAN_HEADER_BYTES - FRAME_BYTES, size);
    }
    if (rc == -ERANGE || (rc < 0 && !j->sized && !u->unit.damaged))
        snprintf(j->base.complaint, sizeof j->base.complaint,
                 "JPEG whose size is not the %dx%d of its header, nor any other that framed can "
                 "find",
                 j->declared.width, j->declared.height);
    u->unit.damaged |= rc == -ERANGE;
    if (rc < 0 && !j->sized)
        u->slices = 0;
}

static void finish_picture(struct depacketizer *d, struct assembly_unit *u)
{
    struct jpeg *j = (void *)d;
    if (memcmp(d->data + d->bytes - 2, "\xff\xd9", 2) != 0) {
        u->unit.damaged |= !assembly_append(d, "\xff\xd9", 2);
        d->piece = d->bytes;
    }
    if (!j->extended)
        finish_size(j, u);
    u->unit.damaged |= j->doubtful;
}

static void jpeg_open(struct depacketizer *d, const struct sdp_media *media)
{
    ((struct jpeg *)d)->announced = (struct jpeg_size){media->width, media->height};
}

const struct depacketize_codec depacketize_jpeg = {
    .bytes = sizeof(struct jpeg),
    .open = jpeg_open,
    .packet = jpeg_packet,
    .finish = finish_picture,
};
