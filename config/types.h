// Types of the values of keys, and the description of a key in a table. A new type needs a struct
// here (if C has none for it), a name in enum value_type, a line in VALUE_TYPE_OF, and a row with
// its functions in value.c.
#ifndef FRAMED_CONFIG_TYPES_H
#define FRAMED_CONFIG_TYPES_H

#include "config/address.h"
#include "config/mistakes.h"
#include "kernels/ops.h"
#include "kernels/processors.h"

#define CLASSES_MAX 64 // of one list
#define CROPS_MAX   64 // of one picture

struct duration {
    int64_t ns;
};
struct bytes {
    int64_t n;
};
struct dimensions {
    int width, height; // pixels
};
struct levels { // one level, or one for each of three channels; or the mean, without levels
    bool mean;
    int n;
    uint8_t v[3];
};
struct channels { // one number, or one for each of three channels
    int n;
    double v[3];
};
struct affine {
    bool set;
    double m[6]; // source to output, row major 2x3
};
struct crop {
    bool set;
    struct rect rect;
};
struct roi { // a region of a camera's pictures
    char name[24];
    struct rect rect; // source pixels
};
struct rois { // see config/rois.h; owns them
    struct roi *list;
    int n;
};
#define POLYGONS_MAX       32 // of one list
#define POLYGON_POINTS_MAX 64
struct polygon { // source pixels; its last point is joined to the first
    int n;
    struct point {
        int x, y;
    } point[POLYGON_POINTS_MAX];
};
struct polygons { // see config/polygons.h; owns them
    struct polygon *list;
    int n;
};
#define ROI_ALL "all"
struct roi_choice {
    char *name;         // of a region, or ROI_ALL; NULL: none, the whole picture
    struct rois chosen; // not in the value: these regions of the output's camera; owns them
};
#define SHARED_NAME_MAX 39 // bytes of the name with its slash
struct shared_name {       // of a POSIX shared memory object
    char *name;            // "/detector"; NULL: none
};
struct percent {
    int n;
};
struct lut_file {          // a .cube file
    char *path;            // NULL: none
    const struct lut *lut; // not in the value: the file's content, after reading; owns a reference
};
struct fraction { // "1/255" or a number
    double value;
};
struct split { // when a file ends and the next begins; both 0: never
    int64_t ns, bytes;
};
struct fingerprint { // of a certificate
    bool set;
    uint8_t sha256[32];
};
struct batch_wait { // how long a batch waits for more elements
    int64_t ns;     // WAIT_AUTO: by the members' rates and the clients' pace
};
struct classes { // of objects; n 0: all
    int n;
    struct class_choice {
        char name[32]; // a label of the detector; "": the file gives the number
        int number;    // for a name, config_load sets it
    } list[CLASSES_MAX];
};
struct name_patterns { // over names of cameras, see config/name_patterns.h; owns them
    char **list;
    int n;
};
#define ENDPOINTS_MAX 9
#define ENDPOINT_SIZE 256
struct endpoints { // of etcd, see config/endpoints.h; n 0: none
    int n;
    char url[ENDPOINTS_MAX][ENDPOINT_SIZE];
};
#define NODE_LABELS_MAX 16
struct node_labels { // see config/node_labels.h
    int n;
    struct node_label {
        char name[32], value[64];
    } list[NODE_LABELS_MAX];
};
struct text_list { // see config/text_list.h; owns its text
    char *text;    // each with its final zero, one after the other; NULL: none
    size_t bytes;
};
struct labels { // of classes, from 0 on, see config/labels.h
    struct text_list list;
};
struct program { // a program and its arguments, see config/program.h
    struct text_list list;
};
struct filemode { // octal permissions of a socket or file
    int mode;
};

#define GPUS_MAX 16 // of one daemon
struct gpu_list {   // their numbers; n 0: auto, all of the machine
    int n, number[GPUS_MAX];
};
struct gpu_choice { // of a camera
    enum { GPU_AUTO, GPU_BY_NUMBER, GPU_BY_UUID } by;
    int number;
    uint8_t uuid[16];
};

enum decode { DECODE_AUTO, DECODE_CPU, DECODE_NVDEC, DECODE_HARDWARE };
enum { DECODER_NAME_MAX = 24, DECODER_DEVICE_MAX = 96 }; // bytes with the final zero
struct decoder_choice {
    enum decode by;
    // For DECODE_HARDWARE: libavutil's name of a kind of device, or the end of the names of its
    // decoders in libavcodec; and the device of that kind, "" for the first.
    char name[DECODER_NAME_MAX], device[DECODER_DEVICE_MAX];
};

struct demuxer_option {
    char *name, *value;
    struct place place; // of its name in the configuration file
};
struct demuxer_options { // "name: value" pairs in the order of the file; owns them
    struct demuxer_option *list;
    int n;
};

enum value_type {
    VALUE_BOOL,
    VALUE_INT,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_CHOICE, // any enum, with the choices of its row
    VALUE_DURATION,
    VALUE_BYTES,
    VALUE_DIMENSIONS,
    VALUE_LEVELS,
    VALUE_CHANNELS,
    VALUE_AFFINE,
    VALUE_CROP,
    VALUE_FRACTION,
    VALUE_FINGERPRINT,
    VALUE_FILEMODE,
    VALUE_SPLIT,
    VALUE_PERCENT,
    VALUE_CLASSES,
    VALUE_BATCH_WAIT,
    VALUE_NAME_PATTERNS,
    VALUE_LABELS,
    VALUE_PROGRAM,
    VALUE_PIN,
    VALUE_GPUS,
    VALUE_GPU,
    VALUE_DECODER,
    VALUE_SINK,
    VALUE_CONTROL,
    VALUE_HTTP,
    VALUE_OPTIONS,
    VALUE_ROIS,
    VALUE_POLYGONS,
    VALUE_ROI,
    VALUE_SHARED,
    VALUE_LUT,
    VALUE_ENDPOINTS,
    VALUE_NODE_LABELS,
    VALUE_TYPES,                 // their number; types below hold no value
    VALUE_SECTION = VALUE_TYPES, // no member: the rows "key.*" follow it
    VALUE_DEFAULTS,              // no member: rows of the camera and the output table
    VALUE_ITEMS,                 // a map of named objects of another table
};

// The type of a member by its C type.
// clang-format off
#define VALUE_TYPE_OF(member) _Generic((member), \
    bool: VALUE_BOOL, \
    int: VALUE_INT, \
    double: VALUE_NUMBER, \
    char *: VALUE_STRING, \
    struct duration: VALUE_DURATION, \
    struct bytes: VALUE_BYTES, \
    struct dimensions: VALUE_DIMENSIONS, \
    struct levels: VALUE_LEVELS, \
    struct channels: VALUE_CHANNELS, \
    struct affine: VALUE_AFFINE, \
    struct crop: VALUE_CROP, \
    struct fraction: VALUE_FRACTION, \
    struct fingerprint: VALUE_FINGERPRINT, \
    struct filemode: VALUE_FILEMODE, \
    struct split: VALUE_SPLIT, \
    struct percent: VALUE_PERCENT, \
    struct classes: VALUE_CLASSES, \
    struct batch_wait: VALUE_BATCH_WAIT, \
    struct name_patterns: VALUE_NAME_PATTERNS, \
    struct labels: VALUE_LABELS, \
    struct program: VALUE_PROGRAM, \
    struct pin: VALUE_PIN, \
    struct gpu_list: VALUE_GPUS, \
    struct gpu_choice: VALUE_GPU, \
    struct decoder_choice: VALUE_DECODER, \
    struct sink_address: VALUE_SINK, \
    struct control_address: VALUE_CONTROL, \
    struct http_address: VALUE_HTTP, \
    struct demuxer_options: VALUE_OPTIONS, \
    struct rois: VALUE_ROIS, \
    struct polygons: VALUE_POLYGONS, \
    struct roi_choice: VALUE_ROI, \
    struct shared_name: VALUE_SHARED, \
    struct lut_file: VALUE_LUT, \
    struct endpoints: VALUE_ENDPOINTS, \
    struct node_labels: VALUE_NODE_LABELS, \
    default: VALUE_CHOICE)
// clang-format on

enum { WAIT_AUTO = -1 };
enum { NAME_PATTERN_MAX = 31 }; // bytes of a pattern without its !
#define NAME_PATTERNS_MAX 64    // of one list
#define LABELS_MAX        2048
#define PROGRAM_MAX       32          // arguments of a command, including its name
enum { LABEL_MAX = 63 };              // bytes of a label
enum { VALUE_LIST_MAX = LABELS_MAX }; // entries of the longest list
#define OPTIONS_MAX 64                // entries of maps
#define ROIS_MAX    32

struct config_choice {
    const char *name;
    int value;
};

// A key of the configuration; the tables of rows are in config/schema.c.
struct config_row {
    const char *key; // dotted within its table ("tensor.dtype"): the member's name
    enum value_type type;
    size_t offset;       // of the member
    size_t count_offset; // VALUE_ITEMS: of the int that counts them
    const char *text;    // the default, as a user writes it; NULL: none
    const char *example; // of a key without a default
    double min, max;     // of every number in the value; seconds of a duration; both 0: no limits
    const char *unit;
    const char *zero; // a word that stands for 0
    const char *word; // VALUE_SECTION: may stand for a boolean key of this name inside it;
                      // VALUE_DEFAULTS: the same as no key
    const struct config_choice *choices; // VALUE_CHOICE; the last has no name
    const struct table *items;           // VALUE_ITEMS
    unsigned kernels; // output keys: a bit `1 << kernel` for each enum kernel; 0: all
    bool batch;       // output keys: only batches have it
    bool alone;       // output keys: batches do not have it
    bool required;
    bool live;   // root keys: a reload applies a change
    bool secret; // shown as *** unless a reference took part
    bool own;    // differs from object to object: cannot stand under `defaults`
    const char *help;
};

#endif
