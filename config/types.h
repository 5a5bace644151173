// Types of the values of keys, and the description of a key in a table. A new type needs a struct
// here (if C has none for it), a name in enum value_type, a line in VALUE_TYPE_OF, and a row with
// its functions in value.c.
#ifndef FRAMED_CONFIG_TYPES_H
#define FRAMED_CONFIG_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "config/address.h"
#include "config/mistakes.h"
#include "kernels/ops.h"
#include "kernels/processors.h"

#define CLASSES_MAX 64 // of one list
#define CROPS_MAX   64 // of one picture

// Of cameras, outputs and regions.
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

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
struct rois { // by name; owns them
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
struct polygons { // owns them
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
struct name_patterns { // over names of cameras; owns them
    char **list;
    int n;
};
#define ENDPOINTS_MAX 9
#define ENDPOINT_SIZE 256
struct endpoints { // of etcd; n 0: none
    int n;
    char url[ENDPOINTS_MAX][ENDPOINT_SIZE];
};
#define NODE_LABELS_MAX 16
struct node_labels {
    int n;
    struct node_label {
        char name[32], value[64];
    } list[NODE_LABELS_MAX];
};
struct text_list { // owns its text
    char *text;    // each with its final zero, one after the other; NULL: none
    size_t bytes;
};
struct labels { // of classes, from 0 on
    struct text_list list;
};
struct program { // a program and its arguments
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

// --- numbers in a text, with and without a unit: "29.97", "250ms", "8MiB"

struct unit_name {
    const char *name;
    double factor; // in seconds or bytes
};

// Largest unit first; the last entry has no name.
extern const struct unit_name duration_units[], span_units[], size_units[];

// Each reads the first `n` bytes of `text`. Returns false unless all belong to the number.
// A decimal number. Hex, infinities, NaN and blanks, which strtod accepts, are refused.
bool number_read(const char *text, size_t n, double *ret);
// A whole number of at most 9 digits, without leading zeros, which YAML 1.1 would read as octal.
bool whole_read(const char *text, size_t n, int *ret);

// Reads a number and its unit, in seconds or bytes; only 0 may lack the unit. Returns NULL, or the
// mistake in the text.
const char *quantity_read(const char *text, const struct unit_name *units, double *ret);

// --- texts one after the other in one piece of memory

int text_list_copy(struct text_list *, const struct text_list *from); // 0 or -ENOMEM
void text_list_free(struct text_list *); // overwrites the texts, which may be secrets; empties it
bool text_list_equal(const struct text_list *, const struct text_list *);
// Returns the text after `text`, or the first one for NULL. NULL: there is none.
const char *text_list_next(const struct text_list *, const char *text);

// --- names of a detector's classes, from class 0 on

// Returns 0 with a copy for text_list_free; -EINVAL with *wrong set; or -ENOMEM.
int labels_parse(struct labels *ret, const char *const text[], int n, const char **wrong);
// Returns the class with that label, or -1.
int labels_find(const struct labels *, const char *label);

// --- commands: a program and its arguments, or a line for the shell

// One text is a line for /bin/sh, several are a program and its arguments. Returns 0 with a copy
// for text_list_free; -EINVAL with *wrong set; or -ENOMEM.
int program_parse(struct program *ret, const char *const text[], int n, const char **wrong);
// Fills in argv with pointers into the command, and a final NULL.
void program_arguments(const struct program *, char *argv[PROGRAM_MAX + 3]);

// --- patterns for names of cameras: ["gate*", "yard-?", "!yard-9"]

// Returns 0 with *ret for name_patterns_free; -EINVAL with the mistake in *wrong; or -ENOMEM.
int name_patterns_parse(struct name_patterns *ret, const char *const text[], int n,
                        const char **wrong);
// Makes a copy with its own memory. Returns 0, or -ENOMEM with *ret empty.
int name_patterns_copy(struct name_patterns *ret, const struct name_patterns *);
void name_patterns_free(struct name_patterns *); // empties it
// Returns true if both have the same patterns in the same order.
bool name_patterns_equal(const struct name_patterns *, const struct name_patterns *);
// Returns true if the patterns choose the name: a * matches any characters, a ? one character; a
// pattern after a ! excludes names; the last pattern that matches decides.
bool name_patterns_choose(const struct name_patterns *, const char *name);

// --- URLs of a cluster's etcd: http://HOST:PORT or https://HOST:PORT, each once, all of one scheme

// Returns NULL with *ret set, or the mistake, which quotes nothing.
const char *endpoints_parse(struct endpoints *ret, const char *const text[], int n);
bool endpoints_have_tls(const struct endpoints *);

// --- labels of a node, which cameras may require: {vlan: a, floor: 2}

// Returns 0; -EINVAL with the mistake in *wrong; or -EEXIST: the name exists already.
int node_labels_add(struct node_labels *, const char *name, const char *value, const char **wrong);
// Returns true if a text can be the name of a site, of a node or of a label.
bool is_cluster_name(const char *text, size_t size);

// --- polygons, each a text of its corners: "0,0 640,0 640,120 0,120"

// Commas may replace spaces, as in Frigate's masks. Returns 0 with *ret for polygons_free; -EINVAL
// with the mistake in *wrong; or -ENOMEM.
int polygons_parse(struct polygons *ret, const char *const text[], int n, const char **wrong);
int polygons_copy(struct polygons *ret, const struct polygons *from); // 0 or -ENOMEM, *ret empty
void polygons_free(struct polygons *);                                // empties it
bool polygons_equal(const struct polygons *, const struct polygons *);

// --- regions of a camera's pictures by name: {door: [x, y, width, height], ...}

// Adds a region. Returns 0; -EINVAL with *wrong set: it cannot have that name; -EEXIST: the name
// exists already; or -ENOMEM.
int rois_add(struct rois *, const char *name, struct rect, const char **wrong);
// Makes a copy with its own memory. Returns 0, or -ENOMEM with *ret empty.
int rois_copy(struct rois *ret, const struct rois *);
void rois_free(struct rois *); // empties it
// Returns true if both have the same regions in the same order.
bool rois_equal(const struct rois *, const struct rois *);
const struct roi *rois_find(const struct rois *, const char *name); // NULL: none

#endif
