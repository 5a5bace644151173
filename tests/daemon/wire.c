// The layout of the wire header, byte by byte, in C and in C++.
#include <stddef.h>
#include <stdlib.h>

#include "daemon/wire.h"
#include "tests/test.h"

static const struct {
    const char *name;
    size_t offset, size, at, bytes;
} fields[] = {
#define FIELD(name, at, bytes)                                                                     \
    {                                                                                              \
#name, offsetof(struct framed_header, name), sizeof(((struct framed_header *)0)->name),    \
            at, bytes                                                                              \
    }
    FIELD(magic, 0, 4),         FIELD(version, 4, 2),         FIELD(header_bytes, 6, 2),
    FIELD(payload_bytes, 8, 8), FIELD(sequence, 16, 8),       FIELD(lost, 24, 8),
    FIELD(pts_ns, 32, 8),       FIELD(epoch, 40, 4),          FIELD(flags, 44, 4),
    FIELD(capture_ns, 48, 8),   FIELD(received_ns, 56, 8),    FIELD(decoded_ns, 64, 8),
    FIELD(finished_ns, 72, 8),  FIELD(width, 80, 4),          FIELD(height, 84, 4),
    FIELD(source_width, 88, 4), FIELD(source_height, 92, 4),  FIELD(format, 96, 8),
    FIELD(dtype, 104, 4),       FIELD(layout, 108, 4),        FIELD(planes, 112, 4),
    FIELD(batch_index, 116, 4), FIELD(plane_offset, 120, 32), FIELD(plane_stride, 152, 16),
    FIELD(src_to_dst, 168, 24), FIELD(dst_to_src, 192, 24),   FIELD(camera, 216, 24),
    FIELD(output, 240, 16),
#undef FIELD
};

int main(void)
{
    size_t end = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        CHECK(fields[i].offset == fields[i].at, "%s at %zu", fields[i].name, fields[i].offset);
        CHECK(fields[i].size == fields[i].bytes, "%s has %zu", fields[i].name, fields[i].size);
        CHECK(fields[i].at == end, "a hole before %s", fields[i].name);
        end = fields[i].at + fields[i].bytes;
    }
    CHECK(end == sizeof(struct framed_header) && end == 256, "%zu bytes", end);
    CHECK(FRAMED_FLAG_DAMAGED == 1 && FRAMED_FLAG_KEYFRAME == 2 &&
              FRAMED_FLAG_FIRST_OF_EPOCH == 4 && FRAMED_FLAG_CAPTURE_CLOCK == 8,
          "flags");
    const char *compile = "echo '#include \"daemon/wire.h\"' | "
                          "c++ -std=c++11 -Wall -Wextra -Werror -I. -fsyntax-only -x c++ -";
    if (system("command -v c++ >/dev/null") == 0)
        CHECK(system(compile) == 0, "not C++11");
    return test_end("wire");
}
