#include "daemon/rtsp/jpeg_size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/number.h"

enum { // the second byte of a marker
    SOF0 = 0xc0,
    DHT = 0xc4,
    RST0 = 0xd0,
    SOI = 0xd8,
    SOS = 0xda,
    DRI = 0xdd,
};

enum {
    UNIT = 8,          // pixels per unit of the RTP header's size
    WRAP = 256 * UNIT, // the RTP header's size wraps to 0 here
    SIDE_MAX = 8 * WRAP,
    COMPONENTS_MAX = 4,
    BLOCKS_MAX = 10, // in an MCU
    DC_MAX = 1 << 15,
    EXCESS = 16,    // one MCU in 16 may be padding behind the picture
    ASPECT_MAX = 6, // of width to height, or the reverse
};

// --- the scan

struct huffman {
    int last[17];  // last code of each length; -1: none
    int first[17]; // index of a value minus its code
    uint8_t values[256];
};

struct scan {
    const uint8_t *data, *end; // data: the next byte
    uint64_t bits;
    int n_bits;
    struct huffman tables[2][4]; // DC, AC
    int restart_interval, mcu_width, mcu_height;
    struct {
        int id, blocks, dc, ac; // `dc`, `ac`: indices into `tables`
    } components[COMPONENTS_MAX];
    int n_components;
};

static bool read_huffman(struct scan *s, const uint8_t *data, size_t bytes)
{
    while (bytes >= 17) {
        struct huffman *table = &s->tables[data[0] >> 4 & 1][data[0] & 3];
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

// Advances to the next segment of a picture. Returns its marker, 0 at the end.
static int next_segment(const uint8_t **at, const uint8_t *end, const uint8_t **data, size_t *bytes)
{
    const uint8_t *p = *at;
    while (end - p >= 2 && p[0] == 0xff && (p[1] == 0xff || p[1] == SOI))
        p += p[1] == SOI ? 2 : 1;
    if (end - p < 4 || p[0] != 0xff)
        return 0;
    const size_t length = big_endian_read(p + 2, 2);
    if (length < 2 || length > (size_t)(end - p) - 2)
        return 0;
    *data = p + 4;
    *bytes = length - 2;
    *at = p + 2 + length;
    return p[1];
}

static bool open_scan(struct scan *s, const uint8_t *picture, size_t size)
{
    const uint8_t *at = picture, *data;
    size_t bytes;
    bool ok = true;
    int marker = 1;
    *s = (struct scan){.end = picture + size};
    while (ok && marker != SOS && (marker = next_segment(&at, s->end, &data, &bytes)) != 0) {
        if (marker == DHT)
            ok = read_huffman(s, data, bytes);
        else if (marker == SOF0)
            ok = read_frame(s, data, bytes);
        else if (marker == DRI && bytes >= 2)
            s->restart_interval = (int)big_endian_read(data, 2);
        else if (marker == SOS)
            ok = read_scan_header(s, data, bytes);
    }
    s->data = at;
    return ok && marker == SOS;
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

static int take_value(struct scan *s, const struct huffman *table)
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
static bool skip_block(struct scan *s, const struct huffman *dc_table,
                       const struct huffman *ac_table, int *dc)
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

// --- sizes

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
    const uint8_t *at = picture, *data;
    size_t n;
    for (int marker; (marker = next_segment(&at, picture + bytes, &data, &n)) != 0;)
        if (marker == SOF0 && n >= 5) {
            uint8_t *to = picture + (data - picture) + 1;
            to[0] = (uint8_t)(size.height >> 8);
            to[1] = (uint8_t)size.height;
            to[2] = (uint8_t)(size.width >> 8);
            to[3] = (uint8_t)size.width;
            return;
        } else if (marker == SOS) {
            return;
        }
}
