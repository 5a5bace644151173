// The configuration as plain structs: load.c fills them from YAML. The keys with their types,
// defaults, ranges and help are listed once, in schema.c; types.h has the types of values.
#ifndef FRAMED_CONFIG_CONFIG_H
#define FRAMED_CONFIG_CONFIG_H

#include <sys/types.h>

#include "config/types.h"

enum backend_kind { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA };
enum transport { TRANSPORT_TCP, TRANSPORT_UDP, TRANSPORT_MULTICAST };
enum pace { PACE_FULL, PACE_REALTIME };
enum turning { TURNING_AUTO, TURNING_IGNORE };
enum decoded_pictures { PICTURES_AUTO, PICTURES_ALL, PICTURES_REFERENCE, PICTURES_KEYFRAMES };
enum damaged { DAMAGED_FLAG, DAMAGED_DROP, DAMAGED_HOLD };
enum overflow { OVERFLOW_DROP_OLDEST, OVERFLOW_DROP_NEWEST, OVERFLOW_WAIT, OVERFLOW_AUTO };
// How frames lie on a socket or in a file; mp4 and mkv are containers of a camera's own packets.
enum protocol {
    PROTOCOL_AUTO,
    PROTOCOL_FRAMED,
    PROTOCOL_Y4M,
    PROTOCOL_NPY,
    PROTOCOL_RAW,
    PROTOCOL_MP4,
    PROTOCOL_MKV,
    PROTOCOL_LINES // of `detections` and kernel stats, no choice of `protocol`
};
// What an output makes of its camera: the ops of kernels/, by their numbers; a copy of the camera's
// own packets; or lines that say what the analysis of its pictures finds.
enum kernel { KERNEL_WARP = OP_WARP, KERNEL_YUV = OP_YUV, KERNEL_COPY = OP_KINDS, KERNEL_STATS };
// A model's conventions: what an output's keys are that the file does not set beside it.
enum preset {
    PRESET_FRAMED,
    PRESET_ULTRALYTICS,
    PRESET_YOLOX,
    PRESET_MMDET,
    PRESET_STRETCH,
    PRESET_IMAGENET_STRETCH,
    PRESET_OPENCV_BLOB,
    PRESET_ULTRALYTICS_RECT,
    PRESET_TORCHVISION,
    PRESET_DEEPSTREAM
};
// Which index of a batch a frame takes: the next free index, or that of its camera.
enum batch_order { BATCH_ARRIVAL, BATCH_FIXED };
// The elements of a batch that hold no frame: left out behind the last frame, or full of `fill`.
enum batch_tail { BATCH_CUT, BATCH_ZERO };
// Where the slots of a ring are; those on the GPU by CUDA's virtual memory or by its IPC.
enum ring_memory { RING_HOST, RING_CUDA, RING_CUDA_IPC };
enum ready_when { READY_ANY, READY_ALL };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum { CAMERA_OUTPUTS_MAX = 16 };
enum { GRID_CELLS_MAX = 1024 }; // of `grid`, across times down

#define BATCH_AUTO_MAX   32 // elements that `count: auto` gives at most
#define RING_CLIENTS_MAX 64 // each may hold slots that others wait for

enum { TABLE_ROWS_MAX = 96 }; // keys of the root, of a camera or of an output

// A value in which a reference ${...} took part, as it may be shown: a scalar, or the YAML of a
// list or map.
struct written {
    const struct config_row *row;
    char *text;
};

// Where the values of an object stand in the file, by the rows of its table, and those that
// references took part in (config/object.h).
struct places {
    struct place value[TABLE_ROWS_MAX];
    struct written *written;
    int n_written;
};

struct tensor_config {
    enum dtype dtype;
    enum layout layout;
    enum order order;
    struct fraction scale;
    struct channels mean, std;
};

struct tiles_config {
    int size; // of a tile's sides, source pixels; 0: no tiles
    struct percent overlap;
    bool full; // the whole picture is an element, too
};

// Of an output that shows what clients of another output found (daemon/transform/crops.h).
struct crops_config {
    char *of; // the other output, of the same camera; NULL: the output shows pictures
    struct classes classes;
    struct percent margin; // that a box is enlarged by on each side
    int most;              // elements of one picture
    struct duration keep;  // how long pictures wait for what is found in them
};

// Which of its camera's pictures an output gets (daemon/scene/gate.h); both off: all of them.
struct gate_config {
    bool motion;           // those in which something moves
    int change;            // those whose fingerprint differs in so many bits; 0: off
    struct duration hold;  // after the last motion
    struct duration every; // one picture at least; 0: none
};

// What counts as motion in a camera's pictures.
struct motion_config {
    int sensitivity; // percent
    struct polygons mask;
    int min_area; // source pixels
};

struct colour_config {
    enum matrix matrix;
    enum range range;
};

// Where lines go that say what clients of a ring found. An output_config of these keys is what the
// sinks of lines are opened with.
struct detections_config {
    struct sink_address sink; // SINK_NONE: no lines
    struct labels labels;
    bool open;
    int clients;
    struct split segment, keep;
    struct filemode mode;
    char *group;
    gid_t group_id; // as of the output's own
    bool has_group_id;
};

// A product of a camera; or a batch, a product that cameras share. A camera that is a member of a
// batch has an output with the batch's name, a copy of the batch.
struct output_config {
    char *name;
    struct place place;
    struct places places;
    enum kernel kernel;
    enum preset preset;
    struct dimensions size;
    enum fit fit;
    bool scaleup; // whether a fit may enlarge
    int stride;   // of the fits rect and torchvision
    enum filter filter;
    enum edge edge;
    struct affine affine;
    double rotate; // degrees, clockwise
    enum flip flip;
    struct crop crop;
    struct roi_choice roi;
    struct tiles_config tiles;
    struct crops_config crops;
    struct levels fill;
    struct lut_file lut;
    enum lut_interpolation interpolation; // of the LUT
    struct tensor_config tensor;
    enum pixel_format format;
    bool resized; // not a key: a yuv output that sets a key of geometry; size 0x0: the natural one
    struct colour_config colour;
    double fps; // most frames per second; 0: all
    struct gate_config gate;
    enum overflow overflow;  // never OVERFLOW_AUTO after config_load
    bool overflow_auto;      // the file says auto, and config_load chose
    struct duration max_age; // 0: any age
    int slots;
    struct sink_address sink;
    bool open;                 // other machines may reach a tcp sink
    int clients;               // most clients of a socket or ring at once
    enum ring_memory memory;   // of a ring's slots
    struct shared_name shared; // of a ring's memory on the host
    enum protocol protocol;    // never PROTOCOL_AUTO after config_load, but of an rtsp sink
    struct split segment;      // of a file whose path is timed
    struct split keep;      // likewise: what is beyond it is deleted, the oldest first; 0: nothing
    struct duration before; // of a copy: clips on request begin so long before it; 0: no clips
    struct filemode mode;
    char *group;    // of the socket or file; NULL: that of the process
    gid_t group_id; // of `group`, once it was looked up (daemon/base/groups.h)
    bool has_group_id;
    struct detections_config detections;
    bool is_batch; // not a key: a batch, or a camera's share in one; the keys below hold for these
    struct name_patterns cameras; // the members
    int count;                    // most elements; 0: auto
    int capacity;                 // not a key: `count`, or what config_load chose for auto; of
                                  // crops `most`
    struct batch_wait wait;
    int per_camera; // most frames of one camera in one batch
    enum batch_order order;
    enum batch_tail tail;
};

// The codecs that NVDEC needs different amounts of memory for.
enum stream_codec { STREAM_OTHER, STREAM_H264, STREAM_VP9 };

struct stream_memory {
    enum stream_codec codec;
    int width, height;    // of its pictures; 0: not known
    int pixel_bits;       // of a picture in memory; 0: not known
    int pictures;         // that the cpu decoder keeps for reference and reordering
    int surfaces;         // of NVDEC's decoder, without those for frames that are held
    int macroblock_bytes; // that the cpu decoder keeps per 16x16 pixels, beside the pictures
    int packet_bytes;     // on average
};

struct tls_config {
    char *ca; // a file; NULL: the system's
    bool verify;
    struct fingerprint fingerprint; // if it is set, it alone decides
    bool legacy;
};

struct camera_config {
    char *name;
    struct place place;
    struct place paused; // not a key: where `paused` of the root names it; line 0: nowhere
    // Not keys, of a camera that a cluster has given to this box. Its epochs begin at generation x
    // 65536 (0: a camera of the files), and no frame of it is made from *fence_ns on
    // (CLOCK_BOOTTIME); NULL: it has no fence.
    uint32_t generation;
    const _Atomic int64_t *fence_ns;
    struct places places;
    char *url; // may contain a password: show it by config_camera_url
    enum transport transport;
    struct tls_config tls; // of rtsps
    char *demuxer;         // of libavformat, for raw streams ("rawvideo"); NULL lets it probe
    struct demuxer_options options;
    struct decoder_choice decode;
    struct gpu_choice device;    // that decodes and computes, while it works
    int decode_threads;          // of the cpu decoder; 0: auto
    int threads;                 // not a key: decode_threads, or what config_load chose for auto
    struct dimensions picture;   // largest picture expected; 0x0: auto, as `stream` says
    struct stream_memory stream; // not a key: of a plan's copy, from the running camera or a probe
    double fps;
    enum decoded_pictures pictures; // that are decoded
    bool loop;
    enum pace pace;
    enum turning rotate; // whether pictures are rotated as the stream says
    enum damaged damaged;
    bool check_hashes;
    struct rois rois;
    bool stats; // whether pictures are analysed (daemon/scene/scene.h) without a gate too
    struct dimensions grid; // cells whose means the analysis gives
    struct motion_config motion;
    struct node_labels on; // of a camera of the cluster: that its node must have
    struct duration connect_timeout, media_timeout, close_timeout;
    struct output_config *outputs;
    int n_outputs;
};

struct cuda_config {
    struct gpu_list devices; // cuda.device is its short form
    // Of each device:
    int streams;         // 0: auto
    struct bytes band;   // 0: auto
    int decoders;        // threads that may use its NVDEC at once; 0: auto
    struct bytes memory; // most of its memory to use; 0: auto, all of it
};

struct cpu_config {
    int workers; // 0: auto, one for each processor that framed may use
    struct pin pin;
};

// Where the MQTT broker is that is told of cameras, and who tells it.
struct mqtt_config {
    char *server; // a URL, mqtt: or mqtts:, without user and password; NULL: none
    char *user, *password;
    char *ca;        // a file; NULL: the system's
    char *topic;     // NULL: framed/HOSTNAME
    char *discovery; // prefix of Home Assistant's topics; NULL: not announced there
};

// Who is told of cameras in trouble (daemon/alert).
struct notify_config {
    char *webhook; // a URL
    struct program command;
    struct mqtt_config mqtt;
    struct duration grace, calm;
};

// What a node does with the cameras of the cluster while etcd does not answer.
enum cluster_alone { ALONE_STOP, ALONE_KEEP };

// Where cameras are that any of several daemons may run (daemon/cluster), and how this one takes
// part.
struct cluster_config {
    struct endpoints etcd; // n 0: no cluster
    char *site, *node;     // node NULL: the host's name
    struct duration lease;
    int room; // in cameras; 0: auto
    struct node_labels labels;
    enum cluster_alone alone;
    char *user, *password;
    char *ca;                    // a file; NULL: the system's
    char *certificate, *keyfile; // files; NULL: none
};

struct log_config {
    enum log_level level;
};

struct config {
    struct places places;
    struct config_files files; // that it was read from
    struct gone_use *gone;     // not keys: where it has keys that are gone (config/gone.h)
    int n_gone;
    struct place secret; // the first literal secret in the files; line 0: none
    bool closed;         // checked only: no path that a value names is looked at
    enum backend_kind backend;
    struct cuda_config cuda;
    struct cpu_config cpu;
    struct log_config log;
    struct control_address control;
    struct http_address http;
    char *http_token;      // NULL: HTTP clients need none
    char *http_read_token; // NULL: there is no token that reads only
    bool http_write;
    struct place control_place, http_place;
    struct notify_config notify;
    struct cluster_config cluster;
    enum ready_when ready;
    struct name_patterns paused; // those in the file itself; camera_config.paused tells all
    struct camera_config *cameras;
    int n_cameras;
    struct output_config *batches;
    int n_batches;
};

#endif
