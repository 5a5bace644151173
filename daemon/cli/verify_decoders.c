#include "daemon/cli/verify_decoders.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/process.h"
#include "daemon/cli/verify_clip.h"
#include "daemon/decode/hardware.h"
#include "daemon/decode/hardware_record.h"

struct candidates {
    struct decoder_choice list[VERIFY_DECODERS_MAX];
    int n;
};

// --- the candidates

static void add(struct candidates *candidates, enum decode by, const char *name, const char *device)
{
    if (candidates->n == VERIFY_DECODERS_MAX)
        return;
    struct decoder_choice *choice = &candidates->list[candidates->n++];
    *choice = (struct decoder_choice){.by = by};
    snprintf(choice->name, sizeof choice->name, "%s", name);
    snprintf(choice->device, sizeof choice->device, "%s", device);
}

static int is_render_node(const struct dirent *entry)
{
    return strncmp(entry->d_name, "renderD", strlen("renderD")) == 0;
}

// Adds each of several GPUs by its name, and a single one as libavutil's default.
static void add_vaapi(struct candidates *candidates)
{
    struct dirent **entries = NULL;
    const int n = scandir("/dev/dri", &entries, is_render_node, alphasort);
    for (int i = 0; i < n; i++) {
        char device[DECODER_DEVICE_MAX];
        snprintf(device, sizeof device, "/dev/dri/%.60s", entries[i]->d_name);
        if (n > 1)
            add(candidates, DECODE_HARDWARE, "vaapi", device);
        free(entries[i]);
    }
    free(entries);
    if (n <= 1)
        add(candidates, DECODE_HARDWARE, "vaapi", "");
}

static void add_all(struct candidates *candidates)
{
    add(candidates, DECODE_NVDEC, "nvdec", "");
    add_vaapi(candidates);
    for (const char *const *name = hardware_names(); *name; name++)
        if (strcmp(*name, "vaapi") != 0)
            add(candidates, DECODE_HARDWARE, *name, "");
}

// --- the report

static void print_box(void)
{
    char libraries[HARDWARE_LIBRARIES_MAX];
    printf("framed %s, %s\n", FRAMED_VERSION_TEXT, hardware_record_libraries(libraries));
}

static void print_result(const struct decoder_choice *choice, const struct verify_clip *clip,
                         const struct verify_result *result)
{
    char name[HARDWARE_NAME_MAX];
    hardware_name(choice, name);
    if (result->verdict == VERIFY_NOT_OPENED) {
        printf("%-12s does not open: %s\n", name, result->why);
        return;
    }
    printf("%-12s %-4s %2d bits %4dx%-4d  ", name, clip->codec, clip->bits, clip->width,
           clip->height);
    if (result->verdict == VERIFY_REFUSED)
        printf("not decoded: %s", result->why);
    else if (result->verdict == VERIFY_FAILED)
        printf("FAILS: %s", result->why);
    else if (result->verdict == VERIFY_DIFFERS)
        printf("DIFFERS from picture %d on", result->picture);
    else
        printf("equal  %7.1f frames/s", result->fps);
    printf("%s%s\n", result->driver[0] ? "  " : "", result->driver);
}

// --- the record

static void note_equal(struct hardware_record *record, const struct decoder_choice *choice,
                       const struct verify_clip *clip, const struct verify_result *verified)
{
    struct hardware_result result = {.decoder = *choice, .bits = clip->bits, .fps = verified->fps};
    result.codec = avcodec_descriptor_get_by_name(clip->codec)->id;
    snprintf(result.driver, sizeof result.driver, "%s", verified->driver);
    hardware_record_add(record, &result);
}

static void keep(const struct hardware_record *record)
{
    char text[512];
    char *folder = hardware_record_folder();
    const int rc = folder ? hardware_record_write(record, folder) : -ENOENT;
    if (rc == 0)
        printf("kept in %s for `decode: auto`\n", folder);
    else
        fprintf(stderr, "framed verify: not kept for `decode: auto`: %s: %s\n",
                folder ? folder : "no folder", strerror(-rc));
    free(folder);
    hardware_record_describe(record, text, sizeof text);
    if (rc == 0 && text[0])
        printf("without NVDEC it takes %s\n", text);
}

// --- all of it

// Returns false if the decoder opened and did not give the known pictures. A failed decoder gets no
// further clip.
static bool verify_one(const struct decoder_choice *choice, struct hardware_record *record)
{
    bool good = true;
    hardware_record_forget(record, choice);
    for (int i = 0; i < VERIFY_CLIPS; i++) {
        const struct verify_clip *clip = &verify_clips[i];
        const struct verify_result result = verify_clip(clip, choice);
        const bool decodes = result.verdict >= VERIFY_FAILED;
        print_result(choice, clip, &result);
        if (result.verdict == VERIFY_EQUAL && choice->by != DECODE_NVDEC)
            note_equal(record, choice, clip, &result);
        good &= !decodes || result.verdict == VERIFY_EQUAL;
        if (result.verdict == VERIFY_NOT_OPENED || result.verdict == VERIFY_FAILED) {
            hardware_record_forget(record, choice);
            break;
        }
    }
    return good;
}

int verify_decoders(const struct decoder_choice list[], int n)
{
    static const struct decoder_choice cpu = {.by = DECODE_CPU};
    struct candidates all = {0};
    struct hardware_record record = {0};
    char *folder = hardware_record_folder();
    if (n == 0)
        add_all(&all);
    else if (folder) // other decoders keep their results
        hardware_record_read(&record, folder);
    free(folder);
    print_box();
    if (!verify_one(&cpu, &record)) {
        printf("the cpu's pictures are not the known ones: nothing else is compared\n");
        return EXIT_RUNTIME;
    }
    bool good = true;
    for (int i = 0; i < (n > 0 ? n : all.n); i++)
        good &= verify_one(n > 0 ? &list[i] : &all.list[i], &record);
    keep(&record);
    return good ? EXIT_OK : EXIT_RUNTIME;
}

int verify_decoders_again(void)
{
    struct hardware_record record;
    char *folder = hardware_record_folder();
    const int rc = folder ? hardware_record_read(&record, folder) : -ENOENT;
    free(folder);
    return rc == -ESTALE ? verify_decoders(NULL, 0) : EXIT_OK;
}
