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

enum { HEAD_BYTES = 4096 };

// A walk over a file's records.
struct walk {
    uint8_t head[HEAD_BYTES + 1]; // first bytes of the record, then zeros
    ssize_t n;                    // bytes of head
    off_t left;                   // from the record to the end of the file
    off_t whole;                  // end of the last whole frame
    off_t frame;                  // y4m: bytes of a frame; 0: the header is next
    bool ends;                    // set by the functions below: the record ends a frame
};

// --- the formats: each returns the bytes of a record, which the file may not have; 0: invalid

static uint64_t framed_record(struct walk *walk)
{
    struct framed_batch batch;
    struct framed_header frame;
    uint64_t size = 0, payload = 0;
    memcpy(&batch, walk->head, sizeof batch);
    memcpy(&frame, walk->head, sizeof frame);
    if (memcmp(batch.magic, FRAMED_BATCH_MAGIC, 4) == 0) {
        size = le16toh(batch.bytes) + (uint64_t)le32toh(batch.count) * le32toh(batch.header_bytes);
        payload = le64toh(batch.payload_bytes);
    } else if (memcmp(frame.magic, FRAMED_MAGIC, 4) == 0) {
        size = le16toh(frame.header_bytes);
        payload = le64toh(frame.payload_bytes);
    }
    walk->ends = true;
    return __builtin_add_overflow(size, payload, &size) ? 0 : size;
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

static uint64_t npy_record(struct walk *walk)
{
    enum { PREFIX = 10 };
    const char *text = (const char *)walk->head + PREFIX;
    const char *descr = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
    if (memcmp(walk->head, "\x93NUMPY\x01", 8) != 0 || !descr || !shape)
        return 0;
    uint64_t size = strtoull(descr + strlen("'descr': '") + 2, NULL, 10); // of an element
    uint64_t header = PREFIX + (uint64_t)(walk->head[8] | walk->head[9] << 8);
    walk->ends = true;
    return __builtin_mul_overflow(size, npy_elements(strchr(shape, '(')), &size) ||
                   __builtin_add_overflow(size, header, &size)
               ? 0
               : size;
}

// All frames of a file have one size: the second record is the whole ones together.
static uint64_t y4m_record(struct walk *walk)
{
    const char *text = (const char *)walk->head;
    const char *end = strchr(text, '\n'), *colour = end ? strstr(text, " C") : NULL;
    off_t width, height;
    walk->ends = walk->frame > 0;
    if (walk->frame > 0)
        return (uint64_t)(walk->left / walk->frame * walk->frame);
    if (!colour || sscanf(text, "YUV4MPEG2 W%ld H%ld", &width, &height) != 2 || width < 1 ||
        height < 1 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX)
        return 0;
    off_t chroma = !strncmp(colour, " Cmono", 6)  ? 0
                   : !strncmp(colour, " C444", 5) ? 2 * width * height
                                                  : 2 * ((width + 1) / 2) * ((height + 1) / 2);
    walk->frame = (off_t)strlen("FRAME\n") + width * height + chroma;
    return (uint64_t)(end - text) + 1;
}

static uint64_t raw_record(struct walk *walk)
{
    walk->ends = true; // the file does not show where a frame ends
    return (uint64_t)walk->left;
}

// A fragment ends with its mdat, whose samples the moof before it describes.
static uint64_t mp4_record(struct walk *walk)
{
    enum { HEADER = 8, LONG_HEADER = 16 };
    const char *type = (const char *)walk->head + 4;
    uint64_t size = big_endian_read(walk->head, 4);
    const bool is_long = size == 1;
    if (is_long)
        size = big_endian_read(walk->head + HEADER, 8);
    walk->ends = !memcmp(type, "mdat", 4) || (!memcmp(type, "mfra", 4) && walk->whole > 0);
    return size >= (is_long ? LONG_HEADER : HEADER) ? size : 0;
}

// Returns the length of an element's id or size by its first byte; 0 if invalid.
static int ebml_length(uint8_t first)
{
    return first ? __builtin_clz(first) - 23 : 0;
}

// Matroska: a segment's elements follow it. A frame ends with its cluster.
static uint64_t mkv_record(struct walk *walk)
{
    static const uint64_t SEGMENT = 0x18538067, CLUSTER = 0x1f43b675;
    const uint8_t *head = walk->head;
    const int id_bytes = ebml_length(head[0]);
    const int size_bytes = id_bytes > 0 && id_bytes <= 4 ? ebml_length(head[id_bytes]) : 0;
    if (size_bytes == 0)
        return 0;
    const uint64_t id = big_endian_read(head, id_bytes);
    const uint64_t mask = (UINT64_C(1) << 7 * size_bytes) - 1;
    const uint64_t size = big_endian_read(head + id_bytes, size_bytes) & mask;
    walk->ends = id == CLUSTER || walk->whole > 0;
    return (uint64_t)(id_bytes + size_bytes) + (id == SEGMENT ? 0 : size);
}

// Lines, as many as begin in the head. The file's last bytes suffice; the others always stay.
static uint64_t lines_record(struct walk *walk)
{
    enum { LAST_BYTES = 1 << 20 }; // a line has fewer
    const uint8_t *newline = memrchr(walk->head, '\n', (size_t)walk->n);
    walk->ends = newline || walk->left > LAST_BYTES;
    return (uint64_t)(walk->left > LAST_BYTES ? walk->left - LAST_BYTES
                      : newline               ? newline - walk->head + 1
                                              : walk->n);
}

static const struct {
    const char *magic;
    size_t at; // of the magic
    uint64_t (*record)(struct walk *);
} formats[] = {
    [PROTOCOL_FRAMED] = {FRAMED_MAGIC, 0, framed_record},
    [PROTOCOL_Y4M] = {"YUV4MPEG2 ", 0, y4m_record},
    [PROTOCOL_NPY] = {"\x93NUMPY", 0, npy_record},
    [PROTOCOL_RAW] = {"", 0, raw_record},
    [PROTOCOL_MP4] = {"ftyp", 4, mp4_record},
    [PROTOCOL_MKV] = {"\x1a\x45\xdf\xa3", 0, mkv_record},
    [PROTOCOL_LINES] = {"{\"camera\":", 0, lines_record},
};

// --- the files

// Reads the record at an offset; less at the end of the file. Returns 0 or a negative errno.
static int read_record(struct walk *walk, int fd, off_t offset)
{
    do
        walk->n = pread(fd, walk->head, HEAD_BYTES, offset);
    while (walk->n < 0 && errno == EINTR);
    if (walk->n < 0)
        return -errno;
    memset(walk->head + walk->n, 0, sizeof walk->head - (size_t)walk->n);
    return 0;
}

// Returns true if the file begins with the magic, as far as it goes.
static bool begins_with(const struct walk *walk, const char *magic, size_t at)
{
    const size_t n = (size_t)walk->n > at ? (size_t)walk->n - at : 0;
    return memcmp(walk->head + at, magic, n < strlen(magic) ? n : strlen(magic)) == 0;
}

// Returns the bytes of the whole frames at the file's start, headers included; -EILSEQ if the file
// is not of this protocol; or another negative errno.
static off_t count_whole(enum protocol protocol, int fd, off_t end)
{
    struct walk walk = {0};
    uint64_t size;
    for (off_t at = 0; at < end; at += (off_t)size) {
        int rc = read_record(&walk, fd, at);
        if (rc < 0)
            return rc;
        if (at == 0 && !begins_with(&walk, formats[protocol].magic, formats[protocol].at) &&
            !(protocol == PROTOCOL_FRAMED && begins_with(&walk, FRAMED_BATCH_MAGIC, 0)))
            return -EILSEQ;
        walk.left = end - at;
        size = formats[protocol].record(&walk);
        if (size == 0 || size > (uint64_t)walk.left)
            break;
        if (walk.ends)
            walk.whole = at + (off_t)size;
    }
    return walk.whole;
}

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

// A locked file is being written and a missing one was finished, both elsewhere: neither is stuck.
static void finish_leftover(const struct output_config *config, const char *part,
                            struct leftovers *left)
{
    int fd = open(part, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    const int rc = fd < 0 ? -errno : cut_and_name(config, part, fd);
    if (fd >= 0)
        close(fd);
    left->finished += rc == 0;
    if (rc == 0 || rc == -EWOULDBLOCK || rc == -ENOENT)
        return;
    if (left->stuck++ == 0) {
        left->error = rc;
        snprintf(left->first_stuck, sizeof left->first_stuck, "%s", part);
    }
}

void segment_finish_leftovers(const struct output_config *config, struct leftovers *ret)
{
    struct segment_files files;
    *ret = (struct leftovers){0};
    ret->unread = segment_find_files(&files, config->sink.path, segment_is_leftover);
    for (size_t i = 0; i < files.n; i++)
        finish_leftover(config, files.list[i].path, ret);
    segment_free_files(&files);
}
