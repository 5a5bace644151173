// Files that an earlier process left unfinished: finds their whole frames, cuts off the rest, and
// gives them their names.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/address.h"
#include "daemon/base/number.h"
#include "daemon/output/segment.h"
#include "daemon/wire.h"

enum { TEXT_BYTES = 1024 }; // of the longest header, with a zero

// Reads up to `size` bytes; fewer at the end of the file.
static ssize_t read_at(int fd, void *to, size_t size, off_t offset)
{
    ssize_t n;
    do
        n = pread(fd, to, size, offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static bool begins_like(const char *bytes, ssize_t n, const char *magic)
{
    return memcmp(bytes, magic, (size_t)n < strlen(magic) ? (size_t)n : strlen(magic)) == 0;
}

// Each returns the bytes of the record at `offset`; 0 if none or cut; or a negative errno.

static off_t framed_record(int fd, off_t offset, off_t end)
{
    union {
        struct framed_batch batch;
        struct framed_header frame; // larger, but its sizes come first
    } header;
    uint64_t size = 0, payload = 0, left = (uint64_t)(end - offset);
    ssize_t n = read_at(fd, &header, sizeof header.batch, offset);
    if (n < (ssize_t)sizeof header.batch)
        return n < 0 ? n : 0;
    if (memcmp(header.batch.magic, FRAMED_BATCH_MAGIC, 4) == 0) {
        size = le16toh(header.batch.bytes) +
               (uint64_t)le32toh(header.batch.count) * le32toh(header.batch.header_bytes);
        payload = le64toh(header.batch.payload_bytes);
    } else if (memcmp(header.frame.magic, FRAMED_MAGIC, 4) == 0) {
        size = le16toh(header.frame.header_bytes);
        payload = le64toh(header.frame.payload_bytes);
    }
    return size <= left && payload <= left - size ? (off_t)(size + payload) : 0;
}

// Returns the number of elements of a shape like "(3, 480, 640)".
static uint64_t npy_elements(const char *shape)
{
    uint64_t elements = 1;
    char *end;
    for (const char *p = shape + 1; *p >= '0' && *p <= '9'; p = end + strspn(end, ", "))
        if (__builtin_mul_overflow(elements, strtoull(p, &end, 10), &elements))
            return UINT64_MAX;
    return elements;
}

static off_t npy_record(int fd, off_t offset, off_t end)
{
    enum { PREFIX = 10 };
    char text[TEXT_BYTES] = "";
    ssize_t n = read_at(fd, text, sizeof text - 1, offset);
    if (n < PREFIX || memcmp(text, "\x93NUMPY\x01", 8) != 0)
        return n < 0 ? n : 0;
    uint64_t header = PREFIX + (uint64_t)((uint8_t)text[8] | (uint8_t)text[9] << 8), size;
    const char *descr = strstr(text + PREFIX, "'descr': '");
    const char *shape = strstr(text + PREFIX, "'shape': (");
    if (!descr || !shape)
        return 0;
    uint64_t width = strtoull(descr + strlen("'descr': '") + 2, NULL, 10);
    if (__builtin_mul_overflow(width, npy_elements(strchr(shape, '(')), &size) ||
        __builtin_add_overflow(size, header, &size) || size > (uint64_t)(end - offset))
        return 0;
    return (off_t)size;
}

// Returns the bytes of the stream's header, 0 if it is cut; sets *frame to the bytes of each frame.
static off_t y4m_header(int fd, off_t *frame)
{
    char text[TEXT_BYTES] = "";
    ssize_t n = read_at(fd, text, sizeof text - 1, 0);
    const char *end = n > 0 ? strchr(text, '\n') : NULL, *colour = end ? strstr(text, " C") : NULL;
    off_t width, height;
    if (!colour || sscanf(text, "YUV4MPEG2 W%ld H%ld", &width, &height) != 2 || width < 1 ||
        height < 1 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX)
        return n < 0 ? n : 0;
    off_t chroma = !strncmp(colour, " Cmono", 6)  ? 0
                   : !strncmp(colour, " C444", 5) ? 2 * width * height
                                                  : 2 * ((width + 1) / 2) * ((height + 1) / 2);
    *frame = (off_t)strlen("FRAME\n") + width * height + chroma;
    return end - text + 1;
}

static off_t y4m_whole(int fd, off_t end)
{
    off_t frame = 1, header = y4m_header(fd, &frame);
    off_t frames = header > 0 ? (end - header) / frame : 0;
    return frames > 0 ? header + frames * frame : header < 0 ? header : 0;
}

static off_t sum_records(off_t record(int fd, off_t offset, off_t end), int fd, off_t end)
{
    off_t whole = 0, size;
    while ((size = record(fd, whole, end)) > 0)
        whole += size;
    return size < 0 ? size : whole;
}

static off_t framed_whole(int fd, off_t end)
{
    return sum_records(framed_record, fd, end);
}

static off_t npy_whole(int fd, off_t end)
{
    return sum_records(npy_record, fd, end);
}

// --- containers, whose parts are written one by one

// MP4: up to the last whole mdat, whose samples the moof before it describes.
static off_t mp4_whole(int fd, off_t end)
{
    enum { HEADER = 8, LONG_HEADER = 16 };
    uint8_t header[LONG_HEADER] = {0};
    off_t whole = 0;
    ssize_t n;
    for (off_t at = 0; (n = read_at(fd, header, sizeof header, at)) >= HEADER;) {
        const bool is_long = big_endian_read(header, 4) == 1;
        const uint64_t size =
            is_long ? big_endian_read(header + HEADER, 8) : big_endian_read(header, 4);
        if (size < (is_long ? LONG_HEADER : HEADER) || size > (uint64_t)(end - at))
            return whole;
        at += (off_t)size;
        if (memcmp(header + 4, "mdat", 4) == 0 || (whole > 0 && !memcmp(header + 4, "mfra", 4)))
            whole = at;
    }
    return n < 0 ? n : whole;
}

// Returns the length of an element's id or size by its first byte; 0 if invalid.
static int ebml_length(uint8_t first)
{
    return first ? __builtin_clz(first) - 23 : 0;
}

// Matroska: up to the last whole cluster or element after one.
static off_t mkv_whole(int fd, off_t end)
{
    enum { HEADER_MAX = 12 };
    static const uint64_t SEGMENT = 0x18538067, CLUSTER = 0x1f43b675;
    uint8_t header[HEADER_MAX] = {0};
    off_t whole = 0;
    ssize_t n;
    for (off_t at = 0; (n = read_at(fd, header, sizeof header, at)) > 0;) {
        const int id_bytes = ebml_length(header[0]);
        const int size_bytes = id_bytes > 0 && id_bytes <= 4 ? ebml_length(header[id_bytes]) : 0;
        if (size_bytes == 0 || n < id_bytes + size_bytes)
            return whole;
        const uint64_t id = big_endian_read(header, id_bytes);
        const uint64_t mask = (UINT64_C(1) << 7 * size_bytes) - 1;
        const uint64_t size = big_endian_read(header + id_bytes, size_bytes) & mask;
        at += id_bytes + size_bytes;
        if (id == SEGMENT)
            continue; // its elements follow
        if (size > (uint64_t)(end - at))
            return whole;
        at += (off_t)size;
        if (id == CLUSTER || whole > 0)
            whole = at;
    }
    return n < 0 ? n : whole;
}

// Lines: up to the last newline.
static off_t lines_whole(int fd, off_t end)
{
    char text[4096];
    while (end > 0) {
        const off_t from = end > (off_t)sizeof text ? end - (off_t)sizeof text : 0;
        ssize_t n = read_at(fd, text, (size_t)(end - from), from);
        if (n < 0)
            return n;
        const char *newline = memrchr(text, '\n', (size_t)n);
        if (newline)
            return from + (newline - text) + 1;
        end = from;
    }
    return 0;
}

static off_t raw_whole(int fd, off_t end)
{
    (void)fd; // it does not show where a frame ends
    return end;
}

static const struct {
    const char *magic;
    off_t at; // of the magic
    off_t (*whole)(int fd, off_t end);
} formats[] = {
    [PROTOCOL_FRAMED] = {FRAMED_MAGIC, 0, framed_whole},
    [PROTOCOL_Y4M] = {"YUV4MPEG2 ", 0, y4m_whole},
    [PROTOCOL_NPY] = {"\x93NUMPY", 0, npy_whole},
    [PROTOCOL_RAW] = {"", 0, raw_whole},
    [PROTOCOL_MP4] = {"ftyp", 4, mp4_whole},
    [PROTOCOL_MKV] = {"\x1a\x45\xdf\xa3", 0, mkv_whole},
    [PROTOCOL_LINES] = {"{\"camera\":", 0, lines_whole},
};

// Returns the bytes of the whole frames at the file's start, headers included; -EILSEQ if the file
// is not of this protocol; or another negative errno.
static off_t count_whole(enum protocol protocol, int fd, off_t end)
{
    char start[16];
    ssize_t n = read_at(fd, start, sizeof start, formats[protocol].at);
    if (n < 0)
        return n;
    if (!begins_like(start, n, formats[protocol].magic) &&
        !(protocol == PROTOCOL_FRAMED && begins_like(start, n, FRAMED_BATCH_MAGIC)))
        return -EILSEQ;
    return formats[protocol].whole(fd, end);
}

// --- the files

static int cut_and_name(const struct output_config *config, const char *part, int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
        return -errno;
    off_t whole = S_ISREG(st.st_mode) ? count_whole(config->protocol, fd, st.st_size) : -EILSEQ;
    if (whole < 0)
        return (int)whole;
    if (whole == 0)
        return unlink(part) < 0 ? -errno : 0;
    if (whole < st.st_size && ftruncate(fd, whole) < 0)
        return -errno;
    return segment_give_name(part);
}

bool segment_is_leftover(const char *pattern, const char *name)
{
    char plain[PATH_BYTES];
    const size_t bytes = strlen(name), part = strlen(SEGMENT_PART);
    if (bytes < part || strcmp(name + bytes - part, SEGMENT_PART) != 0)
        return false;
    snprintf(plain, sizeof plain, "%.*s", (int)(bytes - part), name);
    return pattern_matches(pattern, plain);
}

struct leftover_search {
    const struct output_config *config;
    struct leftovers *left;
};

// A locked file is being written and a missing one was finished, both elsewhere: neither is stuck.
static int finish_leftover(void *opaque, const char *part)
{
    const struct leftover_search *search = opaque;
    struct leftovers *left = search->left;
    int fd = open(part, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    const int rc = fd < 0 ? -errno : cut_and_name(search->config, part, fd);
    if (fd >= 0)
        close(fd);
    left->finished += rc == 0;
    if (rc == 0 || rc == -EWOULDBLOCK || rc == -ENOENT)
        return 0;
    if (left->stuck++ == 0) {
        left->error = rc;
        snprintf(left->first_stuck, sizeof left->first_stuck, "%s", part);
    }
    return 0;
}

void segment_finish_leftovers(const struct output_config *config, struct leftovers *ret)
{
    struct leftover_search search = {config, ret};
    *ret = (struct leftovers){0};
    ret->unread =
        segment_each_file(config->sink.path, segment_is_leftover, finish_leftover, &search);
}
