#include <opencv2/imgproc.hpp>

#include "tests/bench/statistics/peer.h"

void opencv_statistics(const uint8_t *luma, int width, int height, bool all,
                       struct opencv_statistics *ret)
{
    static cv::Mat laplacian, histogram; // static: reuses their memory
    const cv::Mat picture(height, width, CV_8UC1, const_cast<uint8_t *>(luma));
    cv::Mat grid(STATISTICS_ROWS, STATISTICS_COLUMNS, CV_8UC1, ret->grid);
    cv::Scalar mean, deviation;
    cv::setNumThreads(1);
    cv::meanStdDev(picture, mean, deviation);
    ret->mean = mean[0];
    ret->deviation = deviation[0];
    cv::minMaxLoc(picture, &ret->min, &ret->max);
    cv::resize(picture, grid, grid.size(), 0, 0, cv::INTER_AREA);
    if (!all)
        return;
    const int channel = 0, bins = STATISTICS_BINS;
    const float levels[] = {0, 256}, *ranges[] = {levels};
    cv::calcHist(&picture, 1, &channel, cv::noArray(), histogram, 1, &bins, ranges);
    for (int i = 0; i < bins; i++)
        ret->histogram[i] = histogram.at<float>(i);
    cv::Laplacian(picture, laplacian, CV_16S);
    ret->laplacian = cv::norm(laplacian, cv::NORM_L1) / (double)picture.total();
}
