#include "daemon/output/protocol.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "daemon/wire.h"

enum { HEADER_MAX = 512 }; // bytes before a payload, without the headers of elements

static bool is_batch(const struct result *result)
{
    return result->closed_by != CLOSED_NOT;
}

const struct item *protocol_first_item(const struct result *result)
{
    int i = 0;
    while (i < result->n_items - 1 && !item_is_filled(&result->item[i]))
        i++;
    return &result->item[i];
}

void stream_advance(struct stream_position *position, const struct result *result)
{
    const struct item *item = protocol_first_item(result);
    const uint64_t number = is_batch(result) ? result->batch_sequence : item->ordinal;
    if (position->begun)
        position->lost += number - position->expected;
    position->new_epoch = !position->begun || position->epoch != item->frame.epoch;
    position->begun = true;
    position->epoch = item->frame.epoch;
    position->expected = number + 1;
}

// Returns the number of elements that consumers get, filled or not.
static int count_elements(const struct output_config *config, const struct result *result)
{
    int n = result->n_items;
    while (is_batch(result) && config->tail == BATCH_CUT && !item_is_filled(&result->item[n - 1]))
        n--;
    return n;
}

static size_t element_size(const struct result *result)
{
    return result->size / (size_t)result->n_items;
}

size_t protocol_payload_size(const struct output_config *config, const struct result *result)
{
    return (size_t)count_elements(config, result) * element_size(result);
}

size_t protocol_header_max(const struct result *result)
{
    const size_t elements = is_batch(result) ? (size_t)result->n_items : 0;
    return HEADER_MAX + elements * sizeof(struct framed_element_header);
}

static bool is_tensor(const struct result_format *format)
{
    return format->image.format == PIXEL_TENSOR;
}

static int channel_count(const struct result_format *format)
{
    return format->order == ORDER_GRAY ? 1 : 3;
}

// --- framed

static const char *format_name(const struct result_format *format)
{
    static const char *const tensor[] = {
        [ORDER_RGB] = "rgb", [ORDER_BGR] = "bgr", [ORDER_GRAY] = "gray"};
    return is_tensor(format) ? tensor[format->order] : pixel_format_name(format->image.format);
}

static const char *dtype_name(enum dtype dtype)
{
    static const char *const names[] = {
        [DTYPE_U8] = "u8", [DTYPE_S8] = "s8", [DTYPE_F16] = "f16", [DTYPE_F32] = "f32"};
    return names[dtype];
}

static const char *layout_name(const struct result_format *format)
{
    if (!is_tensor(format))
        return "";
    return format->layout == LAYOUT_NCHW ? "nchw" : "nhwc";
}

static int plane_count(const struct result_format *format)
{
    if (!is_tensor(format))
        return pixel_format_planes(format->image.format);
    return format->layout == LAYOUT_NCHW ? channel_count(format) : 1;
}

// Copies a name into a zeroed field, cut at a character; the last byte stays zero, so that a
// consumer may print the field as a string.
static void put_name(char *to, size_t size, const char *name)
{
    size_t length = strnlen(name, size);
    if (length == size) {
        length--;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
    }
    memcpy(to, name, length);
}

static float put_float(double value)
{
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = htole32(bits);
    memcpy(&number, &bits, sizeof number);
    return number;
}

// Writes the planes of an element whose payload begins `offset` bytes after the first one's.
static void put_planes(struct framed_header *to, const struct result *result, size_t offset)
{
    int n = plane_count(&result->format);
    to->planes = htole32((uint32_t)n);
    for (int i = 0; i < n; i++) {
        const struct plane *plane = &result->format.image.plane[i];
        const size_t first = (size_t)(plane->data - (uint8_t *)result->data);
        to->plane_offset[i] = htole64(first + offset);
        to->plane_stride[i] = htole32((uint32_t)plane->stride);
    }
}

static void put_format(struct framed_header *to, const struct result_format *format)
{
    to->width = htole32((uint32_t)format->image.width);
    to->height = htole32((uint32_t)format->image.height);
    put_name(to->format, sizeof to->format, format_name(format));
    put_name(to->dtype, sizeof to->dtype, dtype_name(format->dtype));
    memcpy(to->layout, layout_name(format), strlen(layout_name(format))); // four letters or none
}

static void put_item(struct framed_header *to, const struct item *item)
{
    const struct frame_info *frame = &item->frame;
    to->sequence = htole64(item->sequence);
    to->epoch = htole32(frame->epoch);
    to->pts_ns = (int64_t)htole64((uint64_t)frame->pts_ns);
    to->capture_ns = (int64_t)htole64((uint64_t)frame->capture_ns);
    to->received_ns = (int64_t)htole64((uint64_t)frame->received_ns);
    to->decoded_ns = (int64_t)htole64((uint64_t)frame->decoded_ns);
    to->finished_ns = (int64_t)htole64((uint64_t)item->finished_ns);
    to->source_width = htole32((uint32_t)frame->source_width);
    to->source_height = htole32((uint32_t)frame->source_height);
    for (int i = 0; i < 6; i++) {
        to->src_to_dst[i] = put_float(item->src_to_dst[i]);
        to->dst_to_src[i] = put_float(item->dst_to_src[i]);
    }
    put_name(to->camera, sizeof to->camera, item->camera);
}

// Sets all fields except `lost`, the flags and an item's fields.
static struct framed_header shape_header(const struct result *result, const char *output,
                                         size_t bytes, int element)
{
    struct framed_header header = {
        .magic = {'F', 'R', 'M', 'D'},
        .version = htole16(FRAMED_VERSION),
        .header_bytes = htole16((uint16_t)bytes),
        .payload_bytes = htole64(element_size(result)),
        .batch_index = htole32((uint32_t)element),
    };
    put_format(&header, &result->format);
    put_planes(&header, result, (size_t)element * element_size(result));
    put_name(header.output, sizeof header.output, output);
    return header;
}

static size_t frame_header(const struct output_config *config, const struct result *result,
                           const struct stream_position *position, char *to)
{
    const uint32_t first = position->new_epoch ? FRAMED_FLAG_FIRST_OF_EPOCH : 0;
    struct framed_header header = shape_header(result, config->name, sizeof header, 0);
    put_item(&header, &result->item[0]);
    header.lost = htole64(position->lost);
    header.flags = htole32(result->item[0].frame.flags | first);
    memcpy(to, &header, sizeof header);
    return sizeof header;
}

static void put_scene(struct framed_element_header *to, const struct scene_facts *scene)
{
    const uint32_t flags = FRAMED_SCENE_KNOWN | (scene->moving ? FRAMED_SCENE_MOVING : 0) |
                           (scene->light ? FRAMED_SCENE_LIGHT : 0) |
                           (scene->learning ? FRAMED_SCENE_LEARNING : 0) |
                           scene->alarms * FRAMED_SCENE_DARK;
    to->scene = htole32(scene->known ? flags : 0);
    to->fingerprint = htole64(scene->fingerprint);
    to->luma_mean = put_float((double)scene->mean);
    to->sharpness = put_float((double)scene->sharpness);
}

static struct framed_element_header element_header(const struct output_config *config,
                                                   const struct result *result, int element)
{
    const struct item *item = &result->item[element];
    struct framed_element_header to = {
        .header = shape_header(result, config->name, sizeof to, element),
    };
    if (!item_is_filled(item)) {
        to.header.flags = htole32(FRAMED_FLAG_EMPTY);
        return to;
    }
    put_item(&to.header, item);
    to.header.flags = htole32(item->frame.flags);
    to.header.lost = htole64(item->lost);
    to.parent_sequence = htole64(item->parent_sequence);
    to.object = htole32((uint32_t)item->object);
    to.part = htole32((uint32_t)item->part);
    to.parts = htole32((uint32_t)item->parts);
    put_name(to.region, sizeof to.region, item->region);
    put_scene(&to, &item->frame.scene);
    return to;
}

size_t protocol_element_headers(void *to, const struct output_config *config,
                                const struct result *result)
{
    const int n = count_elements(config, result);
    for (int i = 0; i < n; i++) {
        const struct framed_element_header header = element_header(config, result, i);
        memcpy((uint8_t *)to + (size_t)i * sizeof header, &header, sizeof header);
    }
    return (size_t)n * sizeof(struct framed_element_header);
}

void protocol_batch(struct framed_batch *to, const struct output_config *config,
                    const struct result *result, const struct stream_position *position)
{
    static const uint8_t reasons[] = {
        [CLOSED_FULL] = FRAMED_CLOSED_FULL,         [CLOSED_ALL] = FRAMED_CLOSED_ALL,
        [CLOSED_WAIT] = FRAMED_CLOSED_WAIT,         [CLOSED_RELOAD] = FRAMED_CLOSED_RELOAD,
        [CLOSED_STOPPING] = FRAMED_CLOSED_STOPPING,
    };
    int64_t finished_ns = 0;
    uint32_t filled = 0;
    for (int i = 0; i < result->n_items; i++) {
        const struct item *item = &result->item[i];
        if (!item_is_filled(item))
            continue;
        filled++;
        finished_ns = item->finished_ns > finished_ns ? item->finished_ns : finished_ns;
    }
    *to = (struct framed_batch){
        .magic = {'F', 'R', 'B', 'T'},
        .version = htole16(FRAMED_VERSION),
        .bytes = htole16(sizeof *to),
        .count = htole32((uint32_t)count_elements(config, result)),
        .capacity = htole32((uint32_t)result->n_items),
        .closed_by = htole32(reasons[result->closed_by]),
        .header_bytes = htole32(sizeof(struct framed_element_header)),
        .element_bytes = htole64(element_size(result)),
        .payload_bytes = htole64(protocol_payload_size(config, result)),
        .sequence = htole64(result->batch_sequence),
        .lost = htole64(position->lost),
        .opened_ns = (int64_t)htole64((uint64_t)result->opened_ns),
        .closed_ns = (int64_t)htole64((uint64_t)result->closed_ns),
        .finished_ns = (int64_t)htole64((uint64_t)finished_ns),
        .elements = htole32(filled),
    };
}

static size_t batch_header(const struct output_config *config, const struct result *result,
                           const struct stream_position *position, char *to)
{
    struct framed_batch batch;
    protocol_batch(&batch, config, result, position);
    memcpy(to, &batch, sizeof batch);
    return sizeof batch + protocol_element_headers(to + sizeof batch, config, result);
}

// --- y4m

static const char *y4m_colour(const struct result_format *format)
{
    if (is_tensor(format))
        return "mono"; // gray u8: the configuration allows no other tensor
    if (format->image.format == PIXEL_YUV444P)
        return "444";
    switch (format->image.colour.siting) {
    case SITING_CENTER:
        return "420jpeg";
    case SITING_TOPLEFT:
        return "420paldv";
    default:
        return "420mpeg2";
    }
}

// A tensor's rows are never fields.
static char y4m_interlacing(const struct result_format *format)
{
    static const char letters[] = {
        [FIELDS_NONE] = 'p',
        [FIELDS_TOP_FIRST] = 't',
        [FIELDS_BOTTOM_FIRST] = 'b',
        [FIELDS_UNKNOWN] = '?',
    };
    return is_tensor(format) ? 'p' : letters[format->field_order];
}

static size_t y4m_header(const struct result_format *format, bool first, char *to)
{
    static const char frame[] = "FRAME\n";
    bool has_rate = format->rate_num > 0 && format->rate_den > 0;
    // A gray tensor is luma over all 256 levels, whatever its source's range.
    bool full = is_tensor(format) || format->image.colour.range == RANGE_FULL;
    if (!first)
        return (size_t)snprintf(to, HEADER_MAX, "%s", frame);
    return (size_t)snprintf(
        to, HEADER_MAX, "YUV4MPEG2 W%d H%d F%d:%d I%c A1:1 C%s XCOLORRANGE=%s\n%s",
        format->image.width, format->image.height, has_rate ? format->rate_num : 25,
        has_rate ? format->rate_den : 1, y4m_interlacing(format), y4m_colour(format),
        full ? "FULL" : "LIMITED", frame);
}

// --- npy

static bool is_planar(const struct result_format *format)
{
    return is_tensor(format) ? format->layout == LAYOUT_NCHW
                             : format->image.format == PIXEL_YUV444P;
}

// Writes the shape as a Python tuple, for a batch with the number of elements first. A picture with
// planes of different sizes is one row of bytes.
static void npy_shape(const struct output_config *config, const struct result *result, char *to,
                      size_t size)
{
    const struct result_format *format = &result->format;
    int width = format->image.width, height = format->image.height;
    int depth = is_tensor(format) ? channel_count(format) : 3;
    bool even = is_tensor(format) || format->image.format == PIXEL_YUV444P ||
                format->image.format == PIXEL_YUV24;
    char count[16] = "";
    if (is_batch(result))
        snprintf(count, sizeof count, "%d, ", count_elements(config, result));
    if (!even)
        snprintf(to, size, is_batch(result) ? "(%s%zu)" : "(%s%zu,)", count, element_size(result));
    else if (is_planar(format))
        snprintf(to, size, "(%s%d, %d, %d)", count, depth, height, width);
    else
        snprintf(to, size, "(%s%d, %d, %d)", count, height, width, depth);
}

// Version 1.0: magic, length of the dictionary, dictionary, padded so that the data starts at a
// multiple of 64.
static size_t npy_header(const struct output_config *config, const struct result *result, char *to)
{
    static const char *const descr[] = {
        [DTYPE_U8] = "|u1", [DTYPE_S8] = "|i1", [DTYPE_F16] = "<f2", [DTYPE_F32] = "<f4"};
    enum { PREFIX = 10, ALIGN = 64 };
    char shape[64];
    npy_shape(config, result, shape, sizeof shape);
    size_t end = PREFIX + (size_t)snprintf(to + PREFIX, HEADER_MAX - PREFIX,
                                           "{'descr': '%s', 'fortran_order': False, 'shape': %s}",
                                           descr[result->format.dtype], shape);
    size_t whole = (end + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memset(to + end, ' ', whole - end - 1);
    to[whole - 1] = '\n';
    uint16_t length = htole16((uint16_t)(whole - PREFIX));
    memcpy(to, "\x93NUMPY\x01", 8); // the literal's final zero is the minor version
    memcpy(to + 8, &length, sizeof length);
    return whole;
}

size_t protocol_header(const struct output_config *config, const struct result *result,
                       const struct stream_position *position, bool first, char *to)
{
    switch (config->protocol) {
    case PROTOCOL_FRAMED:
        return is_batch(result) ? batch_header(config, result, position, to)
                                : frame_header(config, result, position, to);
    case PROTOCOL_Y4M:
        return y4m_header(&result->format, first, to);
    case PROTOCOL_NPY:
        return npy_header(config, result, to);
    case PROTOCOL_RAW:
    case PROTOCOL_AUTO:
    case PROTOCOL_MP4: // libavformat writes it: output/muxer.c
    case PROTOCOL_MKV:
    case PROTOCOL_LINES:
        break;
    }
    return 0;
}

bool protocol_continues(enum protocol protocol, const struct result_format *before,
                        const struct result_format *now)
{
    if (protocol == PROTOCOL_FRAMED || protocol == PROTOCOL_NPY)
        return true; // every record describes itself
    return before->image.format == now->image.format && before->image.width == now->image.width &&
           before->image.height == now->image.height && before->dtype == now->dtype &&
           before->layout == now->layout && before->order == now->order &&
           before->image.colour.matrix == now->image.colour.matrix &&
           before->image.colour.range == now->image.colour.range &&
           before->image.colour.siting == now->image.colour.siting &&
           (protocol != PROTOCOL_Y4M || y4m_interlacing(before) == y4m_interlacing(now));
}
