// A user's alternatives: a library that does one of our jobs, or the memory's own speed.
#ifndef FRAMED_TESTS_BENCH_PEERS_PEER_H
#define FRAMED_TESTS_BENCH_PEERS_PEER_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLIP_WIDTH = 1920, CLIP_HEIGHT = 1080 };

struct peer {
    const char *name;
    // Prepares the job of `op` on sources like `src` and describes the method in *does; NULL if the
    // peer does not support it. `op` outlives it.
    void *(*open)(const struct op *, const struct image *src, const char **does);
    // `src` is tight; `to` has room for op.dst_bytes and already contains the fill.
    void (*run)(void *, const struct image *src, uint8_t *to);
    void (*close)(void *);
    bool result; // its result is comparable with ours
};

extern const struct peer libyuv_peer, swscale_peer, opencv_peer;
extern const struct peer memory_peer; // memcpy of the frame, memset of the result
extern const struct peer copy_peer;   // memcpy of the result's size

// Returns the rows and columns of a letterbox that the picture fills.
static inline struct rect peer_box(const struct op *op)
{
    const int width = op->dst.width, height = width * CLIP_HEIGHT / CLIP_WIDTH;
    const struct rect box = {0, (op->dst.height - height) / 2, width, height};
    return box;
}

static inline bool peer_is_letterbox(const struct op *op)
{
    return op->kind == OP_WARP && op->src_to_dst[1] == 0;
}

// The two result formats that the libraries offer too: packed u8 and planar f32.
static inline bool peer_is_packed_u8(const struct op *op)
{
    return op->kind == OP_WARP && op->warp.dtype == DTYPE_U8 && op->warp.layout == LAYOUT_NHWC;
}

static inline bool peer_is_planar_f32(const struct op *op)
{
    return op->kind == OP_WARP && op->warp.dtype == DTYPE_F32 && op->warp.layout == LAYOUT_NCHW;
}

#ifdef __cplusplus
}
#endif
#endif
