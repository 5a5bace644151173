// The layout of the wire structs, byte by byte, in C and in C++.
#include <stddef.h>
#include <stdlib.h>

#include "daemon/wire.h"
#include "tests/test.h"

struct field {
    const char *name;
    size_t offset, size, at, bytes;
};

#define FIELD(type, name, at, bytes)                                                               \
    {                                                                                              \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name), at, bytes            \
    }

static const struct field header[] = {
    FIELD(framed_header, magic, 0, 4),           FIELD(framed_header, version, 4, 2),
    FIELD(framed_header, header_bytes, 6, 2),    FIELD(framed_header, payload_bytes, 8, 8),
    FIELD(framed_header, sequence, 16, 8),       FIELD(framed_header, lost, 24, 8),
    FIELD(framed_header, pts_ns, 32, 8),         FIELD(framed_header, epoch, 40, 4),
    FIELD(framed_header, flags, 44, 4),          FIELD(framed_header, capture_ns, 48, 8),
    FIELD(framed_header, received_ns, 56, 8),    FIELD(framed_header, decoded_ns, 64, 8),
    FIELD(framed_header, finished_ns, 72, 8),    FIELD(framed_header, width, 80, 4),
    FIELD(framed_header, height, 84, 4),         FIELD(framed_header, source_width, 88, 4),
    FIELD(framed_header, source_height, 92, 4),  FIELD(framed_header, format, 96, 8),
    FIELD(framed_header, dtype, 104, 4),         FIELD(framed_header, layout, 108, 4),
    FIELD(framed_header, planes, 112, 4),        FIELD(framed_header, batch_index, 116, 4),
    FIELD(framed_header, plane_offset, 120, 32), FIELD(framed_header, plane_stride, 152, 16),
    FIELD(framed_header, src_to_dst, 168, 24),   FIELD(framed_header, dst_to_src, 192, 24),
    FIELD(framed_header, camera, 216, 24),       FIELD(framed_header, output, 240, 16),
};

static const struct field hello[] = {
    FIELD(framed_ring_hello, magic, 0, 4),
    FIELD(framed_ring_hello, version, 4, 2),
    FIELD(framed_ring_hello, hello_bytes, 6, 2),
    FIELD(framed_ring_hello, slots, 8, 4),
    FIELD(framed_ring_hello, memory, 12, 4),
    FIELD(framed_ring_hello, slot_offset, 16, 8),
    FIELD(framed_ring_hello, slot_stride, 24, 8),
    FIELD(framed_ring_hello, slot_bytes, 32, 8),
    FIELD(framed_ring_hello, state_offset, 40, 8),
    FIELD(framed_ring_hello, memfd_bytes, 48, 8),
    FIELD(framed_ring_hello, device_bytes, 56, 8),
    FIELD(framed_ring_hello, device_uuid, 64, 16),
    FIELD(framed_ring_hello, width, 80, 4),
    FIELD(framed_ring_hello, height, 84, 4),
    FIELD(framed_ring_hello, format, 88, 8),
    FIELD(framed_ring_hello, dtype, 96, 4),
    FIELD(framed_ring_hello, layout, 100, 4),
    FIELD(framed_ring_hello, planes, 104, 4),
    FIELD(framed_ring_hello, batch, 108, 4),
    FIELD(framed_ring_hello, plane_offset, 112, 32),
    FIELD(framed_ring_hello, plane_stride, 144, 16),
    FIELD(framed_ring_hello, camera, 160, 24),
    FIELD(framed_ring_hello, output, 184, 16),
    FIELD(framed_ring_hello, header_offset, 200, 8),
    FIELD(framed_ring_hello, shared, 208, 40),
    FIELD(framed_ring_hello, reserved, 248, 8),
};

static const struct field hello_cuda_ipc[] = {
    FIELD(framed_ring_hello_cuda_ipc, hello, 0, 256),
    FIELD(framed_ring_hello_cuda_ipc, handle, 256, 64),
};

static const struct field batch[] = {
    FIELD(framed_batch, magic, 0, 4),          FIELD(framed_batch, version, 4, 2),
    FIELD(framed_batch, bytes, 6, 2),          FIELD(framed_batch, count, 8, 4),
    FIELD(framed_batch, capacity, 12, 4),      FIELD(framed_batch, closed_by, 16, 4),
    FIELD(framed_batch, header_bytes, 20, 4),  FIELD(framed_batch, element_bytes, 24, 8),
    FIELD(framed_batch, payload_bytes, 32, 8), FIELD(framed_batch, sequence, 40, 8),
    FIELD(framed_batch, lost, 48, 8),          FIELD(framed_batch, opened_ns, 56, 8),
    FIELD(framed_batch, closed_ns, 64, 8),     FIELD(framed_batch, finished_ns, 72, 8),
    FIELD(framed_batch, slot, 80, 4),          FIELD(framed_batch, elements, 84, 4),
    FIELD(framed_batch, ticket, 88, 8),        FIELD(framed_batch, reserved, 96, 32),
};

static const struct field element[] = {
    FIELD(framed_element_header, header, 0, 256),
    FIELD(framed_element_header, region, 256, 24),
    FIELD(framed_element_header, parent_sequence, 280, 8),
    FIELD(framed_element_header, object, 288, 4),
    FIELD(framed_element_header, part, 292, 4),
    FIELD(framed_element_header, parts, 296, 4),
    FIELD(framed_element_header, scene, 300, 4),
    FIELD(framed_element_header, fingerprint, 304, 8),
    FIELD(framed_element_header, luma_mean, 312, 4),
    FIELD(framed_element_header, sharpness, 316, 4),
};

static const struct field frame[] = {
    FIELD(framed_ring_frame, header, 0, 256),
    FIELD(framed_ring_frame, slot, 256, 4),
    FIELD(framed_ring_frame, reserved, 260, 4),
    FIELD(framed_ring_frame, ticket, 264, 8),
};

static const struct field ret[] = {
    FIELD(framed_ring_return, slot, 0, 4),
    FIELD(framed_ring_return, reserved, 4, 4),
    FIELD(framed_ring_return, ticket, 8, 8),
};

static void check_layout(const struct field fields[], size_t n, size_t bytes)
{
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        CHECK(fields[i].offset == fields[i].at, "%s at %zu", fields[i].name, fields[i].offset);
        CHECK(fields[i].size == fields[i].bytes, "%s has %zu", fields[i].name, fields[i].size);
        CHECK(fields[i].at == end, "a hole before %s", fields[i].name);
        end = fields[i].at + fields[i].bytes;
    }
    CHECK(end == bytes, "%zu bytes", end);
}

#define CHECK_LAYOUT(fields, type)                                                                 \
    check_layout(fields, sizeof(fields) / sizeof((fields)[0]), sizeof(struct type))

int main(void)
{
    CHECK_LAYOUT(header, framed_header);
    CHECK_LAYOUT(hello, framed_ring_hello);
    CHECK_LAYOUT(hello_cuda_ipc, framed_ring_hello_cuda_ipc);
    CHECK_LAYOUT(frame, framed_ring_frame);
    CHECK_LAYOUT(ret, framed_ring_return);
    CHECK_LAYOUT(batch, framed_batch);
    CHECK_LAYOUT(element, framed_element_header);
    CHECK(FRAMED_FLAG_DAMAGED == 1 && FRAMED_FLAG_KEYFRAME == 2 &&
              FRAMED_FLAG_FIRST_OF_EPOCH == 4 && FRAMED_FLAG_CAPTURE_CLOCK == 8 &&
              FRAMED_FLAG_INTERLACED == 16 && FRAMED_FLAG_HDR == 32 && FRAMED_FLAG_EMPTY == 64,
          "flags");
    const char *compile = "echo '#include \"daemon/wire.h\"' | "
                          "c++ -std=c++11 -Wall -Wextra -Werror -I. -fsyntax-only -x c++ -";
    if (system("command -v c++ >/dev/null") == 0)
        CHECK(system(compile) == 0, "not C++11");
    return test_end();
}
