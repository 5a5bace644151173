#include "config/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"
#include "kernels/backend.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct config_choice backend_choices[] = {
    {"auto", BACKEND_AUTO}, {"cpu", BACKEND_CPU}, {"cuda", BACKEND_CUDA}, {0}};
static const struct config_choice transport_choices[] = {
    {"tcp", TRANSPORT_TCP}, {"udp", TRANSPORT_UDP}, {"multicast", TRANSPORT_MULTICAST}, {0}};
static const struct config_choice pace_choices[] = {
    {"full", PACE_FULL}, {"realtime", PACE_REALTIME}, {0}};
static const struct config_choice turning_choices[] = {
    {"auto", TURNING_AUTO}, {"ignore", TURNING_IGNORE}, {0}};
static const struct config_choice pictures_choices[] = {{"auto", PICTURES_AUTO},
                                                        {"all", PICTURES_ALL},
                                                        {"reference", PICTURES_REFERENCE},
                                                        {"keyframes", PICTURES_KEYFRAMES},
                                                        {0}};
static const struct config_choice damaged_choices[] = {
    {"flag", DAMAGED_FLAG}, {"drop", DAMAGED_DROP}, {"hold", DAMAGED_HOLD}, {0}};
static const struct config_choice overflow_choices[] = {{"auto", OVERFLOW_AUTO},
                                                        {"drop_oldest", OVERFLOW_DROP_OLDEST},
                                                        {"drop_newest", OVERFLOW_DROP_NEWEST},
                                                        {"wait", OVERFLOW_WAIT},
                                                        {0}};
static const struct config_choice protocol_choices[] = {
    {"auto", PROTOCOL_AUTO}, {"framed", PROTOCOL_FRAMED},
    {"y4m", PROTOCOL_Y4M},   {"npy", PROTOCOL_NPY},
    {"raw", PROTOCOL_RAW},   {"mp4", PROTOCOL_MP4},
    {"mkv", PROTOCOL_MKV},   {0}};
static const struct config_choice memory_choices[] = {
    {"host", RING_HOST}, {"cuda", RING_CUDA}, {"cuda-ipc", RING_CUDA_IPC}, {0}};
static const struct config_choice ready_choices[] = {{"any", READY_ANY}, {"all", READY_ALL}, {0}};
static const struct config_choice log_level_choices[] = {{"error", LOG_LEVEL_ERROR},
                                                         {"warning", LOG_LEVEL_WARNING},
                                                         {"info", LOG_LEVEL_INFO},
                                                         {"debug", LOG_LEVEL_DEBUG},
                                                         {0}};
static const struct config_choice alone_choices[] = {
    {"stop", ALONE_STOP}, {"keep", ALONE_KEEP}, {0}};
static const struct config_choice kernel_choices[] = {{"warp", KERNEL_WARP},
                                                      {"yuv", KERNEL_YUV},
                                                      {"copy", KERNEL_COPY},
                                                      {"stats", KERNEL_STATS},
                                                      {0}};
static const struct config_choice preset_choices[] = {{"framed", PRESET_FRAMED},
                                                      {"ultralytics", PRESET_ULTRALYTICS},
                                                      {"yolox", PRESET_YOLOX},
                                                      {"mmdet", PRESET_MMDET},
                                                      {"stretch", PRESET_STRETCH},
                                                      {"imagenet-stretch", PRESET_IMAGENET_STRETCH},
                                                      {"opencv-blob", PRESET_OPENCV_BLOB},
                                                      {"ultralytics-rect", PRESET_ULTRALYTICS_RECT},
                                                      {"torchvision", PRESET_TORCHVISION},
                                                      {"deepstream", PRESET_DEEPSTREAM},
                                                      {0}};
static const struct config_choice fit_choices[] = {
    {"letterbox", FIT_LETTERBOX},
    {"stretch", FIT_STRETCH},
    {"crop", FIT_CROP},
    {"none", FIT_NONE},
    {"ultralytics", FIT_ULTRALYTICS},
    {"yolox", FIT_YOLOX},
    {"mmdet", FIT_MMDET},
    {"rect", FIT_RECT},
    {"torchvision", FIT_TORCHVISION},
    {"deepstream", FIT_DEEPSTREAM},
    {"deepstream-symmetric", FIT_DEEPSTREAM_SYMMETRIC},
    {"opencv-crop", FIT_OPENCV_CROP},
    {0}};
static const struct config_choice filter_choices[] = {{"bilinear", FILTER_BILINEAR},
                                                      {"area", FILTER_AREA},
                                                      {"triangle", FILTER_TRIANGLE},
                                                      {"nearest", FILTER_NEAREST},
                                                      {0}};
static const struct config_choice edge_choices[] = {
    {"blend", EDGE_BLEND}, {"repeat", EDGE_REPEAT}, {0}};
static const struct config_choice interpolation_choices[] = {
    {"trilinear", LUT_TRILINEAR}, {"tetrahedral", LUT_TETRAHEDRAL}, {0}};
static const struct config_choice flip_choices[] = {{"none", FLIP_NONE},
                                                    {"horizontal", FLIP_HORIZONTAL},
                                                    {"vertical", FLIP_VERTICAL},
                                                    {"both", FLIP_BOTH},
                                                    {0}};
static const struct config_choice dtype_choices[] = {
    {"u8", DTYPE_U8}, {"s8", DTYPE_S8}, {"f16", DTYPE_F16}, {"f32", DTYPE_F32}, {0}};
static const struct config_choice layout_choices[] = {
    {"nchw", LAYOUT_NCHW}, {"nhwc", LAYOUT_NHWC}, {0}};
static const struct config_choice order_choices[] = {
    {"rgb", ORDER_RGB}, {"bgr", ORDER_BGR}, {"gray", ORDER_GRAY}, {0}};
static const struct config_choice format_choices[] = {{"nv12", PIXEL_NV12},
                                                      {"yuv420p", PIXEL_YUV420P},
                                                      {"yuv444p", PIXEL_YUV444P},
                                                      {"yuv24", PIXEL_YUV24},
                                                      {0}};
static const struct config_choice batch_order_choices[] = {
    {"arrival", BATCH_ARRIVAL}, {"fixed", BATCH_FIXED}, {0}};
static const struct config_choice batch_tail_choices[] = {
    {"cut", BATCH_CUT}, {"zero", BATCH_ZERO}, {0}};
static const struct config_choice matrix_choices[] = {
    {"auto", MATRIX_UNSPECIFIED}, {"bt601", MATRIX_BT601},           {"bt709", MATRIX_BT709},
    {"bt2020", MATRIX_BT2020},    {"bt601-8bit", MATRIX_BT601_8BIT}, {0}};
static const struct config_choice range_choices[] = {
    {"auto", RANGE_UNSPECIFIED}, {"limited", RANGE_LIMITED}, {"full", RANGE_FULL}, {0}};

// clang-format off
#define CHOICES_OF(member) _Generic((member), \
    enum backend_kind: backend_choices, enum transport: transport_choices, \
    enum pace: pace_choices, enum turning: turning_choices, enum decoded_pictures: pictures_choices, enum damaged: damaged_choices, enum overflow: overflow_choices, \
    enum protocol: protocol_choices, enum ring_memory: memory_choices, \
    enum log_level: log_level_choices, enum cluster_alone: alone_choices, enum ready_when: ready_choices, enum kernel: kernel_choices, \
    enum preset: preset_choices, enum fit: fit_choices, enum filter: filter_choices, enum edge: edge_choices, enum lut_interpolation: interpolation_choices, enum flip: flip_choices, enum dtype: dtype_choices, \
    enum layout: layout_choices, enum order: order_choices, enum pixel_format: format_choices, \
    enum batch_order: batch_order_choices, enum batch_tail: batch_tail_choices, \
    enum matrix: matrix_choices, enum range: range_choices, default: NULL)

#define MEMBER(type, member) (((type *)0)->member)
#define FIELD(struct_type, member, default_text, help_text, ...) \
    {.key = #member, .type = VALUE_TYPE_OF(MEMBER(struct_type, member)), \
     .offset = offsetof(struct_type, member), .choices = CHOICES_OF(MEMBER(struct_type, member)), \
     .text = default_text, .help = help_text, ##__VA_ARGS__}
#define SECTION(name, help_text, ...) \
    {.key = name, .type = VALUE_SECTION, .help = help_text, ##__VA_ARGS__}
#define ITEMS(struct_type, member, table, help_text, ...) \
    {.key = #member, .type = VALUE_ITEMS, .offset = offsetof(struct_type, member), \
     .count_offset = offsetof(struct_type, n_##member), .items = &table, \
     .help = help_text, ##__VA_ARGS__}
#define BATCH .batch = true
#define ALONE .alone = true
#define RANGE(low, high) .min = low, .max = high
#define WARP .kernels = 1 << KERNEL_WARP
#define YUV .kernels = 1 << KERNEL_YUV
#define COPY .kernels = 1 << KERNEL_COPY
#define PICTURES .kernels = 1 << KERNEL_WARP | 1 << KERNEL_YUV
#define FRAMES .kernels = 1 << KERNEL_WARP | 1 << KERNEL_YUV | 1 << KERNEL_COPY
#define NOT_COPY .kernels = 1 << KERNEL_WARP | 1 << KERNEL_YUV | 1 << KERNEL_STATS

static const struct config_row camera_rows[] = {
    FIELD(struct camera_config, url, NULL,
          "where the video comes from: rtsp://, rtsps:// (TLS; without a port 322, then 7441), tcp://, unix:, pipe: or a file",
          .example = "rtsp://192.0.2.10/stream1", .required = true, .own = true),
    FIELD(struct camera_config, transport, "tcp", "how RTSP carries media; where no packet comes over udp or multicast, framed goes over to tcp; rtsps is always tcp"),
    SECTION("tls", "how to know a camera of rtsps://"),
    FIELD(struct camera_config, tls.ca, NULL, "file with the certificates (PEM) that vouch for the camera; without it those of the system",
          .example = "/etc/framed/cameras.pem"),
    FIELD(struct camera_config, tls.verify, "true",
          "false: take any certificate; whoever is between camera and framed can then read along, the password too"),
    FIELD(struct camera_config, tls.fingerprint, NULL, "SHA-256 of the camera's certificate: it alone decides, whatever name, date and issuer the certificate has; recommended, since a camera's certificate is seldom right",
          .example = "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""),
    FIELD(struct camera_config, tls.legacy, "false",
          "true: accept TLS 1.0 and 1.1, RSA key exchange and short keys too, as old cameras need"),
    FIELD(struct camera_config, demuxer, NULL,
          "libavformat's name of the container format; only raw streams need it", .example = "rawvideo"),
    FIELD(struct camera_config, options, NULL, "options of libavformat's demuxer; an unknown option is an error",
          .example = "{pixel_format: bgra, video_size: 1920x1080}", .secret = true),
    FIELD(struct camera_config, decode, "auto",
          "auto: NVDEC if the GPU can decode this stream, else a decoder that `framed verify --decoders` found equal to the cpu's and faster on this box, else the cpu; another name: that hardware decoder of libavcodec, on the device behind the colon, as in vaapi:/dev/dri/renderD129, or on the first; where it cannot be opened or fails, the cpu decodes until the next connection"),
    FIELD(struct camera_config, device, "auto",
          "the GPU that decodes this camera's pictures and runs its kernels, by its number or UUID; while that GPU has failed or has no room, the others, then the cpu, take over; auto: the GPU with most room when the camera starts",
          RANGE(0, 63)),
    FIELD(struct camera_config, decode_threads, "auto", "threads of the cpu decoder; each takes the memory of about one picture; for a live input the threads share each picture, which adds no delay and helps if pictures are coded in several slices, or in rows that can be decoded side by side (H.265's wavefronts), but of H.264 it is one thread, as libavcodec tells damage only then; for a file each thread decodes a picture of its own, which adds one frame of delay for each thread after the first; auto: for a network input its share of the processors, at most 4; otherwise 1", RANGE(0, 64),
          .zero = "auto"),
    FIELD(struct camera_config, picture, "auto",
          "largest picture expected, for which memory is planned; auto: the size of the running camera, 1920x1080 until its first picture, while the decoder of a file has no plan; larger pictures are accepted while this box, or the control group, has memory beside the plan of all cameras; else they are lost as `config`, and the log says so once",
          RANGE(1, IMAGE_SIDE_MAX), .zero = "auto"),
    FIELD(struct camera_config, fps, "0",
          "most frames per second that the outputs get; 0: all; in `defaults`, fps sets this key, not the fps of outputs",
          RANGE(0, 1000), .unit = "frames/s"),
    FIELD(struct camera_config, pictures, "auto",
          "pictures that are decoded; the others are skipped, which is no loss; all; reference: those that others are made from; keyframes: those that are made from no other; auto: keyframes where they come at least as often as fps of the camera and its outputs wants pictures, else all"),
    FIELD(struct camera_config, loop, "false", "start a file again when it ends"),
    FIELD(struct camera_config, pace, "full", "full: read a file as fast as possible; realtime: at the pace of its timestamps"),
    FIELD(struct camera_config, rotate, "auto",
          "auto: turn and mirror pictures as the stream asks (a phone's clip) before warp outputs, and yuv outputs with a size or another key of geometry, do anything else; other yuv outputs keep pictures as coded; in `defaults`, a number sets rotate of outputs"),
    FIELD(struct camera_config, damaged, "flag",
          "flag: deliver damaged pictures with a mark; drop: leave out each damaged picture; hold: deliver no picture from a damaged one to the next clean keyframe"),
    FIELD(struct camera_config, check_hashes, "false",
          "true: compare each picture of H.265 with the hash that its stream carries, and flag it as damaged where they differ; takes 1 to 5 ms of CPU time for a picture of 1080p; pictures that hardware decodes are not compared"),
    FIELD(struct camera_config, connect_timeout, "10s", "longest time to open and probe the input",
          RANGE(0.1, 3600)),
    FIELD(struct camera_config, media_timeout, "auto", "time without media after which the input counts as lost; auto: for RTSP cameras, ten of the camera's own intervals between pictures, 1 s at least; 5 s for other inputs",
          RANGE(0.1, 3600), .zero = "auto"),
    FIELD(struct camera_config, close_timeout, "1s", "longest time to close the input", RANGE(0.1, 60)),
    FIELD(struct camera_config, rois, NULL,
          "regions of the picture by name, in pixels as coded, which outputs show by `roi`", RANGE(0, IMAGE_SIDE_MAX),
          .example = "{door: [0, 0, 640, 480], lane: [640, 200, 1280, 880]}"),
    FIELD(struct camera_config, stats, "false",
          "true: analyse the light, motion and fingerprint of each picture, and raise alarms; outputs with a gate and of kernel stats need the same analysis, and do not need this key"),
    FIELD(struct camera_config, grid, "32x18", "cells of the picture whose mean light the analysis gives, across and down; 1024 at most", RANGE(1, 64)),
    SECTION("motion", "what the analysis takes for motion; needs stats, or an output with a gate or of kernel stats"),
    FIELD(struct camera_config, motion.sensitivity, "50", "how small a change of light counts; 100: the smallest", RANGE(1, 100), .unit = "%"),
    FIELD(struct camera_config, motion.mask, NULL,
          "parts of the picture where nothing counts as motion, each a polygon of points in pixels as coded", .example = "[\"0,0 640,0 640,120 0,120\"]"),
    FIELD(struct camera_config, motion.min_area, "0", "least area that has to move, in pixels of the picture; 1/3600 of the picture in any case", RANGE(0, 1 << 28)),
    FIELD(struct camera_config, on, NULL, "labels that a node of the cluster must have to run this camera; only for cameras that `framed cluster` places",
          .example = "{vlan: a}"),
    ITEMS(struct camera_config, outputs, output_table, "what to make of the camera's frames; each output has a name; required unless the camera is in a batch", .own = true),
};

static const struct config_row output_rows[] = {
    FIELD(struct output_config, kernel, "warp",
          "warp: make a tensor by geometry and normalisation; yuv: convert to a YUV format, of the source's geometry or another; copy: write the camera's own packets, without decoding them, to a file or an RTSP server; stats: write a line of JSON for each picture, which says what its analysis finds: light, motion, fingerprint, alarms"),
    FIELD(struct output_config, preset, NULL,
          "a model's conventions by name: sets fit, scaleup, stride, filter, edge, fill and tensor (torchvision: size too) where the output, or the defaults that name the preset, set nothing beside it; framed.yaml(5) has the table of presets and their models",
          .example = "ultralytics", WARP),
    FIELD(struct output_config, size, "640x640", "width and height of the tensor, or of the picture, in pixels; at most, with fit rect and torchvision; a yuv output without it has the size of its crop, turned, and takes size and the keys down to fill from its own map alone, never from `defaults`",
          RANGE(1, IMAGE_SIDE_MAX), PICTURES),
    FIELD(struct output_config, fit, "letterbox", "how the source fits into the tensor; letterbox: whole, in the middle; rect: the same in a tensor cut down to multiples of `stride`; crop: covers it; those with a framework's name: in whole pixels, as it rounds them; framed.yaml(5) has the formulas", PICTURES),
    FIELD(struct output_config, scaleup, "true", "false: pictures smaller than the tensor keep their size (fit letterbox, ultralytics, rect, yolox and mmdet)", PICTURES),
    FIELD(struct output_config, stride, "32", "of fit rect and torchvision: the model's largest stride, of which the tensor's sides are multiples", RANGE(1, 1024), PICTURES),
    FIELD(struct output_config, filter, "bilinear",
          "what of the source an output pixel is made of; bilinear: the 2x2 pixels at its centre, also where it reduces more; area: the mean of all that it covers; triangle: all pixels nearer to its centre than it is wide, weighed by distance, as Pillow's and torchvision's antialias do; nearest: the pixel nearest to its centre; area and triangle want a rotation by 0, 90, 180 or 270 degrees", PICTURES),
    FIELD(struct output_config, affine, NULL,
          "2x3 matrix A from source to output, row by row, with integers at pixel centres: a corner p goes to A * (p - 1/2) + 1/2; replaces fit, rotate and flip; its inverse must put every output pixel within 32764 pixels of the source's first pixel",
          RANGE(-1e6, 1e6), .example = "[0.5, 0, 0, 0, 0.5, 0]", PICTURES),
    FIELD(struct output_config, rotate, "0", "rotate clockwise, before the fit", RANGE(-360, 360),
          .unit = "degrees", PICTURES),
    FIELD(struct output_config, flip, "none", "mirror the picture, after the rotation", PICTURES),
    FIELD(struct output_config, crop, NULL, "the part of the source to use, in pixels as coded; without it the whole picture",
          RANGE(0, IMAGE_SIDE_MAX), .example = "[0, 0, 1280, 720]", PICTURES),
    FIELD(struct output_config, roi, NULL,
          "in place of `crop`: the region of the camera with this name; all (of a batch): each region of the camera is an element",
          .example = "door", PICTURES),
    FIELD(struct output_config, edge, "blend", "what pixels at the picture's edge are made of where it is enlarged; blend: of picture and fill; repeat: of the picture's last pixels again, as frameworks make them", PICTURES),
    SECTION("crops", "show what clients of another output find: each result that they send back makes a batch with an element for each box, cut out of the camera's own picture; not with crop, roi, affine or fps", .own = true, WARP, ALONE),
    FIELD(struct output_config, crops.of, "none", "the other output: one of the camera's with a ring, or a batch with a ring that has the camera",
          .zero = "none", .example = "detector", .own = true, WARP, ALONE),
    FIELD(struct output_config, crops.classes, "all", "objects that are wanted, by the numbers of their classes, or by detections.labels of the other output", RANGE(0, 65535), .zero = "all", .own = true, WARP, ALONE),
    FIELD(struct output_config, crops.margin, "0%", "what a box is enlarged by on each side, of its width or height", RANGE(0, 100), .unit = "%", .own = true, WARP, ALONE),
    FIELD(struct output_config, crops.most, "8", "most elements of one batch; of more boxes those with the best scores are taken", RANGE(1, CROPS_MAX), .own = true, WARP, ALONE),
    FIELD(struct output_config, crops.keep, "200ms", "how long pictures are kept for results; a result that comes later is lost; a picture of 1920x1080 takes 3.1 MB", RANGE(0.001, 10), .own = true, WARP, ALONE),
    FIELD(struct output_config, fill, "114", "level of pixels outside the source, or one level per channel (of a yuv output R, G and B); mean: elements of exactly 0 (warp)",
          RANGE(0, 255), PICTURES),
    FIELD(struct output_config, lut, NULL,
          "colour look-up table: a .cube file (1D, 3D of 2 to 65 points along each axis, or both) that R, G and B go through, ahead of fill, tensor and the conversion to YUV; read again at a reload",
          .example = "/etc/framed/night.cube", PICTURES),
    FIELD(struct output_config, interpolation, "trilinear", "how `lut` goes from node to node", PICTURES),
    SECTION("tensor", "the elements of a warp output: (level * scale - mean) / std", WARP),
    FIELD(struct output_config, tensor.dtype, "u8", "element type", WARP),
    FIELD(struct output_config, tensor.layout, "nchw", "nchw: one plane per channel; nhwc: channels interleaved",
          WARP),
    FIELD(struct output_config, tensor.order, "rgb", "channels and their order", WARP),
    FIELD(struct output_config, tensor.scale, "1", "multiplies the level, which is 0 to 255", RANGE(0.0001, 10000),
          WARP),
    FIELD(struct output_config, tensor.mean, "0", "subtracted after scale; one number, or one per channel",
          RANGE(-1e6, 1e6), WARP),
    FIELD(struct output_config, tensor.std, "1", "divides last; one number, or one per channel",
          RANGE(0.0001, 10000), WARP),
    FIELD(struct output_config, format, "yuv420p", "pixel format of a yuv output", YUV),
    SECTION("colour", "warp: how to read the source; yuv: what to produce; auto: as the stream says", PICTURES),
    FIELD(struct output_config, colour.matrix, "auto",
          "YUV matrix of the source (warp) or of the result (yuv); bt601-8bit (only for yuv): the "
          "well-known form in 8-bit integers", PICTURES),
    FIELD(struct output_config, colour.range, "auto",
          "of the source (warp) or of the result (yuv); limited: levels 16 to 235; full: 0 to 255", PICTURES),
    FIELD(struct output_config, fps, "0", "most frames per second of this output; 0: all",
          RANGE(0, 1000), .unit = "frames/s", NOT_COPY),
    SECTION("gate", "leave out pictures that show nothing new; the output gets those with motion, and one now and then; `gate: motion` is short for {motion: true}; pictures that are left out count as still",
            .word = "motion", NOT_COPY),
    FIELD(struct output_config, gate.motion, "false", "true: pictures in which something moves, as `motion` of the camera says", NOT_COPY),
    FIELD(struct output_config, gate.hold, "5s", "with gate.motion: how long after the last motion pictures are still delivered", RANGE(0, 3600), NOT_COPY),
    FIELD(struct output_config, gate.every, "10s", "a picture is delivered at least so often; 0: only by motion", RANGE(0, 86400), NOT_COPY),
    FIELD(struct output_config, overflow, "auto",
          "what to do if no slot is free; wait: the camera waits for room, and for the first client; auto: wait if the camera is a file with pace: full (with loop too), else drop_oldest (network, sockets, pipes, fifos, devices, pace: realtime)"),
    FIELD(struct output_config, max_age, "0",
          "oldest frame to deliver; if set, framed lets the kernel hold about one frame per client, and a tcp client's receive buffer comes on top; 0: any age; also the longest time that a ring's client may keep a frame, where 0 means 1s",
          RANGE(0, 3600), PICTURES),
    FIELD(struct output_config, slots, "6", "finished frames that framed keeps for clients", RANGE(3, 256), PICTURES),
    FIELD(struct output_config, sink, NULL, "where frames go; tcp: HOST is an IP address or localhost, by default loopback; ring: memory shared with programs on this machine; rtsp: a server that takes a kernel copy's packets",
          .example = "unix:/run/framed/gate-detector.sock", .required = true, .own = true),
    FIELD(struct output_config, open, "false",
          "allow a tcp sink on other addresses than loopback: everybody who can reach the port can read the frames, without a password", NOT_COPY),
    FIELD(struct output_config, clients, "64", "most clients of a socket or ring at once, of a ring at most 64; further clients are refused",
          RANGE(1, 1024), NOT_COPY),
    FIELD(struct output_config, memory, "host", "where a ring's slots are; cuda: on the GPU, so frames are not downloaded; cuda-ipc: the same for programs that open them by cudaIpcOpenMemHandle, as Triton does: they can also write there", PICTURES),
    FIELD(struct output_config, shared, NULL,
          "name of a ring's memory on the host, with the ring's mode and group, for programs that open such memory to read and write (shm_open), as Triton does; whoever may open it can change frames before others read them, and end other clients by cutting it short; without it no client can write",
          .example = "/framed-detector", .own = true, PICTURES),
    FIELD(struct output_config, protocol, "auto",
          "auto: framed on sockets; for a file, by its ending (.framed .y4m .npy .raw .bin; of a copy .mp4 .mkv)", FRAMES),
    FIELD(struct output_config, segment, "0",
          "begin a new file at each multiple of this time (10m: at :00, :10 and so on), or before a file exceeds this size; the path must contain a time: file:/data/%Y%m%d-%H%M%S.y4m; 0: never",
          RANGE(1, 86400)),
    FIELD(struct output_config, keep, "0",
          "delete the oldest finished files of this output where they are older than this time, or where all of its files together exceed this size; the path must contain a time; files whose names the path does not make are never touched; 0: keep all",
          RANGE(1, 3650.0 * 86400)),
    FIELD(struct output_config, before, "0",
          "0: write always; else write only on request (framed record CAMERA 30s), and begin at the first keyframe of this time before the request; the packets wait in memory",
          RANGE(0, 600), COPY),
    FIELD(struct output_config, mode, "0660", "permissions of the socket or file", RANGE(0, 0777)),
    FIELD(struct output_config, group, NULL, "group of the socket or file", .example = "video"),
    SECTION("detections", "lines of JSON, one for each result that a client of this ring sends back: the objects that it found, in pixels of the camera's picture", PICTURES),
    FIELD(struct output_config, detections.sink, NULL, "where the lines go: a socket that any number of programs read, or a file",
          .example = "unix:/run/framed/gate-objects.sock", .own = true, PICTURES),
    FIELD(struct output_config, detections.labels, NULL, "names of the detector's classes, for `label` of the lines", .example = "[person, bicycle, car]", PICTURES),
    FIELD(struct output_config, detections.open, "false", "allow a tcp sink on other addresses than loopback, as `open` of the output does", PICTURES),
    FIELD(struct output_config, detections.clients, "64", "most readers of the socket at once", RANGE(1, 1024), PICTURES),
    FIELD(struct output_config, detections.segment, "0", "when to begin a new file, as `segment` of the output", RANGE(1, 86400), PICTURES),
    FIELD(struct output_config, detections.keep, "0", "which finished files to delete, as `keep` of the output", RANGE(1, 3650.0 * 86400), PICTURES),
    FIELD(struct output_config, detections.mode, "0660", "permissions of the socket or file", RANGE(0, 0777), PICTURES),
    FIELD(struct output_config, detections.group, NULL, "group of the socket or file", .example = "video", PICTURES),
    FIELD(struct output_config, cameras, NULL,
          "the members: patterns over the names of cameras, in which * stands for any characters and ? for one; of the patterns that fit a name the last decides",
          .example = "[\"gate*\", \"yard-?\", \"!yard-9\"]", .required = true, .own = true, BATCH),
    FIELD(struct output_config, count, "auto",
          "N of the tensor, the most elements of one batch; auto: as many as there are members at the start, at most 32, and at least per_camera",
          RANGE(1, 256), .zero = "auto", BATCH),
    FIELD(struct output_config, wait, "auto",
          "longest time that a batch waits for more frames after its first; auto: so long that the next frames of the fastest camera come in, less the time that clients need for a batch, 2 to 100 ms",
          RANGE(0, 1), BATCH),
    FIELD(struct output_config, per_camera, "1", "most frames of one camera in one batch", RANGE(1, 16), BATCH),
    FIELD(struct output_config, order, "arrival",
          "arrival: each frame takes the next free index; fixed: each member keeps its index, and the index of a member without a frame is marked as empty and holds `fill`", BATCH),
    SECTION("tiles", "cut each picture into parts of one size in an even grid, each of which is an element; not with crop, roi or affine", .own = true, BATCH),
    FIELD(struct output_config, tiles.size, "none", "width and height of a tile in source pixels; also of the tensor, where `size` is not set beside it",
          RANGE(8, IMAGE_SIDE_MAX), .zero = "none", BATCH),
    FIELD(struct output_config, tiles.overlap, "20%", "least part of a tile that its neighbour shows too", RANGE(0, 50), .unit = "%", BATCH),
    FIELD(struct output_config, tiles.full, "true", "add the whole picture as the last element", BATCH),
    FIELD(struct output_config, tail, "cut",
          "cut: the batch ends behind its last frame; zero: it always has N elements, and those without a frame hold `fill`", BATCH),
};

static const struct config_row root_rows[] = {
    FIELD(struct config, backend, "auto", "what runs the kernels; auto: a GPU if one works, else the cpu"),
    SECTION("cuda", "the GPU backend"),
    FIELD(struct config, cuda.devices, "auto",
          "GPUs to use, by their numbers, from 0; each camera is on one of them; auto: all that this box has and framed can use",
          RANGE(0, 63), .zero = "auto"),
    {.key = "cuda.device", .type = VALUE_GPUS, .offset = offsetof(struct config, cuda.devices),
     .example = "1", RANGE(0, 63), .help = "the same as devices, for one GPU"},
    FIELD(struct config, cuda.streams, "auto", "CUDA streams that share the bands of a frame",
          RANGE(0, CUDA_STREAMS_MAX), .zero = "auto"),
    FIELD(struct config, cuda.band, "auto", "bytes of one band, source and result together", RANGE(0, 1 << 30),
          .zero = "auto"),
    FIELD(struct config, cuda.decoders, "auto", "threads that may use the NVDEC of each GPU at once; more threads only wait for each other",
          RANGE(0, 64), .zero = "auto"),
    FIELD(struct config, cuda.memory, "auto", "most memory to use of each GPU; auto: all that it has",
          RANGE(0, 1024.0 * (1 << 30)), .zero = "auto"),
    SECTION("cpu", "the CPU backend"),
    FIELD(struct config, cpu.workers, "auto", "threads; auto: one for each processor that framed may use",
          RANGE(0, 1024), .zero = "auto"),
    FIELD(struct config, cpu.pin, "none",
          "processors that the workers run on; auto: one for each worker, if there are enough",
          RANGE(0, PROCESSORS_MAX - 1)),
    SECTION("log", "lines on standard error"),
    FIELD(struct config, log.level, "info", "least important events to log", .live = true),
    FIELD(struct config, control, "auto",
          "socket for `framed status` and `framed reload`; auto: control.sock in the unit's runtime directory, else in /run/framed for root and in $XDG_RUNTIME_DIR/framed for other users",
          .live = true),
    FIELD(struct config, http, "off",
          "where to serve a web page, /metrics and all else that framed(1) lists; other machines need an http_token",
          .live = true),
    FIELD(struct config, http_token, NULL, "token that HTTP clients must send: Authorization: Bearer TOKEN",
          .example = "${FRAMED_HTTP_TOKEN}", .live = true, .secret = true),
    FIELD(struct config, http_read_token, NULL,
          "second token, for HTTP clients that only read: status, pictures and streams, nothing that changes or opens anything",
          .example = "${FRAMED_HTTP_READ_TOKEN}", .live = true, .secret = true),
    FIELD(struct config, http_write, "false",
          "whether HTTP clients may change what framed does: cameras, reloads, probes", .live = true),
    FIELD(struct config, ready, "any",
          "when /readyz reports ready; all: every camera has delivered a picture; any: the same, or one camera has and framed has run for 30 s",
          .live = true),
    SECTION("notify", "who is told of cameras that are down, flap or deliver damage, and of alarms, and when that is over"),
    FIELD(struct config, notify.webhook, NULL, "URL that gets each alert as JSON, by POST",
          .example = "https://${NAME}@alerts.example/framed", .live = true, .secret = true),
    FIELD(struct config, notify.command, NULL, "program that gets each alert as JSON on standard input, and in variables FRAMED_*",
          .example = "[/usr/local/bin/tell, --alert]", .live = true, .secret = true),
    SECTION("notify.mqtt", "an MQTT broker that gets alerts and states, and announces them to Home Assistant"),
    FIELD(struct config, notify.mqtt.server, NULL, "the broker, mqtt://HOST:PORT, with TLS mqtts://HOST:PORT; ports 1883 and 8883 where none is named",
          .example = "mqtt://broker.example", .live = true),
    FIELD(struct config, notify.mqtt.user, NULL, "user name at the broker", .example = "framed", .live = true, .secret = true),
    FIELD(struct config, notify.mqtt.password, NULL, "password at the broker", .example = "${MQTT_PASSWORD}", .live = true, .secret = true),
    FIELD(struct config, notify.mqtt.ca, NULL, "file with the certificates that sign the broker's, in place of the system's",
          .example = "/etc/framed/broker-ca.pem", .live = true),
    FIELD(struct config, notify.mqtt.topic, NULL, "what the topics begin with; without it framed/HOSTNAME",
          .example = "framed/yard", .live = true),
    FIELD(struct config, notify.mqtt.discovery, "homeassistant", "what the topics begin with by which Home Assistant finds the cameras; off: nothing is announced there",
          .zero = "off", .live = true),
    FIELD(struct config, notify.grace, "0", "how much longer than its media_timeout a camera may be away before somebody is told",
          RANGE(0, 3600), .live = true),
    FIELD(struct config, notify.calm, "5m", "how long all must have been well before an alert is cleared; twelve times as long where it was raised again so soon after it was cleared",
          RANGE(1, 86400), .live = true),
    SECTION("cluster", "cameras that any of several daemons may run, which share an etcd; those of this file and its drop-in files stay here"),
    FIELD(struct config, cluster.etcd, NULL, "where etcd answers, best all of its members; without it there is no cluster",
          .example = "[https://10.0.0.1:2379, https://10.0.0.2:2379, https://10.0.0.3:2379]"),
    FIELD(struct config, cluster.site, NULL, "name of the cluster; what belongs to it lies in etcd below /framed/SITE/", .example = "yard"),
    FIELD(struct config, cluster.node, NULL, "name of this daemon in the cluster; without it the host's name", .example = "box1"),
    FIELD(struct config, cluster.lease, "5s", "after this time without a word from this daemon others take its cameras over; it lets them go itself after 0.6 of it", RANGE(2, 60)),
    FIELD(struct config, cluster.room, "auto", "cameras that this daemon can run, of which the cluster uses 90 %; auto: as many of 1920x1080 at 25 pictures a second as it has measured room for; others count by their pixels and rate",
          RANGE(0, 10000), .zero = "auto"),
    FIELD(struct config, cluster.labels, NULL, "labels of this daemon, which cameras may ask for by `on`", .example = "{vlan: a}"),
    FIELD(struct config, cluster.alone, "stop", "without etcd; stop: close the cluster's cameras, so that none runs twice; keep: go on with them, so that none stops, though another daemon may run them too"),
    FIELD(struct config, cluster.user, NULL, "user name at etcd", .example = "framed", .secret = true),
    FIELD(struct config, cluster.password, NULL, "password at etcd", .example = "${ETCD_PASSWORD}", .secret = true),
    FIELD(struct config, cluster.ca, NULL, "file with the certificates that sign etcd's, in place of the system's", .example = "/etc/framed/etcd-ca.pem"),
    FIELD(struct config, cluster.certificate, NULL, "file with the certificate that this daemon shows to etcd", .example = "/etc/framed/etcd.pem"),
    FIELD(struct config, cluster.keyfile, NULL, "file with the key of that certificate", .example = "/etc/framed/etcd.key"),
    {.key = "defaults", .type = VALUE_DEFAULTS, .example = "{transport: tcp, slots: 6}", .word = "none",
     .help = "keys of cameras and outputs that hold unless a camera or output sets its own; none, in a drop-in file: those of the configuration do not hold for its cameras"},
    FIELD(struct config, paused, NULL,
          "cameras that are not opened and give no picture: names, or patterns like gate*; framed pause and resume keep theirs in the drop-in folder",
          .example = "[gate]", .live = true),
    ITEMS(struct config, cameras, camera_table, "the inputs; each camera has a name", .required = true),
    ITEMS(struct config, batches, batch_table,
          "outputs that several cameras share: each result is one tensor N x C x H x W of their frames; each batch has a name, and every member gets an output of that name"),
};
// clang-format on

const struct table root_table = {.noun = "the file",
                                 .rows = root_rows,
                                 .n = COUNT(root_rows),
                                 .size = sizeof(struct config),
                                 .places_offset = offsetof(struct config, places)};

// Names with a final zero fit into the wire header's char[24] and char[16].
const struct table camera_table = {.noun = "a camera",
                                   .rows = camera_rows,
                                   .n = COUNT(camera_rows),
                                   .size = sizeof(struct camera_config),
                                   .name_offset = offsetof(struct camera_config, name),
                                   .place_offset = offsetof(struct camera_config, place),
                                   .places_offset = offsetof(struct camera_config, places),
                                   .name_max = 23,
                                   .items_max = CAMERAS_MAX};

const struct table output_table = {.noun = "an output",
                                   .rows = output_rows,
                                   .n = COUNT(output_rows),
                                   .size = sizeof(struct output_config),
                                   .name_offset = offsetof(struct output_config, name),
                                   .place_offset = offsetof(struct output_config, place),
                                   .places_offset = offsetof(struct output_config, places),
                                   .name_max = 15,
                                   .items_max = CAMERA_OUTPUTS_MAX};

const struct table batch_table = {.noun = "a batch",
                                  .rows = output_rows,
                                  .n = COUNT(output_rows),
                                  .size = sizeof(struct output_config),
                                  .name_offset = offsetof(struct output_config, name),
                                  .place_offset = offsetof(struct output_config, place),
                                  .places_offset = offsetof(struct output_config, places),
                                  .name_max = 15,
                                  .items_max = BATCHES_MAX};

_Static_assert(COUNT(root_rows) <= TABLE_ROWS_MAX && COUNT(camera_rows) <= TABLE_ROWS_MAX &&
                   COUNT(output_rows) <= TABLE_ROWS_MAX,
               "TABLE_ROWS_MAX is too small");

bool table_is_of_outputs(const struct table *table)
{
    return table->rows == output_rows;
}

bool table_has(const struct table *table, const struct config_row *row)
{
    return table == &batch_table ? !row->alone : !row->batch;
}

const struct config_row *table_find(const struct table *table, const char *key)
{
    for (int i = 0; i < table->n; i++) {
        if (!strcmp(table->rows[i].key, key))
            return &table->rows[i];
    }
    return NULL;
}

// Returns the number of edits (insert, delete, replace, swap of neighbours) from `a` to `b`, or
// LONGEST for long words.
static int edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    int d[LONGEST + 1][LONGEST + 1];
    int n = (int)strnlen(a, LONGEST + 1), m = (int)strnlen(b, LONGEST + 1);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = d[i - 2][j - 2] + 1 < best ? d[i - 2][j - 2] + 1 : best;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *table_nearest(const struct table *table, const char *key)
{
    const char *nearest = NULL;
    int least = 4; // a word that needs more than three edits is another word
    for (int i = 0; i < table->n; i++) {
        int edits = edit_distance(table->rows[i].key, key);
        if (edits < least && edits * 2 <= (int)strlen(table->rows[i].key)) {
            least = edits;
            nearest = table->rows[i].key;
        }
    }
    return nearest;
}

bool row_in_section(const struct config_row *row, const char *prefix)
{
    size_t n = strlen(prefix);
    if (n && (strncmp(row->key, prefix, n) || row->key[n] != '.'))
        return false;
    return !strchr(row->key + (n ? n + 1 : 0), '.');
}

const char *row_word(const struct config_row *row)
{
    const char *dot = strrchr(row->key, '.');
    return dot ? dot + 1 : row->key;
}

bool row_has_value(const struct config_row *row)
{
    return row->type < VALUE_TYPES;
}

bool row_is_of(const struct config_row *row, enum kernel kernel)
{
    return !row->kernels || (row->kernels & 1u << kernel);
}

char *row_allowed(const struct config_row *row, char *to, size_t size)
{
    to[0] = 0;
    FILE *f = fmemopen(to, size, "w");
    if (!f)
        return to;
    if (row_has_value(row))
        value_print_allowed(f, row);
    else if (row->type == VALUE_ITEMS)
        fprintf(f, "1 to %d of name: {...}", row->items->items_max);
    else
        fprintf(f, row->word ? "%s, or key: value" : "key: value", row->word);
    fclose(f);
    to[size - 1] = 0;
    return to;
}

const char *row_choice(const struct config_row *row, int value)
{
    const struct config_choice *choice = row->choices;
    while (choice->name && choice->value != value)
        choice++;
    return choice->name ? choice->name : "";
}

// --- keys that are gone

// A camera, output or batch cannot exist without a required key: if that key's value is gone, the
// whole item is left out.
// clang-format off
static const struct gone_key gone_keys[] = {
    {&camera_table, "spare", NULL, "0.2.0", "delete it: a silent camera is connected to again, and no second session is opened", false},
    {&camera_table, "demuxer", NULL, "0.2.0", "delete it: framed's own client reads RTSP, or libavformat's where the codec needs it", true},
    {&camera_table, "options", NULL, "0.2.0", "delete them: framed's own client reads RTSP, and has no options", true},
    {&root_table, "tuned", NULL, "0.1.0", "delete it: nothing replaces `framed tune`", false},
    {&output_table, "gate.change", NULL, "0.2.0", "gate.motion; the fingerprint stays in lines of `kernel: stats`", false},
    {&root_table, "nats", NULL, "0.2.0", "delete it: framed has no NATS client", false},
    {&root_table, "notify.nats", NULL, "0.2.0", "notify.command can run a program that publishes, or notify.mqtt", false},
    {&output_table, "sink", "nats:*", "0.2.0", "unix:PATH, tcp:HOST:PORT or file:PATH, from which a forwarder takes the lines", false},
    {&output_table, "detections.sink", "nats:*", "0.2.0", "unix:PATH, tcp:HOST:PORT or file:PATH, from which a forwarder takes the lines", false},
};
// clang-format on

const struct gone_key *gone_find(const struct table *table, const char *key,
                                 const struct gone_key *before)
{
    const struct gone_key *end = gone_keys + sizeof gone_keys / sizeof *gone_keys;
    for (const struct gone_key *gone = before ? before + 1 : gone_keys; gone < end; gone++)
        if (gone->table->rows == table->rows && strcmp(gone->key, key) == 0)
            return gone;
    return NULL;
}

int gone_note(struct config *config, const struct gone_key *gone, struct place at, const char *path)
{
    struct gone_use *grown = reallocarray(config->gone, (size_t)config->n_gone + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    config->gone = grown;
    grown[config->n_gone] = (struct gone_use){.gone = gone, .at = at, .path = strdup(path)};
    if (!grown[config->n_gone].path)
        return -ENOMEM;
    config->n_gone++;
    return 0;
}

char *gone_text(const struct config *config, int i)
{
    const struct gone_use *use = &config->gone[i];
    const struct gone_key *gone = use->gone;
    const struct config_row *row = gone->value ? table_find(gone->table, gone->key) : NULL;
    char *text, is_off[32];
    snprintf(is_off, sizeof is_off, "the %s is off", strchr(gone->table->noun, ' ') + 1);
    int n = asprintf(&text, "%s:%d:%d: %s: %s gone%s since framed %s: %s (%s)",
                     config_files_path(&config->files, use->at), use->at.line, use->at.column,
                     use->path, gone->value ? "this value is" : "is",
                     gone->rtsp ? " for an RTSP camera" : "", gone->version,
                     row && row->required ? is_off : "ignored", gone->instead);
    return n < 0 ? NULL : text;
}

bool gone_is_first(const struct config *config, int i)
{
    int first = 0;
    while (config->gone[first].gone != config->gone[i].gone)
        first++;
    return first == i;
}

bool gone_is_used(const struct config *config, const char *key)
{
    for (int i = 0; i < config->n_gone; i++)
        if (strcmp(config->gone[i].gone->key, key) == 0)
            return true;
    return false;
}

void gone_free(struct config *config)
{
    for (int i = 0; i < config->n_gone; i++)
        free(config->gone[i].path);
    free(config->gone);
    config->gone = NULL;
    config->n_gone = 0;
}
