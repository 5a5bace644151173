// The configuration as plain structs. Which keys there are, their types, defaults, ranges and help
// is said once, in config/schema.c; load.c fills these structs from YAML, print.c prints the rows.
#ifndef FRAMED_CONFIG_CONFIG_H
#define FRAMED_CONFIG_CONFIG_H

#include <stdio.h>

#include "kernels/ops.h"
#include "kernels/processors.h"

// Types of their own for values that have a unit, so that a schema row knows how to read them.
struct duration {
    int64_t ns;
};
struct bytes {
    int64_t n;
};
struct dimensions {
    int width, height; // pixels
};
struct levels { // one level or three
    int n;
    uint8_t v[3];
};
struct channels { // one number or three
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
struct fraction { // "1/255" or a number
    double value;
};
struct split { // of a file: neither is never
    int64_t ns, bytes;
};
struct filemode { // octal permissions of a socket or file
    int mode;
};

enum backend_kind { BACKEND_AUTO, BACKEND_CPU, BACKEND_CUDA };
enum transport { TRANSPORT_TCP, TRANSPORT_UDP };
enum decode { DECODE_AUTO, DECODE_CPU, DECODE_NVDEC };
enum pace { PACE_FULL, PACE_REALTIME };
enum turning { TURNING_AUTO, TURNING_IGNORE };
enum damaged { DAMAGED_FLAG, DAMAGED_DROP, DAMAGED_HOLD };
enum overflow { OVERFLOW_DROP_OLDEST, OVERFLOW_DROP_NEWEST, OVERFLOW_WAIT, OVERFLOW_AUTO };
enum protocol { PROTOCOL_AUTO, PROTOCOL_FRAMED, PROTOCOL_Y4M, PROTOCOL_NPY, PROTOCOL_RAW };
enum sink_kind { SINK_NONE, SINK_UNIX, SINK_TCP, SINK_FILE, SINK_RING };
enum ready_when { READY_ANY, READY_ALL };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

// Bytes of a socket's path: what the system takes, less a dot and the largest process number, which
// the name has until somebody may connect.
#define SOCKET_PATH_MAX 99

#define RING_CLIENTS_MAX 64 // each is a bit of a mask

// Bytes that a file may be split at.
#define SPLIT_BYTES_MIN ((int64_t)1 << 20)
#define SPLIT_BYTES_MAX ((int64_t)1 << 40)

// "unix:PATH", "ring:PATH", "tcp:HOST:PORT" ("tcp:PORT" is loopback), "file:PATH"
struct sink_address {
    enum sink_kind kind;
    char *path;      // unix and ring: of SOCKET_PATH_MAX bytes at most; file
    char *canonical; // the path with its folder resolved; NULL: as `path`
    bool timed;      // file: the path is a pattern whose name holds a time (config/pattern.h)
    char *host;      // tcp: an IP address or "localhost"; NULL is 127.0.0.1
    int port;        // tcp; 0 lets the system choose
};

// Where the control socket is: neither off nor at a path is the default place.
struct control_address {
    bool off;
    struct sink_address at; // unix, or SINK_NONE
};
// Where HTTP is served: "HOST:PORT", "PORT" (on loopback) or "unix:PATH".
struct http_address {
    struct sink_address at; // tcp or unix; SINK_NONE: nowhere
};

struct place { // where in the configuration file something stands; line and column count from 1
    int line, column;
};

enum { TABLE_ROWS_MAX = 32 }; // keys of the file, of a camera or of an output

// Where the values of an object's keys stand, by the rows of its table (config/object.h).
struct places {
    struct place value[TABLE_ROWS_MAX];
};

struct tensor_config {
    enum dtype dtype;
    enum layout layout;
    enum order order;
    struct fraction scale;
    struct channels mean, std;
};

struct colour_config {
    enum matrix matrix;
    enum range range;
};

struct output_config {
    char *name;
    struct place place;
    struct places places;
    enum op_kind kernel;
    struct dimensions size;
    enum fit fit;
    struct affine affine;
    double rotate; // degrees, clockwise
    enum flip flip;
    struct crop crop;
    struct levels fill;
    struct tensor_config tensor;
    enum pixel_format format;
    struct colour_config colour;
    double fps;              // most frames per second; 0 keeps all
    enum overflow overflow;  // never OVERFLOW_AUTO after config_load
    bool overflow_auto;      // the key said auto, and config_load chose
    struct duration max_age; // 0: any age
    int slots;
    struct sink_address sink;
    bool open;              // a tcp sink may be reached from other boxes
    int clients;            // of a socket or ring, at once
    enum memory memory;     // of a ring's slots: MEMORY_HOST or MEMORY_CUDA
    enum protocol protocol; // never PROTOCOL_AUTO after config_load
    struct split segment;   // of a file whose path is timed
    struct filemode mode;
    char *group; // of the socket or file; NULL leaves it
};

struct demuxer_option { // one "name: value" for the demuxer
    char *name, *value;
    struct place place; // of its name
};

// What memory a camera's stream takes, where it has been looked at; zero where it has not.
// By which NVDEC's decoders differ in memory.
enum stream_codec { STREAM_OTHER, STREAM_H264, STREAM_VP9 };

struct stream_memory {
    enum stream_codec codec;
    int width, height;    // of its pictures; 0: not known
    int pixel_bits;       // of a picture in memory; 0: not known
    int pictures;         // that the cpu's decoder keeps, for reference and for their order
    int surfaces;         // that NVDEC's decoder has, without those for frames in flight
    int macroblock_bytes; // that the cpu's decoder keeps for 16x16 pixels, beside those of a
                          // picture
    int packet_bytes;     // on average
};

struct camera_config {
    char *name;
    struct place place;
    struct places places;
    char *url; // may hold a password: print it only through config_url_redacted
    enum transport transport;
    char *demuxer; // of libavformat, for raw streams ("rawvideo"); NULL lets it probe
    struct demuxer_option *options;
    int n_options;
    enum decode decode;
    int decode_threads;          // of the cpu decoder
    struct dimensions picture;   // the largest that is expected; 0x0: auto, what `stream` says
    struct stream_memory stream; // not a key: whoever looks at the stream fills it in
    double fps;
    bool loop;
    enum pace pace;
    enum turning rotate; // whether pictures are turned as the stream says
    enum damaged damaged;
    struct duration connect_timeout, media_timeout, close_timeout;
    struct output_config *outputs;
    int n_outputs;
};

struct cuda_config {
    int device;
    int streams;         // 0: auto
    struct bytes band;   // 0: auto
    int decoders;        // threads inside NVDEC at once; 0: auto
    struct bytes memory; // of the device, that may be used; 0: auto, what it has
};

struct cpu_config {
    int workers; // 0: auto, one for each processor that framed may use
    struct pin pin;
};

struct log_config {
    enum log_level level;
};

struct config {
    struct places places;
    struct place secret; // the first that the file itself holds, and no credential; line 0: none
    enum backend_kind backend;
    struct cuda_config cuda;
    struct cpu_config cpu;
    struct log_config log;
    struct control_address control;
    struct http_address http;
    char *http_token; // a secret; NULL: http asks for none
    struct place control_place, http_place;
    enum ready_when ready;
    char *tuned; // is not used; NULL: none
    struct camera_config *cameras;
    int n_cameras;
};

// Reads `path` ("-" is standard input). Every mistake is printed to `errors` as one line
// "file:line:column: key: what is wrong (what is allowed)"; returns their number, 0 when *ret holds
// the configuration, or negative errno when the file cannot be read (also printed). *ret is written
// only on 0.
int config_load(struct config **ret, const char *path, FILE *errors);
// The same from memory; `name` stands for the file in messages.
int config_load_text(struct config **ret, const char *text, size_t length, const char *name,
                     FILE *errors);
// Notes what is wrong beside the text itself, on this machine or in this process. Of a text with
// mistakes members may be empty, or hold a default where object_is_known says no.
struct mistakes;
struct unit;
typedef void config_judge(struct mistakes *, const struct config *);

struct config_load_options {
    // Of the daemon that runs and keeps its backend: a key that differs from there and needs a
    // restart is a mistake. NULL: none runs.
    const struct config *running;
    config_judge *judge; // or NULL
    // Whose credentials count as set: a key that holds one keeps its default, or an x in its text,
    // and counts as not known. NULL: none.
    struct unit *unit;
};

// The same with these options.
int config_load_with(struct config **ret, const char *path, const struct config_load_options *,
                     FILE *errors);
void config_free(struct config *); // accepts NULL
// Only the key `control` of the file at `path`, whatever else is wrong with it or missing, for who
// wants to speak to the daemon that runs with it. 0; or as config_load, with the mistake printed.
int config_load_control(struct control_address *ret, const char *path, FILE *errors);
void config_free_control(struct control_address *);

// Copies that outlive the configuration that they are of; of a camera without its outputs. NULL: no
// memory.
struct camera_config *config_copy_camera(const struct camera_config *);
struct output_config *config_copy_output(const struct output_config *);
void config_free_camera(struct camera_config *); // such copies; accept NULL
void config_free_output(struct output_config *);
// Whether both say the same under whatever name and wherever they stand; of cameras without their
// outputs, of outputs as far as their kernel knows the keys.
bool config_same_camera(const struct camera_config *, const struct camera_config *);
bool config_same_output(const struct output_config *, const struct output_config *);

void config_print_defaults(FILE *); // a commented, loadable configuration with every key
void config_print_schema(FILE *);   // JSON Schema, draft-07
void config_print_keys(FILE *);     // the README's table, Markdown

// The kernel parameters that an output asks for.
void output_config_op(const struct output_config *, struct op_params *ret);

#endif
