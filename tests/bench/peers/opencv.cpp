#include <opencv2/imgproc.hpp>
#include <vector>

#include "tests/bench/peers/peer.h"

namespace
{
struct opencv {
    const struct op *op;
    int conversion;
    cv::Mat matrix; // empty for a letterbox
    cv::Mat rgb, small, boxed, levels;
};

void *open_opencv(const struct op *op, const struct image *src, const char **does)
{
    const bool letterbox =
        peer_is_letterbox(op) && (peer_is_packed_u8(op) || peer_is_planar_f32(op));
    const bool rotated = op->kind == OP_WARP && !peer_is_letterbox(op) &&
                         op->warp.dtype == DTYPE_U8 && op->warp.layout == LAYOUT_NCHW;
    if (!letterbox && !rotated)
        return nullptr;
    cv::setNumThreads(1);
    opencv *own = new opencv();
    own->op = op;
    own->conversion = src->format == PIXEL_NV12 ? cv::COLOR_YUV2RGB_NV12 : cv::COLOR_YUV2RGB_I420;
    if (rotated)
        own->matrix = cv::Mat(2, 3, CV_64F, const_cast<double *>(op->src_to_dst)).clone();
    *does = rotated                 ? "cvtColor + warpAffine + split"
            : peer_is_packed_u8(op) ? "cvtColor + resize + copyMakeBorder"
                                    : "cvtColor + resize + border + convertTo + split";
    return own;
}

void split(const cv::Mat &packed, int type, uint8_t *to)
{
    const size_t plane = packed.total() * packed.elemSize1();
    std::vector<cv::Mat> planes;
    for (int c = 0; c < 3; c++)
        planes.emplace_back(packed.rows, packed.cols, type, to + c * plane);
    cv::split(packed, planes);
}

void letterbox(opencv *own, uint8_t *to)
{
    const int width = own->op->dst.width, height = own->op->dst.height;
    const struct rect box = peer_box(own->op);
    const int below = height - box.y - box.height;
    const cv::Scalar fill(114, 114, 114);
    cv::resize(own->rgb, own->small, {box.width, box.height}, 0, 0, cv::INTER_LINEAR);
    if (peer_is_packed_u8(own->op)) {
        cv::Mat result(height, width, CV_8UC3, to);
        cv::copyMakeBorder(own->small, result, box.y, below, 0, 0, cv::BORDER_CONSTANT, fill);
        return;
    }
    cv::copyMakeBorder(own->small, own->boxed, box.y, below, 0, 0, cv::BORDER_CONSTANT, fill);
    own->boxed.convertTo(own->levels, CV_32F, 1 / 255.0);
    split(own->levels, CV_32FC1, to);
}

void run_opencv(void *opaque, const struct image *src, uint8_t *to)
{
    opencv *own = static_cast<opencv *>(opaque);
    const cv::Mat yuv(src->height * 3 / 2, src->width, CV_8UC1, src->plane[0].data);
    cv::cvtColor(yuv, own->rgb, own->conversion);
    if (own->matrix.empty()) {
        letterbox(own, to);
        return;
    }
    cv::warpAffine(own->rgb, own->boxed, own->matrix, {own->op->dst.width, own->op->dst.height},
                   cv::INTER_LINEAR, cv::BORDER_CONSTANT, {114, 114, 114});
    split(own->boxed, CV_8UC1, to);
}

void close_opencv(void *opaque)
{
    delete static_cast<opencv *>(opaque);
}
} // namespace

const struct peer opencv_peer = {"opencv", open_opencv, run_opencv, close_opencv, true};
