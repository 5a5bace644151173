// The size of a JPEG picture in RTP.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/rtsp/depacketizer.h"

enum {
    RST0 = 0xd0, // the second byte of a marker
    SOI = 0xd8,
    UNIT = 8,          // pixels per unit of the RTP header's size
    WRAP = 256 * UNIT, // the RTP header's size wraps to 0 here
    SIDE_MAX = 8 * WRAP,
    MCU_WIDTH = 16,
    COMPONENTS = 3,
    DC_MAX = 1 << 15,
    EXCESS = 16,    // one MCU in 16 may be padding behind the picture
    ASPECT_MAX = 6, // of width to height, or the reverse
};

const uint8_t jpeg_huffman[JPEG_HUFFMAN_BYTES] = {
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

// --- the scan

struct huffman_table {
    int last[17];  // last code of each length; -1: none
    int first[17]; // index of a value minus its code
    const uint8_t *values;
};

struct scan {
    const uint8_t *data, *end; // data: the next byte
    uint64_t bits;
    int n_bits;
    struct huffman_table tables[2][2]; // DC and AC, of luma and chroma
    int restart_interval, mcu_height;
    int blocks; // of luma in an MCU
};

static void open_scan(struct scan *s, const struct jpeg_scan *scan)
{
    const uint8_t *data = jpeg_huffman + 4, *const end = jpeg_huffman + sizeof jpeg_huffman;
    *s = (struct scan){.data = scan->data,
                       .end = scan->data + scan->bytes,
                       .restart_interval = scan->restart_interval,
                       .mcu_height = scan->half_height ? 16 : 8,
                       .blocks = scan->half_height ? 4 : 2};
    while (data < end) {
        struct huffman_table *table = &s->tables[data[0] >> 4][data[0] & 1];
        int code = 0, values = 0;
        for (int length = 1; length <= 16; length++) {
            table->first[length] = values - code;
            values += data[length];
            code += data[length];
            table->last[length] = data[length] > 0 ? code - 1 : -1;
            code *= 2;
        }
        table->values = data + 17;
        data += 17 + values;
    }
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
        return table->values[table->first[length] + code];
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
    int n = 0, dc[COMPONENTS] = {0};
    while (!is_at_marker(&s)) {
        for (int block = 0; block < s.blocks + COMPONENTS - 1; block++) {
            const int i = block < s.blocks ? 0 : block - s.blocks + 1, chroma = i > 0;
            if (!skip_block(&s, &s.tables[0][chroma], &s.tables[1][chroma], &dc[i]))
                return -1;
            if (luma && block == 0)
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

// --- possible sizes

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
        const int width = side_of(columns, MCU_WIDTH, rest.width, announced.width);
        const int height = side_of(n / columns, s->mcu_height, rest.height, announced.height);
        const bool narrow = width > ASPECT_MAX * height || height > ASPECT_MAX * width;
        if (width == 0 || height == 0 || (guessed && narrow))
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
    return count_of(size.width, MCU_WIDTH) * count_of(size.height, s->mcu_height);
}

int jpeg_size_find(struct jpeg_size *ret, const struct jpeg_scan *scan, struct jpeg_size rest,
                   struct jpeg_size announced)
{
    struct scan s;
    open_scan(&s, scan);
    const int n = count_mcus(s, NULL);
    if (n <= 0)
        return -EBADMSG;
    if (count_of_size(&s, *ret) == n)
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
