#include "daemon/output/file_recovery.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/wire.h"

enum { TEXT_BYTES = 1024 }; // of the longest header, and a zero

// Up to `size` bytes; fewer at the end of the file.
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

// Each returns the bytes of the record at `offset`; 0 where they are none, or cut; negative errno.

static off_t framed_record(int fd, off_t offset, off_t end)
{
    struct framed_header header;
    ssize_t n = read_at(fd, &header, sizeof header, offset);
    if (n < 0)
        return n;
    if (n < (ssize_t)sizeof header || memcmp(header.magic, FRAMED_MAGIC, 4) != 0)
        return 0;
    uint64_t size = (uint64_t)le16toh(header.header_bytes);
    uint64_t payload = le64toh(header.payload_bytes), left = (uint64_t)(end - offset);
    return size <= left && payload <= left - size ? (off_t)(size + payload) : 0;
}

// The elements of "(3, 480, 640)".
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

// The bytes of the stream's header, 0 where it is cut; *frame are those of each frame behind it.
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

off_t file_recovery_whole(enum protocol protocol, int fd)
{
    static const char *const magics[] = {[PROTOCOL_FRAMED] = FRAMED_MAGIC,
                                         [PROTOCOL_Y4M] = "YUV4MPEG2 ",
                                         [PROTOCOL_NPY] = "\x93NUMPY",
                                         [PROTOCOL_RAW] = ""};
    char start[16];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    ssize_t n = read_at(fd, start, sizeof start, 0);
    if (n < 0)
        return n;
    if (!begins_like(start, n, magics[protocol]))
        return -EILSEQ;
    if (protocol == PROTOCOL_RAW)
        return st.st_size;
    return protocol == PROTOCOL_Y4M   ? y4m_whole(fd, st.st_size)
           : protocol == PROTOCOL_NPY ? sum_records(npy_record, fd, st.st_size)
                                      : sum_records(framed_record, fd, st.st_size);
}
