#include "daemon/output/mp4_index.h"

#include <libavformat/avio.h>

void mp4_index_init(struct mp4_index *index)
{
    index->n = 0;
    index->seen = 0;
    index->step = 1;
}

void mp4_index_add(struct mp4_index *index, int64_t pts, int64_t offset)
{
    if (index->seen++ % index->step != 0)
        return;
    index->keyframe[index->n].pts = pts;
    index->keyframe[index->n++].offset = offset;
    if (index->n < MP4_INDEX_MAX)
        return;
    index->n /= 2;
    index->step *= 2;
    for (int i = 0; i < index->n; i++)
        index->keyframe[i] = index->keyframe[2 * i];
}

static void write_head(AVIOContext *io, unsigned bytes, const char *type)
{
    avio_wb32(io, bytes);
    avio_write(io, (const unsigned char *)type, 4);
}

void mp4_index_write(const struct mp4_index *index, AVIOContext *io)
{
    enum { HEAD = 8, TFRA_HEAD = 24, ENTRY = 19, MFRO = 16, VERSION_1 = 1 << 24 };
    const unsigned tfra = TFRA_HEAD + ENTRY * (unsigned)index->n, mfra = HEAD + tfra + MFRO;
    write_head(io, mfra, "mfra");
    write_head(io, tfra, "tfra");
    avio_wb32(io, VERSION_1); // 64-bit times and offsets
    avio_wb32(io, 1);         // track ID
    avio_wb32(io, 0);         // one byte for each of an entry's three numbers
    avio_wb32(io, (unsigned)index->n);
    for (int i = 0; i < index->n; i++) {
        avio_wb64(io, (uint64_t)index->keyframe[i].pts);
        avio_wb64(io, (uint64_t)index->keyframe[i].offset);
        for (int number = 0; number < 3; number++)
            avio_w8(io, 1); // traf in its moof, trun in the traf, sample in the trun
    }
    write_head(io, MFRO, "mfro");
    avio_wb32(io, 0);
    avio_wb32(io, mfra);
}
