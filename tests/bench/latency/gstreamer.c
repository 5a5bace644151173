// Reads an RTSP camera with GStreamer, as its users do, and prints each picture's number and the
// time when the appsink delivered it: lines of "NUMBER NANOSECONDS" (CLOCK_MONOTONIC).
// usage: bench-gstreamer URL h264|h265 tcp|udp tensor|decoded
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/bench/latency/picture_number.h"

// Runs in the thread that decodes and converts.
static GstFlowReturn take_sample(GstAppSink *sink, gpointer opaque)
{
    struct timespec now;
    GstVideoInfo info;
    GstVideoFrame frame;
    GstSample *sample = gst_app_sink_pull_sample(sink);
    (void)opaque;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (sample && gst_video_info_from_caps(&info, gst_sample_get_caps(sample)) &&
        gst_video_frame_map(&frame, &info, gst_sample_get_buffer(sample), GST_MAP_READ)) {
        const struct picture_view view = {
            .data = GST_VIDEO_FRAME_COMP_DATA(&frame, 0),
            .stride = (size_t)GST_VIDEO_FRAME_COMP_STRIDE(&frame, 0),
            .step = (size_t)GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, 0),
            .width = GST_VIDEO_FRAME_WIDTH(&frame),
            .height = GST_VIDEO_FRAME_HEIGHT(&frame),
        };
        printf("%d %lld\n", picture_number(&view),
               (long long)now.tv_sec * 1000000000 + now.tv_nsec);
        fflush(stdout);
        gst_video_frame_unmap(&frame);
    }
    if (sample)
        gst_sample_unref(sample);
    return GST_FLOW_OK;
}

static GstElement *make_pipeline(char **argv)
{
    const char *convert = strcmp(argv[4], "tensor") == 0
                              ? "videoconvertscale n-threads=2 add-borders=false ! "
                                "video/x-raw,format=RGB,width=640,height=640 ! "
                              : "";
    char text[1024];
    GError *error = NULL;
    snprintf(text, sizeof text,
             "rtspsrc location=%s latency=0 protocols=%s ! rtp%sdepay ! %sparse ! avdec_%s ! %s"
             "appsink name=sink sync=false max-buffers=8",
             argv[1], argv[3], argv[2], argv[2], argv[2], convert);
    GstElement *pipeline = gst_parse_launch(text, &error);
    if (error) {
        fprintf(stderr, "%s\n", error->message);
        g_error_free(error);
    }
    return pipeline;
}

int main(int argc, char **argv)
{
    const GstAppSinkCallbacks callbacks = {.new_sample = take_sample};
    gst_init(&argc, &argv);
    GstElement *pipeline = argc == 5 ? make_pipeline(argv) : NULL;
    if (!pipeline)
        return 2;
    GstElement *sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), (GstAppSinkCallbacks *)&callbacks, NULL, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus *bus = gst_element_get_bus(pipeline);
    GstMessage *last =
        gst_bus_timed_pop_filtered(bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
    if (GST_MESSAGE_TYPE(last) == GST_MESSAGE_ERROR) {
        GError *error = NULL;
        gst_message_parse_error(last, &error, NULL);
        fprintf(stderr, "%s\n", error->message);
        g_error_free(error);
    }
    gst_message_unref(last);
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
    return 1;
}
