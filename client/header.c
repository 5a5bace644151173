#include "client/reader.h"

#include <stddef.h>
#include <string.h>

enum { SIDE_MAX = 1 << 16 };

static bool is_text(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

// Returns the bytes of one element of the payload, or 0 if the dtype is unknown.
static uint64_t dtype_size(const struct framed_header *header)
{
    static const struct {
        char name[4];
        unsigned char size;
    } dtypes[] = {{"u8", 1}, {"s8", 1}, {"f16", 2}, {"f32", 4}};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(header->dtype, dtypes[i].name) == 0)
            return dtypes[i].size;
    return 0;
}

static bool has_layout(const struct framed_header *header, const char layout[4])
{
    return memcmp(header->layout, layout, sizeof header->layout) == 0;
}

// A plane's number of rows and the bytes used of each, for a known format.
struct plane {
    uint64_t rows, row_bytes;
};

// Returns the format's number of planes, or 0 if it is unknown here; then only the payload's size
// is checked.
static uint32_t find_planes(const struct framed_header *header, struct plane plane[4])
{
    const char *format = header->format;
    const uint64_t width = header->width, height = header->height, size = dtype_size(header);
    const uint64_t half_width = (width + 1) / 2, half_height = (height + 1) / 2;
    const bool is_gray = strcmp(format, "gray") == 0;
    if (is_gray || strcmp(format, "rgb") == 0 || strcmp(format, "bgr") == 0) {
        const uint32_t channels = is_gray ? 1 : 3;
        const bool is_planar = has_layout(header, "nchw");
        if (size == 0 || (!is_planar && !has_layout(header, "nhwc")))
            return 0;
        for (uint32_t i = 0; i < channels; i++)
            plane[i] = (struct plane){height, width * size * (is_planar ? 1 : channels)};
        return is_planar ? channels : 1;
    }
    plane[0] = plane[1] = plane[2] = (struct plane){height, width};
    if (strcmp(format, "yuv444p") == 0)
        return 3;
    if (strcmp(format, "yuv24") == 0) {
        plane[0].row_bytes = 3 * width;
        return 1;
    }
    plane[1] = plane[2] = (struct plane){half_height, half_width};
    if (strcmp(format, "yuv420p") == 0)
        return 3;
    plane[1].row_bytes = 2 * half_width;
    return strcmp(format, "nv12") == 0 ? 2 : 0;
}

// Returns true if all planes lie within `bytes` from `first`; a tensor must fill them, packed.
static bool planes_fit(const struct framed_header *header, uint64_t first, uint64_t bytes)
{
    struct plane plane[4];
    const uint32_t n = find_planes(header, plane);
    uint64_t used = 0;
    if (n == 0)
        return true;
    if (header->planes != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t stride = header->plane_stride[i], offset = header->plane_offset[i];
        const uint64_t size = (plane[i].rows - 1) * stride + plane[i].row_bytes; // below 2^49
        if (stride < plane[i].row_bytes || offset - first > bytes ||
            size > bytes - (offset - first))
            return false;
        used += plane[i].rows * plane[i].row_bytes;
    }
    return header->layout[0] == '\0' || used == bytes;
}

bool header_is_good(const struct framed_header *header, uint64_t first, uint64_t bytes)
{
    return memcmp(header->magic, FRAMED_MAGIC, sizeof header->magic) == 0 &&
           header->version == FRAMED_VERSION && header->header_bytes >= sizeof *header &&
           header->payload_bytes == bytes && bytes > 0 && bytes <= PAYLOAD_BYTES_MAX &&
           header->width > 0 && header->width <= SIDE_MAX && header->height > 0 &&
           header->height <= SIDE_MAX && header->planes > 0 && header->planes <= 4 &&
           is_text(header->format, sizeof header->format) &&
           is_text(header->dtype, sizeof header->dtype) &&
           is_text(header->camera, sizeof header->camera) &&
           is_text(header->output, sizeof header->output) && planes_fit(header, first, bytes);
}

bool batch_is_good(const struct framed_batch *batch)
{
    return batch->version == FRAMED_VERSION && batch->bytes >= sizeof *batch && batch->count > 0 &&
           batch->count <= ELEMENTS_MAX && batch->capacity >= batch->count &&
           batch->elements <= batch->count &&
           batch->header_bytes >= sizeof(struct framed_element_header) &&
           batch->header_bytes <= HEADER_BYTES_MAX && batch->header_bytes % 8 == 0 &&
           batch->element_bytes <= PAYLOAD_BYTES_MAX &&
           batch->payload_bytes == batch->count * batch->element_bytes &&
           batch->payload_bytes <= PAYLOAD_BYTES_MAX;
}

bool take_elements(void *headers, const struct framed_batch *batch)
{
    struct framed_element_header *element = headers;
    for (uint32_t i = 0; i < batch->count; i++, element++) {
        memmove(element, (const uint8_t *)headers + (size_t)i * batch->header_bytes,
                sizeof *element);
        if (element->header.batch_index != i || element->header.header_bytes < sizeof *element ||
            !is_text(element->region, sizeof element->region) ||
            !header_is_good(&element->header, i * batch->element_bytes, batch->element_bytes))
            return false;
    }
    return true;
}
