#include "daemon/codec/corruption.h"

#include <libavutil/bswap.h>
#include <libavutil/crc.h>
#include <libavutil/frame.h>
#include <libavutil/intreadwrite.h>
#include <libavutil/md5.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "daemon/wire.h"

enum {
    // The standard starts with 0xffff and appends 16 zero bits; libavutil does not append them.
    CRC_BEGIN = 0x1d0f,
    MISMATCHED_MAX = 8, // first pictures: after these the encoder is wrong
};

// --- the hash of the picture

struct hashed_component {
    const uint8_t *data;
    ptrdiff_t stride;
    int width, height, sample_bytes;
};

static struct hashed_component hashed_component_of(const AVFrame *picture,
                                                   const AVPixFmtDescriptor *format, int c)
{
    bool chroma = (c == 1 || c == 2) && !(format->flags & AV_PIX_FMT_FLAG_RGB);
    return (struct hashed_component){
        .data = picture->data[c],
        .stride = picture->linesize[c],
        .width = AV_CEIL_RSHIFT(picture->width, chroma ? format->log2_chroma_w : 0),
        .height = AV_CEIL_RSHIFT(picture->height, chroma ? format->log2_chroma_h : 0),
        .sample_bytes = format->comp[c].depth > 8 ? 2 : 1,
    };
}

static uint32_t row_checksum(const uint8_t *row, int y, const struct hashed_component *of)
{
    uint32_t sum = 0;
    for (int i = 0; i < of->width * of->sample_bytes; i++) {
        const int x = i / of->sample_bytes;
        sum += row[i] ^ (uint8_t)(x ^ y ^ x >> 8 ^ y >> 8);
    }
    return sum;
}

// Returns the number of bytes.
static size_t hash_component(uint8_t digest[HASH_BYTES_MAX], enum hash_method method,
                             struct AVMD5 *md5, const struct hashed_component *of)
{
    const AVCRC *table = av_crc_get_table(AV_CRC_16_CCITT);
    const size_t bytes = (size_t)(of->width * of->sample_bytes);
    uint32_t crc = av_bswap16(CRC_BEGIN), sum = 0;
    if (method == HASH_MD5)
        av_md5_init(md5);
    for (int y = 0; y < of->height; y++) {
        const uint8_t *row = of->data + y * of->stride;
        if (method == HASH_MD5)
            av_md5_update(md5, row, bytes);
        else if (method == HASH_CRC)
            crc = av_crc(table, crc, row, bytes);
        else
            sum += row_checksum(row, y, of);
    }
    if (method == HASH_MD5)
        av_md5_final(md5, digest);
    else if (method == HASH_CRC)
        AV_WB16(digest, av_bswap16((uint16_t)crc));
    else
        AV_WB32(digest, sum);
    return method == HASH_MD5 ? 16 : method == HASH_CRC ? 2 : 4;
}

static bool counts(const struct hash_checker *checker, enum hash_method method, int component)
{
    return checker->matched[component] || (checker->mismatched[component] < MISMATCHED_MAX &&
                                           (component == 0 || method != HASH_CRC));
}

bool hash_checker_finds_errors(struct hash_checker *checker, const struct picture_hash *hash,
                               const AVFrame *picture)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(picture->format);
    bool wrong = false;
    if (hash->method == HASH_NONE || !format || (format->flags & AV_PIX_FMT_FLAG_HWACCEL))
        return false;
    if (hash->method == HASH_MD5 && !checker->md5 && !(checker->md5 = av_md5_alloc()))
        return false;
    for (int c = 0; c < format->nb_components && c < 3; c++) {
        uint8_t digest[HASH_BYTES_MAX];
        const struct hashed_component component = hashed_component_of(picture, format, c);
        const size_t bytes = hash_component(digest, hash->method, checker->md5, &component);
        const bool matches = memcmp(digest, hash->digest[c], bytes) == 0;
        checker->matched[c] |= matches;
        wrong |= !matches && counts(checker, hash->method, c);
        checker->mismatched[c] += !checker->matched[c] && checker->mismatched[c] < MISMATCHED_MAX;
    }
    return wrong;
}

void hash_checker_finish(struct hash_checker *checker)
{
    av_freep(&checker->md5);
    *checker = (struct hash_checker){0};
}

// --- the policy

enum {
    LEADING_MAX = 250,  // pictures withheld while waiting for a keyframe
    TAINTED_MAX = 1500, // pictures marked without a keyframe: other streams recover bit by bit
};

void corruption_begin(struct corruption *corruption, enum damaged policy)
{
    *corruption = (struct corruption){.policy = policy, .holding = policy == DAMAGED_HOLD};
}

static void note_broken(struct corruption *corruption, int64_t serial)
{
    if (serial > corruption->broken)
        corruption->broken = serial;
}

void corruption_loss(struct corruption *corruption, int64_t serial)
{
    note_broken(corruption, serial);
    corruption->holding = corruption->policy == DAMAGED_HOLD;
    corruption->tainted = TAINTED_MAX;
}

// The packet itself may begin a recovery point.
void corruption_missing_reference(struct corruption *corruption, int64_t serial)
{
    note_broken(corruption, serial - 1);
    corruption->missing_reference = true;
}

// Pictures of a stream joined between keyframes show nothing. A stream without keyframes and
// recovery points is shown in the end.
static bool before_keyframe(struct corruption *corruption, uint32_t flags, bool clean)
{
    const bool harmed = (flags & FRAMED_FLAG_DAMAGED) || corruption->missing_reference;
    if (corruption->leading >= 0 && harmed && !clean && !(flags & FRAMED_FLAG_KEYFRAME) &&
        corruption->leading < LEADING_MAX) {
        corruption->leading++;
        corruption->tainted = corruption->missing_reference ? TAINTED_MAX : 0;
    } else {
        corruption->leading = -1;
    }
    return corruption->leading >= 0;
}

// The decoder reports damage in a picture, but not that it refers to a damaged one.
static void mark_tainted(struct corruption *corruption, uint32_t *flags, bool clean)
{
    if (*flags & FRAMED_FLAG_DAMAGED)
        corruption->tainted = TAINTED_MAX;
    else if (clean || corruption->tainted == 0)
        corruption->tainted = 0;
    else
        corruption->tainted--;
    if (corruption->tainted > 0)
        *flags |= FRAMED_FLAG_DAMAGED;
}

bool corruption_withholds(struct corruption *corruption, const struct packet_facts *facts,
                          bool harmed, uint32_t *flags)
{
    if (harmed)
        note_broken(corruption, facts->serial);
    const bool whole = facts->whole_from > corruption->broken;
    if (whole)
        *flags &= ~(uint32_t)FRAMED_FLAG_DAMAGED;
    const bool damaged = *flags & FRAMED_FLAG_DAMAGED;
    const bool clean = whole || (*flags & FRAMED_FLAG_KEYFRAME);
    if (before_keyframe(corruption, *flags, clean))
        return true;
    mark_tainted(corruption, flags, clean);
    if (corruption->policy == DAMAGED_HOLD && (damaged || clean))
        corruption->holding = damaged;
    return corruption->policy == DAMAGED_DROP ? damaged : corruption->holding;
}
