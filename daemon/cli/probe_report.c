#include "daemon/cli/probe_report.h"

#include <errno.h>
#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "config/object.h"

static const double MIB = 1 << 20;

// --- for people

static void print_stream(const struct stream_probe *probe, FILE *to)
{
    const AVCodecParameters *parameters = demux_parameters(probe->demux);
    const char *profile = avcodec_profile_name(parameters->codec_id, parameters->profile);
    const double seconds = stream_probe_seconds(probe);
    fprintf(to, "stream         %s%s%s\n", demux_describe(probe->demux),
            profile ? ", profile " : "", profile ? profile : "");
    fprintf(to, "picture        %dx%d\n", probe->width, probe->height);
    if (seconds > 0)
        fprintf(to, "bit rate       %.2f Mbit/s, %.4g pictures/s\n",
                (double)probe->bytes * 8 / 1e6 / seconds, stream_probe_rate(probe));
    if (probe->key_distance_ns > 0)
        fprintf(to, "keyframes      every %.3g s\n", (double)probe->key_distance_ns / 1e9);
    else
        fprintf(to, "keyframes      %s\n",
                probe->keyframes ? "one in this time" : "none in this time");
    if (probe->b_frames > 0)
        fprintf(to, "B-frames       up to %d in a row\n", probe->b_frames);
    else
        fputs("B-frames       none\n", to);
}

static void print_network(const struct stream_probe *probe, FILE *to)
{
    struct demux_network network;
    demux_network(probe->demux, &network);
    if (network.transport) {
        fprintf(to, "packets        %llu, %llu lost, %llu late, %llu foreign\n",
                (unsigned long long)network.packets, (unsigned long long)network.lost,
                (unsigned long long)network.late, (unsigned long long)network.foreign);
        fprintf(to, "arrival        packets of a picture within %.1f ms; it ends by %s\n",
                (double)network.arrival_ns / 1e6, network.picture_end);
    }
    if (demux_is_live(probe->camera.url))
        fprintf(to, "clock          %s\n",
                probe->clock ? "the camera's, by sender reports"
                             : "none came: time of arrival instead");
}

static void print_cost(const struct stream_probe *probe, const struct probe_cost *cost, FILE *to)
{
    fprintf(to,
            "decoder        %s: %.2f ms of one core a picture, %.1f %% of a core at this rate\n",
            decoder_describe(probe->decoder), stream_probe_decode_ms(probe), cost->cores * 100);
    fprintf(to,
            "pictures       %lld, %lld damaged or lost; the first %.0f ms after connecting began\n",
            (long long)probe->pictures, (long long)probe->damaged,
            (double)(probe->shown_ns - probe->begun_ns) / 1e6);
    fprintf(to, "memory         %.1f MiB", (double)cost->memory.pinned / MIB);
    if (cost->memory.device > 0)
        fprintf(to, ", and %.1f MiB of the GPU's", (double)cost->memory.device / MIB);
    fprintf(to, "\nfits           %s%s\n", cost->fits ? "yes" : "no: ", cost->why);
}

void probe_report_print(const struct stream_probe *probe, const struct probe_cost *cost,
                        const char *lines, FILE *to)
{
    print_stream(probe, to);
    print_network(probe, to);
    print_cost(probe, cost, to);
    fprintf(to, "\n%s", lines);
}

// --- as JSON

static json_t *known(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static void add_preset_key(void *opaque, const char *key, const char *const text[], int n)
{
    json_t *keys = opaque, *list = json_array();
    if (n == 1) {
        json_decref(list);
        json_object_set_new(keys, key, json_string(text[0]));
        return;
    }
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(text[i]));
    json_object_set_new(keys, key, list);
}

static json_t *presets_json(void)
{
    const struct config_choice *choice = table_find(&output_table, "preset")->choices;
    json_t *list = json_array();
    for (; list && choice->name; choice++) {
        json_t *keys = json_object();
        preset_each((enum preset)choice->value, add_preset_key, keys);
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", choice->name, "keys", keys));
    }
    return list;
}

static json_t *network_json(const struct stream_probe *probe)
{
    struct demux_network network;
    demux_network(probe->demux, &network);
    if (!network.transport)
        return json_null();
    return json_pack("{s:s, s:I, s:I, s:I, s:f}", "transport", network.transport, "packets",
                     (json_int_t)network.packets, "lost", (json_int_t)network.lost, "late",
                     (json_int_t)network.late, "arrival_ms", (double)network.arrival_ns / 1e6);
}

static json_t *stream_json(const struct stream_probe *probe)
{
    const AVCodecParameters *parameters = demux_parameters(probe->demux);
    const double seconds = stream_probe_seconds(probe);
    return json_pack(
        "{s:s, s:s?, s:i, s:i, s:f, s:o, s:o, s:i, s:b, s:f, s:I, s:I, s:f, s:o}", "codec",
        avcodec_get_name(parameters->codec_id), "profile",
        avcodec_profile_name(parameters->codec_id, parameters->profile), "width", probe->width,
        "height", probe->height, "fps", stream_probe_rate(probe), "bits_per_second",
        known(seconds > 0 ? (double)probe->bytes * 8 / seconds : -1), "keyframe_seconds",
        known(probe->key_distance_ns > 0 ? (double)probe->key_distance_ns / 1e9 : -1), "b_frames",
        probe->b_frames, "clock", probe->clock, "seconds", seconds, "pictures",
        (json_int_t)probe->pictures, "damaged", (json_int_t)probe->damaged, "first_picture_ms",
        (double)(probe->shown_ns - probe->begun_ns) / 1e6, "network", network_json(probe));
}

// "nvdec" is null if this machine has none.
static json_t *cost_json(const struct stream_probe *probe, const struct probe_cost *cost)
{
    return json_pack(
        "{s:s, s:o, s:f, s:f, s:o, s:f, s:f, s:o, s:f, s:b, s:s}", "decoder",
        decoder_describe(probe->decoder), "nvdec",
        probe->lease.nvdec ? json_boolean(probe_uses_nvdec(probe)) : json_null(), "decode_ms",
        stream_probe_decode_ms(probe), "cores", cost->cores, "cores_free", known(cost->cores_free),
        "cores_all", cost->cores_all, "memory_mib", (double)cost->memory.pinned / MIB,
        "memory_free_mib", known(cost->memory_free >= 0 ? (double)cost->memory_free / MIB : -1),
        "gpu_memory_mib", (double)cost->memory.device / MIB, "fits", cost->fits, "why", cost->why);
}

static int print_json(json_t *object, FILE *to)
{
    char *text = object ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (!text)
        return -ENOMEM;
    fprintf(to, "%s\n", text);
    free(text);
    return 0;
}

int probe_report_print_json(const struct stream_probe *probe, const struct probe_cost *cost,
                            const char *lines, FILE *to)
{
    return print_json(json_pack("{s:o, s:o, s:s, s:o}", "stream", stream_json(probe), "cost",
                                cost_json(probe, cost), "yaml", lines, "presets", presets_json()),
                      to);
}

int probe_report_print_error(const char *sentence, bool login, FILE *to)
{
    return print_json(json_pack("{s:s, s:b}", "error", sentence, "wants_login", login), to);
}
