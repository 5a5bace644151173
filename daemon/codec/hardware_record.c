#include "daemon/codec/hardware_record.h"

#include <errno.h>
#include <glob.h>
#include <libavutil/avutil.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "daemon/bitstream/nal.h"
#include "daemon/codec/hardware.h"

#define TITLE "framed decoders "

enum { VERSION = 2, LINE_BYTES_MAX = 512 };

// Appends a file's first line.
static void add_line(char to[HARDWARE_LIBRARIES_MAX], const char *before, const char *path)
{
    char line[32];
    const size_t used = strlen(to);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file))
        snprintf(to + used, HARDWARE_LIBRARIES_MAX - used, "%s%.*s", before,
                 (int)strcspn(line, "\n"), line);
    if (file)
        fclose(file);
}

const char *hardware_record_libraries(char to[HARDWARE_LIBRARIES_MAX])
{
    struct utsname system = {0};
    glob_t gpus = {0};
    uname(&system);
    snprintf(to, HARDWARE_LIBRARIES_MAX, "FFmpeg %.64s, %s %.64s %.16s", av_version_info(),
             system.sysname, system.release, system.machine);
    add_line(to, ", NVIDIA ", "/sys/module/nvidia/version");
    glob("/sys/class/drm/renderD*/device/vendor", 0, NULL, &gpus);
    for (size_t i = 0; i < gpus.gl_pathc; i++) {
        char *path = gpus.gl_pathv[i];
        add_line(to, ", GPU ", path);
        memcpy(path + strlen(path) - strlen("vendor"), "device", strlen("device"));
        add_line(to, ":", path);
    }
    globfree(&gpus);
    return to;
}

// --- the file

char *hardware_record_folder(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *folder = state_folder();
    if (folder)
        return folder;
    if (geteuid() == 0)
        return strdup("/var/lib/framed");
    if (state && *state && asprintf(&folder, "%s/framed", state) < 0)
        return NULL;
    if (!folder && home && *home && asprintf(&folder, "%s/.local/state/framed", home) < 0)
        return NULL;
    return folder;
}

// Returns the path of the file, to be freed; NULL: no folder, or no memory.
static char *record_path(const char *folder)
{
    char *own = folder ? NULL : hardware_record_folder(), *path = NULL;
    if ((folder || own) && asprintf(&path, "%s/decoders", folder ? folder : own) < 0)
        path = NULL;
    free(own);
    return path;
}

// Reads "decoder NAME[:DEVICE] CODEC BITS PICTURES/S DRIVER". Skips lines that it cannot parse.
static void read_result(struct hardware_record *record, const char *line)
{
    struct hardware_result result = {0};
    struct decoder_choice *decoder = &result.decoder;
    char codec[32];
    int end = 0;
    if (sscanf(line, "decoder %23[^: ]:%95s %31s %d %lf%n", decoder->name, decoder->device, codec,
               &result.bits, &result.fps, &end) != 5 &&
        sscanf(line, "decoder %23[^: ] %31s %d %lf%n", decoder->name, codec, &result.bits,
               &result.fps, &end) != 4)
        return;
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get_by_name(codec);
    if (!descriptor)
        return;
    decoder->by = DECODE_HARDWARE;
    if (strcmp(decoder->name, "cpu") == 0)
        *decoder = (struct decoder_choice){.by = DECODE_CPU};
    result.codec = descriptor->id;
    line += end + (line[end] == ' ');
    snprintf(result.driver, sizeof result.driver, "%.*s", (int)strcspn(line, "\n"), line);
    hardware_record_add(record, &result);
}

int hardware_record_read(struct hardware_record *ret, const char *folder)
{
    char line[LINE_BYTES_MAX] = "", libraries[HARDWARE_LIBRARIES_MAX];
    char *path = record_path(folder);
    int version = 0;
    *ret = (struct hardware_record){0};
    FILE *file = path ? fopen(path, "re") : NULL;
    const int rc = path ? -errno : -ENOENT;
    free(path);
    if (!file)
        return rc;
    const bool good = fgets(line, sizeof line, file) && sscanf(line, TITLE "%d", &version) == 1;
    bool same = good && version == VERSION && fgets(line, sizeof line, file);
    line[strcspn(line, "\n")] = 0;
    same = same && strcmp(line, hardware_record_libraries(libraries)) == 0;
    while (same && fgets(line, sizeof line, file))
        read_result(ret, line);
    fclose(file);
    return !good ? -EBADMSG : same ? 0 : -ESTALE;
}

int hardware_record_write(const struct hardware_record *record, const char *folder)
{
    char libraries[HARDWARE_LIBRARIES_MAX], name[HARDWARE_NAME_MAX];
    char *text = NULL, *path = record_path(folder);
    size_t bytes;
    FILE *file = path ? open_memstream(&text, &bytes) : NULL;
    int rc = file ? 0 : -ENOMEM;
    if (rc == 0) {
        fprintf(file, TITLE "%d\n%s\n", VERSION, hardware_record_libraries(libraries));
        for (const struct hardware_result *at = record->list; at < record->list + record->n; at++)
            fprintf(file, "decoder %s %s %d %.1f%s%s\n", hardware_name(&at->decoder, name),
                    avcodec_get_name(at->codec), at->bits, at->fps, at->driver[0] ? " " : "",
                    at->driver);
        rc = fclose(file) == 0 ? 0 : -ENOMEM;
    }
    if (rc == 0 && mkdir(folder, 0755) < 0 && errno != EEXIST)
        rc = -errno;
    if (rc == 0) // the service's user must be able to read root's file
        rc = state_file_write(path, text, 0644);
    free(text);
    free(path);
    return rc;
}

// --- results

void hardware_record_add(struct hardware_record *record, const struct hardware_result *result)
{
    if (record->n < HARDWARE_RESULTS_MAX)
        record->list[record->n++] = *result;
}

void hardware_record_forget(struct hardware_record *record, const struct decoder_choice *decoder)
{
    char name[HARDWARE_NAME_MAX], other[HARDWARE_NAME_MAX];
    int kept = 0;
    for (int i = 0; i < record->n; i++)
        if (strcmp(hardware_name(&record->list[i].decoder, other), hardware_name(decoder, name)) !=
            0)
            record->list[kept++] = record->list[i];
    record->n = kept;
}

static const struct hardware_result *find_fastest(const struct hardware_record *record,
                                                  enum decode by, enum AVCodecID codec, int bits)
{
    const struct hardware_result *fastest = NULL;
    for (const struct hardware_result *at = record->list; at < record->list + record->n; at++)
        if (at->decoder.by == by && at->codec == codec && at->bits == bits &&
            (!fastest || at->fps > fastest->fps))
            fastest = at;
    return fastest;
}

// Returns general_profile_idc or profile_idc from the SPS in the extradata; -1: none.
static int read_profile(const AVCodecParameters *parameters)
{
    const bool h264 = parameters->codec_id == AV_CODEC_ID_H264;
    struct nal_reader reader = {.data = parameters->extradata,
                                .size = (size_t)parameters->extradata_size};
    for (struct nal unit; nal_next(&reader, &unit);) {
        if (h264 && unit.size > 1 && h264_unit_type(&unit) == H264_UNIT_SPS)
            return unit.data[1];
        if (!h264 && unit.size > 3 && hevc_unit_type(&unit) == HEVC_UNIT_SPS)
            return unit.data[3] & 0x1f;
    }
    return -1;
}

// Returns the bits of a 4:2:0 sample; 0: unknown. Over RTSP only the profile is known.
static int read_depth(const AVCodecParameters *parameters)
{
    static const struct {
        enum AVCodecID codec;
        int profile, bits;
    } known[] = {{AV_CODEC_ID_H264, 66, 8},  {AV_CODEC_ID_H264, 77, 8},   {AV_CODEC_ID_H264, 88, 8},
                 {AV_CODEC_ID_H264, 100, 8}, {AV_CODEC_ID_H264, 110, 10}, {AV_CODEC_ID_HEVC, 1, 8},
                 {AV_CODEC_ID_HEVC, 2, 10}};
    const int format = parameters->format;
    if (format != AV_PIX_FMT_NONE)
        return format == AV_PIX_FMT_YUV420P || format == AV_PIX_FMT_YUVJ420P ? 8
               : format == AV_PIX_FMT_YUV420P10                              ? 10
                                                                             : 0;
    const int profile =
        parameters->profile >= 0 ? parameters->profile & 0xff : read_profile(parameters);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].codec == parameters->codec_id && known[i].profile == profile)
            return known[i].bits;
    return 0;
}

const struct hardware_result *hardware_record_choose(const struct hardware_record *record,
                                                     const AVCodecParameters *parameters)
{
    const enum AVCodecID codec = parameters->codec_id;
    const int bits = read_depth(parameters);
    if (!record)
        return NULL;
    const struct hardware_result *cpu = find_fastest(record, DECODE_CPU, codec, bits);
    const struct hardware_result *fastest = find_fastest(record, DECODE_HARDWARE, codec, bits);
    return cpu && fastest && fastest->fps > cpu->fps ? fastest : NULL;
}

void hardware_record_describe(const struct hardware_record *record, char *to, size_t size)
{
    size_t used = 0;
    *to = 0;
    for (const struct hardware_result *cpu = record->list; cpu < record->list + record->n; cpu++) {
        char name[HARDWARE_NAME_MAX];
        const struct hardware_result *fastest =
            find_fastest(record, DECODE_HARDWARE, cpu->codec, cpu->bits);
        if (cpu->decoder.by != DECODE_CPU || !fastest || used >= size)
            continue;
        hardware_name(&fastest->decoder, name);
        const bool faster = fastest->fps > cpu->fps;
        used += (size_t)snprintf(
            to + used, size - used, "%s%s for %s of %d bits (%.0f pictures/s, %s %.0f)",
            used ? ", " : "", faster ? name : "the CPU", avcodec_get_name(cpu->codec), cpu->bits,
            faster ? fastest->fps : cpu->fps, faster ? "the CPU" : name,
            faster ? cpu->fps : fastest->fps);
    }
}
