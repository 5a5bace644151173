// The configuration as plain structs, which load.c fills from YAML. schema.c lists the keys, once,
// with their types, defaults, ranges and help; types.h has the types of values.
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
// Layout of frames on a socket or in a file; mp4 and mkv contain a camera's own packets.
enum protocol {
    PROTOCOL_AUTO,
    PROTOCOL_FRAMED,
    PROTOCOL_Y4M,
    PROTOCOL_NPY,
    PROTOCOL_RAW,
    PROTOCOL_MP4,
    PROTOCOL_MKV,
    PROTOCOL_LINES // `detections` and kernel stats; not a choice of `protocol`
};
// Product of an output: an op of kernels/, by its number; a copy of the camera's own packets; or
// lines with the results of the analysis of its pictures.
enum kernel { KERNEL_WARP = OP_WARP, KERNEL_YUV = OP_YUV, KERNEL_COPY = OP_KINDS, KERNEL_STATS };
// Conventions of a model: values for an output's keys that the file does not set beside it.
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
// Index of a frame in its batch: the next free one, or its camera's own.
enum batch_order { BATCH_ARRIVAL, BATCH_FIXED };
// Elements of a batch without a frame: cut off behind the last frame, or full of `fill`.
enum batch_tail { BATCH_CUT, BATCH_ZERO };
// Memory of a ring's slots: the host's, or the GPU's by CUDA's virtual memory or by its IPC.
enum ring_memory { RING_HOST, RING_CUDA, RING_CUDA_IPC };
enum ready_when { READY_ANY, READY_ALL };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum { CAMERA_OUTPUTS_MAX = 16 };
enum { GRID_CELLS_MAX = 1024 }; // in `grid`: width times height

#define BATCH_AUTO_MAX   32 // most elements that `count: auto` gives
#define RING_CLIENTS_MAX 64 // each may hold slots that other clients wait for

enum { TABLE_ROWS_MAX = 96 }; // most keys of the root, of a camera or of an output

// A value made from a reference ${...}, in a form that may be shown: a scalar, or the YAML of a
// list or map.
struct written {
    const struct config_row *row;
    char *text;
};

// Places of an object's values in the file, by the rows of its table, and the values made from
// references (config/object.h).
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
    int size; // length of a tile's sides in source pixels; 0: no tiles
    struct percent overlap;
    bool full; // adds the whole picture as an element
};

// Keys of an output that shows the detections of another's clients (daemon/work/crops.c).
struct crops_config {
    char *of; // the other output, of the same camera; NULL: the output shows pictures
    struct classes classes;
    struct percent margin; // added to a box on each side
    int most;              // most elements of one picture
    struct duration keep;  // how long pictures wait for their detections
};

// Pictures that an output gets (daemon/output/gate.h): all, if motion is off.
struct gate_config {
    bool motion;           // pictures with motion
    struct duration hold;  // stays open after the last motion
    struct duration every; // at least one picture per period; 0: off
};

// Detection of motion in a camera's pictures.
struct motion_config {
    int sensitivity; // percent
    struct polygons mask;
    int min_area; // source pixels
};

struct colour_config {
    enum matrix matrix;
    enum range range;
};

// Destination of the lines with the detections of a ring's clients. An output_config made from
// these keys opens the sink of the lines.
struct detections_config {
    struct sink_address sink; // SINK_NONE: no lines
    struct labels labels;
    bool open;
    int clients;
    struct split segment, keep;
    struct filemode mode;
    char *group;
    gid_t group_id; // see output_config.group_id
    bool has_group_id;
};

// A product of a camera; or a batch, a product that cameras share. Each camera in a batch has an
// output with the batch's name, a copy of the batch.
struct output_config {
    char *name;
    struct place place;
    struct places places;
    enum kernel kernel;
    enum preset preset;
    struct dimensions size;
    enum fit fit;
    bool scaleup; // a fit may enlarge
    int stride;   // fits rect and torchvision
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
    bool resized; // not a key: a yuv output sets a key of geometry; size 0x0: the natural one
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
    enum protocol protocol;    // never PROTOCOL_AUTO after config_load, except for an rtsp sink
    struct split segment;      // file with a timed path
    struct split keep;         // files with a timed path: deletes the oldest beyond it; 0: none
    struct duration before;    // copy: clips begin this long before their request; 0: no clips
    struct filemode mode;
    char *group;    // of the socket or file; NULL: the process's
    gid_t group_id; // number of `group`, after its look-up (daemon/base/access.h)
    bool has_group_id;
    struct detections_config detections;
    bool is_batch; // not a key: a batch, or a camera's share in one; the keys below are for these
    struct name_patterns cameras; // the members
    int count;                    // most elements; 0: auto
    int capacity;                 // not a key: `count`, or config_load's choice for auto; of crops,
                                  // `most`
    struct batch_wait wait;
    int per_camera; // most frames of one camera in one batch
    enum batch_order order;
    enum batch_tail tail;
};

// Codecs with different needs of memory in NVDEC.
enum stream_codec { STREAM_OTHER, STREAM_H264, STREAM_VP9 };

struct stream_memory {
    enum stream_codec codec;
    int width, height;    // of its pictures; 0: unknown
    int pixel_bits;       // of a picture in memory; 0: unknown
    int pictures;         // kept by the cpu decoder for reference and reordering
    int surfaces;         // of NVDEC's decoder, without those for held frames
    int macroblock_bytes; // kept by the cpu decoder per 16x16 pixels, beside the pictures
    int packet_bytes;     // average
};

struct tls_config {
    char *ca; // a file; NULL: the system's
    bool verify;
    struct fingerprint fingerprint; // if set, it alone decides
    bool legacy;
};

struct camera_config {
    char *name;
    struct place place;
    struct place paused; // not a key: its place in `paused` of the root; line 0: none
    // Not keys, for a camera that a cluster has assigned to this node. Its epochs begin at
    // generation x 65536 (0: a camera of the files). From *fence_ns on (CLOCK_BOOTTIME) no frame of
    // it is made; NULL: it has no fence.
    uint32_t generation;
    const _Atomic int64_t *fence_ns;
    struct places places;
    char *url; // may contain a password: show it by config_camera_url
    enum transport transport;
    struct tls_config tls; // rtsps only
    char *demuxer;         // libavformat's, for raw streams ("rawvideo"); NULL lets it probe
    struct demuxer_options options;
    struct decoder_choice decode;
    struct gpu_choice device;    // decodes and computes, while it works
    int decode_threads;          // cpu decoder; 0: auto
    int threads;                 // not a key: decode_threads, or config_load's choice for auto
    struct dimensions picture;   // largest picture expected; 0x0: auto, see `stream`
    struct stream_memory stream; // not a key: in a plan's copy, from the running camera or a probe
    double fps;
    enum decoded_pictures pictures;
    bool loop;
    enum pace pace;
    enum turning rotate; // auto rotates pictures by the stream's metadata
    enum damaged damaged;
    bool check_hashes;
    struct rois rois;
    bool stats;             // analyses pictures (daemon/scene/scene.h) without a gate too
    struct dimensions grid; // of cells; the analysis returns their means
    struct motion_config motion;
    struct node_labels on; // camera of the cluster: labels that its node must have
    struct duration connect_timeout, media_timeout, close_timeout;
    struct output_config *outputs;
    int n_outputs;
};

struct cuda_config {
    struct gpu_list devices; // cuda.device is its short form
    // For each device:
    int streams;         // 0: auto
    struct bytes band;   // 0: auto
    int decoders;        // threads that may use its NVDEC at once; 0: auto
    struct bytes memory; // most of its memory to use; 0: auto, all of it
};

struct cpu_config {
    int workers; // 0: auto, one for each processor that framed may use
    struct pin pin;
};

// The MQTT broker that cameras are published to, and the login there.
struct mqtt_config {
    char *server; // a URL, mqtt: or mqtts:, without user and password; NULL: none
    char *user, *password;
    char *ca;        // a file; NULL: the system's
    char *topic;     // NULL: framed/HOSTNAME
    char *discovery; // prefix of Home Assistant's topics; NULL: not announced there
};

// Receivers of alerts about cameras (daemon/alert).
struct notify_config {
    char *webhook; // a URL
    struct program command;
    struct mqtt_config mqtt;
    struct duration grace, calm;
};

// Action of a node on the cluster's cameras while etcd does not answer.
enum cluster_alone { ALONE_STOP, ALONE_KEEP };

// The cluster, whose cameras any of several daemons may run (daemon/cluster), and this daemon's
// part in it.
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
    struct config_files files; // sources of the configuration
    struct gone_use *gone;     // not keys: uses of keys that are gone (config/schema.h)
    int n_gone;
    struct place secret; // the first literal secret in the files; line 0: none
    bool closed;         // only checked: paths in values are not opened
    enum backend_kind backend;
    struct cuda_config cuda;
    struct cpu_config cpu;
    struct log_config log;
    struct control_address control;
    struct http_address http;
    char *http_token;      // NULL: HTTP clients need none
    char *http_read_token; // NULL: no token that only reads
    bool http_write;
    struct place control_place, http_place;
    struct notify_config notify;
    struct cluster_config cluster;
    enum ready_when ready;
    struct name_patterns paused; // of the file itself; camera_config.paused has the result
    struct camera_config *cameras;
    int n_cameras;
    struct output_config *batches;
    int n_batches;
};

// --- an output's kernel: its parameters, and the formats that can carry its results

// Returns true if the kernel runs an op on pictures: copy and stats do not.
bool output_config_has_op(const struct output_config *);
// Sets *ret to the op's parameters; if the output shows several regions, with the first one.
void output_config_op(const struct output_config *, struct op_params *ret);
// Returns true if frames of `protocol` can hold the output's results.
bool output_config_fits(const struct output_config *, enum protocol);
// Returns true if the output gets only some of its camera's pictures, by their content.
bool output_config_has_gate(const struct output_config *);
// Returns true if the camera's pictures are analysed (daemon/scene/scene.h).
bool camera_config_analyses(const struct camera_config *);

#endif
