#include "daemon/rtsp/jpeg_header.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"

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

enum { COMPONENTS_MAX = 4, FRAME_BYTES = 10, COMPONENT_BYTES = 3 }; // of a SOF segment

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

// Tables K.3 to K.6, as one segment.
static const uint8_t huffman[] = {
    0xff, 0xc4, 0x01, 0xa2, 0x00, 0x00, 0x01, 0x05, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,
    0x0b, 0x01, 0x00, 0x03, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x00,
    0x02, 0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01, 0x7d, 0x01,
    0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22,
    0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24,
    0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29,
    0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a,
    0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a,
    0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a,
    0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,
    0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6,
    0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3,
    0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9,
    0xfa, 0x11, 0x00, 0x02, 0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01,
    0x02, 0x77, 0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
    0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33,
    0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19,
    0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46,
    0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66,
    0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85,
    0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
    0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
    0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8,
    0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6,
    0xf7, 0xf8, 0xf9, 0xfa,
};

void jpeg_quantization_of(struct jpeg_quantization *ret, int q)
{
    const int scale = q < 50 ? 5000 / q : 200 - 2 * q;
    for (int table = 0; table < 2; table++) {
        ret->bytes[table] = 64;
        for (int i = 0; i < 64; i++) {
            const int value = (quantization[table][i] * scale + 50) / 100;
            ret->data[64 * table + i] = (uint8_t)(value < 1 ? 1 : value > 255 ? 255 : value);
        }
    }
}

// --- writing

static uint8_t *write_bytes(uint8_t *to, const void *data, size_t bytes)
{
    memcpy(to, data, bytes);
    return to + bytes;
}

static uint8_t *write_segment(uint8_t *to, uint8_t marker, const uint8_t *data, size_t bytes)
{
    const uint8_t head[] = {0xff, marker, (uint8_t)((bytes + 2) >> 8), (uint8_t)(bytes + 2)};
    return write_bytes(write_bytes(to, head, sizeof head), data, bytes);
}

static uint8_t *write_quantization(uint8_t *to, const struct jpeg_quantization *q)
{
    uint8_t table[129];
    for (int i = 0, at = 0; i < 2 && q->bytes[i] > 0; at += q->bytes[i++]) {
        table[0] = (uint8_t)((q->bytes[i] > 64 ? 0x10 : 0) | i);
        memcpy(table + 1, q->data + at, (size_t)q->bytes[i]);
        to = write_segment(to, DQT, table, (size_t)q->bytes[i] + 1);
    }
    return to;
}

static uint8_t *write_frame(uint8_t *to, const struct jpeg_header *h)
{
    const uint8_t colour = h->quantization && h->quantization->bytes[1] == 0 ? 0 : 1;
    const uint8_t frame[] = {
        8,
        (uint8_t)(h->height >> 8),
        (uint8_t)h->height,
        (uint8_t)(h->width >> 8),
        (uint8_t)h->width,
        3,
        1,
        h->half_height ? 0x22 : 0x21,
        0,
        2,
        0x11,
        colour,
        3,
        0x11,
        colour,
    };
    return write_segment(to, SOF0, frame, sizeof frame);
}

// Writes one scan of all components of the frame; the first is luma.
static uint8_t *write_scan(uint8_t *to, const uint8_t *frame)
{
    const uint8_t count = frame[FRAME_BYTES - 1];
    const int components = count < COMPONENTS_MAX ? count : COMPONENTS_MAX; // as is_frame() checked
    uint8_t scan[1 + 2 * COMPONENTS_MAX + 3] = {count};
    size_t at = 1;
    for (int i = 0; i < components; i++) {
        scan[at++] = frame[FRAME_BYTES + COMPONENT_BYTES * i];
        scan[at++] = i == 0 ? 0x00 : 0x11;
    }
    scan[at++] = 0;
    scan[at++] = 63;
    scan[at++] = 0;
    return write_segment(to, SOS, scan, at);
}

// --- segments

struct segment {
    uint8_t marker;
    const uint8_t *data; // from its marker on
    size_t bytes;
};

enum { SEGMENT_HEADER = 4 }; // marker and length

// Reads the next segment of a picture or of a header extension. Returns false at the end.
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
    return frame && s->bytes >= FRAME_BYTES && s->data[FRAME_BYTES - 1] <= COMPONENTS_MAX &&
           s->bytes >= FRAME_BYTES + COMPONENT_BYTES * (size_t)s->data[FRAME_BYTES - 1];
}

// Keeps a segment, behind the kept ones if there are `more` of this picture.
static void keep_segment(struct jpeg_kept *kept, bool more, const struct segment *s)
{
    const size_t at = more ? kept->bytes : 0;
    if (s->bytes > sizeof kept->data - at)
        return;
    memcpy(kept->data + at, s->data, s->bytes);
    kept->bytes = at + s->bytes;
}

static uint8_t *write_kept(uint8_t *to, const struct jpeg_kept *kept)
{
    return write_bytes(to, kept->data, kept->bytes);
}

// Keeps the extension's DQT, DHT and SOF, and writes its other segments up to SOS, which is *scan,
// with all that follows it.
static uint8_t *write_extension(uint8_t *to, const struct jpeg_header *h,
                                struct jpeg_memory *memory, bool *restart, struct segment *scan)
{
    const uint8_t *at = h->segments, *const end = at + h->segment_bytes;
    bool quantized = h->quantization, coded = false;
    struct segment s = {0};
    while (next_segment(&at, end, &s) && s.marker != SOS) {
        if (s.marker == DQT)
            keep_segment(&memory->quantization, quantized, &s);
        else if (s.marker == DHT)
            keep_segment(&memory->huffman, coded, &s);
        else if (is_frame(&s))
            keep_segment(&memory->frame, false, &s);
        else
            to = write_bytes(to, s.data, s.bytes);
        quantized |= s.marker == DQT;
        coded |= s.marker == DHT;
        *restart |= s.marker == DRI;
    }
    if (s.marker == SOS)
        *scan = (struct segment){SOS, s.data, (size_t)(end - s.data)};
    return to;
}

size_t jpeg_header_write(uint8_t *to, const struct jpeg_header *h, struct jpeg_memory *memory)
{
    uint8_t *const begin = to;
    const uint8_t interval[] = {(uint8_t)(h->restart_interval >> 8), (uint8_t)h->restart_interval};
    struct jpeg_kept *tables = &memory->quantization, *frame = &memory->frame;
    bool restart = h->restart_interval == 0;
    struct segment scan = {0};
    if (!h->extended)
        memset(memory, 0, sizeof *memory);
    if (h->quantization)
        tables->bytes = (size_t)(write_quantization(tables->data, h->quantization) - tables->data);
    if (h->width > 0 && h->height > 0)
        frame->bytes = (size_t)(write_frame(frame->data, h) - frame->data);
    to = write_bytes(to, "\xff\xd8", 2);
    to = write_extension(to, h, memory, &restart, &scan);
    if (frame->bytes == 0 || tables->bytes == 0)
        return 0;
    to = write_kept(to, tables);
    to = write_bytes(to, huffman, sizeof huffman);
    to = write_kept(to, &memory->huffman);
    if (!restart)
        to = write_segment(to, DRI, interval, sizeof interval);
    to = write_kept(to, frame);
    to = scan.bytes > 0 ? write_bytes(to, scan.data, scan.bytes) : write_scan(to, frame->data);
    return (size_t)(to - begin);
}

// --- the size: the scan

enum {
    UNIT = 8,          // pixels per unit of the RTP header's size
    WRAP = 256 * UNIT, // the RTP header's size wraps to 0 here
    SIDE_MAX = 8 * WRAP,
    BLOCKS_MAX = 10, // in an MCU
    DC_MAX = 1 << 15,
    EXCESS = 16,    // one MCU in 16 may be padding behind the picture
    ASPECT_MAX = 6, // of width to height, or the reverse
};

struct huffman_table {
    int last[17];  // last code of each length; -1: none
    int first[17]; // index of a value minus its code
    uint8_t values[256];
};

struct scan {
    const uint8_t *data, *end; // data: the next byte
    uint64_t bits;
    int n_bits;
    struct huffman_table tables[2][4]; // DC, AC
    int restart_interval, mcu_width, mcu_height;
    struct {
        int id, blocks, dc, ac; // `dc`, `ac`: indices into `tables`
    } components[COMPONENTS_MAX];
    int n_components;
};

static bool read_huffman(struct scan *s, const uint8_t *data, size_t bytes)
{
    while (bytes >= 17) {
        struct huffman_table *table = &s->tables[data[0] >> 4 & 1][data[0] & 3];
        int code = 0, values = 0;
        for (int length = 1; length <= 16; length++) {
            table->first[length] = values - code;
            values += data[length];
            code += data[length];
            table->last[length] = data[length] > 0 ? code - 1 : -1;
            code *= 2;
        }
        if (values > 256 || (size_t)values + 17 > bytes)
            return false;
        memcpy(table->values, data + 17, (size_t)values);
        data += 17 + values;
        bytes -= 17 + (size_t)values;
    }
    return bytes == 0;
}

static bool read_frame(struct scan *s, const uint8_t *data, size_t bytes)
{
    int width = 1, height = 1, blocks = 0;
    if (bytes < 6 || data[5] == 0 || data[5] > COMPONENTS_MAX || bytes < 6 + 3 * (size_t)data[5])
        return false;
    s->n_components = data[5];
    for (int i = 0; i < s->n_components; i++) {
        const uint8_t *component = data + 6 + 3 * i;
        const int across = component[1] >> 4, down = component[1] & 15;
        s->components[i].id = component[0];
        s->components[i].blocks = across * down;
        blocks += across * down;
        width = across > width ? across : width;
        height = down > height ? down : height;
    }
    s->mcu_width = 8 * width;
    s->mcu_height = 8 * height;
    return blocks > 0 && blocks <= BLOCKS_MAX;
}

static bool read_scan_header(struct scan *s, const uint8_t *data, size_t bytes)
{
    if (s->n_components == 0 || bytes < 1 || data[0] != s->n_components ||
        bytes < 1 + 2 * (size_t)data[0])
        return false;
    for (int i = 0; i < s->n_components; i++) {
        if (data[1 + 2 * i] != s->components[i].id)
            return false;
        s->components[i].dc = data[2 + 2 * i] >> 4 & 3;
        s->components[i].ac = data[2 + 2 * i] & 3;
    }
    return true;
}

static bool open_scan(struct scan *s, const uint8_t *picture, size_t size)
{
    struct segment segment = {0};
    bool ok = true;
    *s = (struct scan){.data = picture, .end = picture + size};
    while (ok && segment.marker != SOS && next_segment(&s->data, s->end, &segment)) {
        const uint8_t *data = segment.data + SEGMENT_HEADER;
        const size_t bytes = segment.bytes - SEGMENT_HEADER;
        if (segment.marker == DHT)
            ok = read_huffman(s, data, bytes);
        else if (segment.marker == SOF0)
            ok = read_frame(s, data, bytes);
        else if (segment.marker == DRI && bytes >= 2)
            s->restart_interval = (int)big_endian_read(data, 2);
        else if (segment.marker == SOS)
            ok = read_scan_header(s, data, bytes);
    }
    return ok && segment.marker == SOS;
}

static void fill_bits(struct scan *s)
{
    while (s->n_bits <= 48 && s->data < s->end) {
        const bool escape = s->data[0] == 0xff;
        if (escape && (s->end - s->data < 2 || s->data[1] != 0))
            return; // a marker
        s->bits = s->bits << 8 | s->data[0];
        s->n_bits += 8;
        s->data += escape ? 2 : 1;
    }
}

// Returns -1 if fewer bits are left, or n > 16.
static int take_bits(struct scan *s, int n)
{
    if (n > 16 || n > s->n_bits)
        return -1;
    s->n_bits -= n;
    return (int)(s->bits >> s->n_bits & ((1U << n) - 1));
}

static int take_value(struct scan *s, const struct huffman_table *table)
{
    int code = 0;
    for (int length = 1; length <= 16 && length <= s->n_bits; length++) {
        code = (int)(s->bits >> (s->n_bits - length) & ((1U << length) - 1));
        if (code > table->last[length])
            continue;
        s->n_bits -= length;
        const int index = table->first[length] + code;
        return index >= 0 && index < 256 ? table->values[index] : -1;
    }
    return -1;
}

// Adds the block's DC difference to *dc.
static bool skip_block(struct scan *s, const struct huffman_table *dc_table,
                       const struct huffman_table *ac_table, int *dc)
{
    fill_bits(s);
    const int size = take_value(s, dc_table), value = size < 0 ? -1 : take_bits(s, size);
    if (value < 0)
        return false;
    if (size > 0)
        *dc += value >> (size - 1) ? value : value - (1 << size) + 1;
    *dc = *dc < -DC_MAX ? -DC_MAX : *dc > DC_MAX ? DC_MAX : *dc;
    for (int k = 1; k < 64; k++) {
        fill_bits(s);
        const int run = take_value(s, ac_table);
        if (run < 0 || take_bits(s, run & 15) < 0)
            return false;
        if (run == 0)
            break;
        k += run >> 4;
    }
    return true;
}

static bool is_restart(const struct scan *s)
{
    return s->end - s->data >= 2 && s->data[0] == 0xff && s->data[1] >= RST0 && s->data[1] < SOI;
}

// Returns true at a marker or the end: the bits left, if any, are padding.
static bool is_at_marker(struct scan *s)
{
    fill_bits(s);
    while (s->end - s->data >= 2 && s->data[0] == 0xff && s->data[1] == 0xff)
        s->data++;
    return s->n_bits < 8 && (s->end - s->data < 2 || s->data[0] == 0xff);
}

// Returns the number of MCUs, -1 if they cannot be read. Stores the DC of each MCU's first luma
// block in `luma`, which is large enough, or NULL.
static int count_mcus(struct scan s, int *luma)
{
    int n = 0, dc[COMPONENTS_MAX] = {0};
    while (!is_at_marker(&s)) {
        for (int i = 0; i < s.n_components; i++)
            for (int block = 0; block < s.components[i].blocks; block++) {
                if (!skip_block(&s, &s.tables[0][s.components[i].dc],
                                &s.tables[1][s.components[i].ac], &dc[i]))
                    return -1;
                if (luma && i == 0 && block == 0)
                    luma[n] = dc[0];
            }
        n++;
        if (s.restart_interval == 0 || n % s.restart_interval != 0)
            continue;
        if (!is_at_marker(&s))
            return -1;
        if (is_restart(&s)) {
            s.data += 2;
            s.n_bits = 0;
            memset(dc, 0, sizeof dc);
        }
    }
    return is_restart(&s) ? -1 : n;
}

// --- the size: possible ones

bool jpeg_size_is_rest(int rest, int size)
{
    return size > 0 &&
           (rest == 0 || (size >= WRAP && (size + UNIT - 1) / UNIT * UNIT % WRAP == rest));
}

static int count_of(int side, int mcu)
{
    return (side + mcu - 1) / mcu;
}

// Returns the pixels of a side of `count` MCUs; 0: no size fits.
static int side_of(int count, int mcu, int rest, int announced)
{
    if (jpeg_size_is_rest(rest, announced) && count_of(announced, mcu) == count)
        return announced;
    if (rest == 0)
        return count * mcu <= SIDE_MAX ? count * mcu : 0;
    for (int side = rest; side <= SIDE_MAX; side += WRAP)
        if (count_of(side, mcu) == count)
            return side;
    return 0;
}

// Returns the common height that `height` rounds up to whole MCUs, else `height`.
static int common_height(int width, int height)
{
    static const struct jpeg_size common[] = {{640, 360},   {800, 600},   {960, 540},
                                              {1440, 1080}, {1920, 1080}, {2592, 1944},
                                              {2880, 1620}, {3008, 1692}, {4000, 3000}};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i].width == width && height - common[i].height < 16 && height > common[i].height)
            return common[i].height;
    return height;
}

// Returns the mean difference between vertically adjacent MCUs for `columns` MCUs in a row. The
// true number has the smallest difference.
static double row_difference(const int *luma, int n, int columns)
{
    int64_t sum = 0;
    for (int i = columns; i < n; i++)
        sum += abs(luma[i] - luma[i - columns]);
    return n > columns ? (double)sum / (n - columns) : 1e9;
}

static bool is_plausible(int width, int height)
{
    return width <= ASPECT_MAX * height && height <= ASPECT_MAX * width;
}

// Chooses the fitting size whose rows resemble each other most. -ERANGE: none fits, or several fit
// equally well.
static int choose_size(struct jpeg_size *ret, const struct scan *s, int n, struct jpeg_size rest,
                       struct jpeg_size announced)
{
    const bool guessed = rest.width == 0 || rest.height == 0;
    double best = 1e9, second = 1e9;
    int *luma = malloc((size_t)n * sizeof *luma);
    if (!luma)
        return -ENOMEM;
    count_mcus(*s, luma);
    for (int columns = 1; columns <= n; columns++) {
        if (n % columns != 0)
            continue;
        const int width = side_of(columns, s->mcu_width, rest.width, announced.width);
        const int height = side_of(n / columns, s->mcu_height, rest.height, announced.height);
        if (width == 0 || height == 0 || (guessed && !is_plausible(width, height)))
            continue;
        const double difference = row_difference(luma, n, columns);
        second = difference < best ? best : difference < second ? difference : second;
        if (difference < best) {
            best = difference;
            *ret = (struct jpeg_size){width, rest.height ? height : common_height(width, height)};
        }
    }
    free(luma);
    return best < 0.95 * second ? 0 : -ERANGE;
}

static int count_of_size(const struct scan *s, struct jpeg_size size)
{
    return count_of(size.width, s->mcu_width) * count_of(size.height, s->mcu_height);
}

int jpeg_size_find(struct jpeg_size *ret, const uint8_t *picture, size_t bytes,
                   struct jpeg_size rest, struct jpeg_size announced)
{
    struct scan s;
    const struct jpeg_size likely = *ret;
    const int n = open_scan(&s, picture, bytes) ? count_mcus(s, NULL) : 0;
    if (n <= 0)
        return -EBADMSG;
    if (count_of_size(&s, likely) == n)
        return 0;
    const int declared = count_of_size(&s, rest);
    int rc = 0;
    if (declared != n)
        rc = choose_size(ret, &s, n, rest, announced);
    if (declared == n || (rc == -ERANGE && n > declared && n - declared <= declared / EXCESS)) {
        *ret = rest;
        rc = 0;
    }
    return rc;
}

void jpeg_size_write(uint8_t *picture, size_t bytes, struct jpeg_size size)
{
    const uint8_t *at = picture;
    const uint8_t sides[] = {(uint8_t)(size.height >> 8), (uint8_t)size.height,
                             (uint8_t)(size.width >> 8), (uint8_t)size.width};
    struct segment s = {0};
    while (s.marker != SOF0 && s.marker != SOS)
        if (!next_segment(&at, picture + bytes, &s))
            return;
    if (s.marker == SOF0 && s.bytes >= FRAME_BYTES)
        memcpy(picture + (s.data - picture) + SEGMENT_HEADER + 1, sides, sizeof sides);
}
