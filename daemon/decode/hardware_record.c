#include "daemon/decode/hardware_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libavcodec/avcodec.h>
#include <libavutil/mem.h>
#include <libavutil/sha.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TITLE "framed decoders 1"
#define NAME  "decoders"

enum { LINE_BYTES_MAX = 256, FACTS_MAX = 256, KEY_BYTES = 32 };

// --- the key

// Of a folder's files, sorted: their names, sizes and times. A driver that is replaced differs.
static void print_folder(FILE *facts, const char *path)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];
        struct stat st;
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (i < FACTS_MAX && stat(file, &st) == 0 && S_ISREG(st.st_mode))
            fprintf(facts, "%s %lld %lld\n", file, (long long)st.st_size, (long long)st.st_mtime);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static void print_file(FILE *facts, const char *path)
{
    char line[LINE_BYTES_MAX];
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file))
        fprintf(facts, "%s %s\n", path, line);
    if (file)
        fclose(file);
}

// The devices of a class: which they are by their bus, or what they call themselves.
static void print_devices(FILE *facts, const char *class, const char *prefix)
{
    static const char *const files[] = {"device/vendor", "device/device", "name"};
    struct dirent **entries;
    const int n = scandir(class, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        for (size_t f = 0; f < 3 && strncmp(entries[i]->d_name, prefix, strlen(prefix)) == 0; f++) {
            snprintf(path, sizeof path, "%s/%s/%s", class, entries[i]->d_name, files[f]);
            print_file(facts, path);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

void hardware_record_key(char ret[65])
{
    static const char *const settings[] = {"LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH",
                                           "LIBVA_DRI3_DISABLE", "INTEL_MEDIA_RUNTIME"};
    static const char *const folders[] = {"/usr/lib/dri",
                                          "/usr/lib64/dri",
                                          "/usr/local/lib/dri",
                                          "/usr/lib/x86_64-linux-gnu/dri",
                                          "/usr/lib/aarch64-linux-gnu/dri",
                                          "/usr/lib/x86_64-linux-gnu/mfx"};
    uint8_t digest[KEY_BYTES];
    struct AVSHA *sha = av_sha_alloc();
    struct utsname system;
    char *text = NULL;
    size_t bytes = 0;
    ret[0] = 0;
    FILE *facts = sha ? open_memstream(&text, &bytes) : NULL;
    if (!facts) {
        av_free(sha);
        return;
    }
    fprintf(facts, "%s %u %s\n", FRAMED_VERSION_TEXT, avcodec_version(), av_version_info());
    if (uname(&system) == 0)
        fprintf(facts, "%s %s %s\n", system.release, system.version, system.machine);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        fprintf(facts, "%s=%s\n", settings[i], getenv(settings[i]) ? getenv(settings[i]) : "");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        print_folder(facts, folders[i]);
    print_file(facts, "/sys/module/nvidia/version");
    print_devices(facts, "/sys/class/drm", "renderD");
    print_devices(facts, "/sys/class/video4linux", "video");
    const bool good = !ferror(facts);
    if (fclose(facts) == 0 && good) {
        av_sha_init(sha, 8 * KEY_BYTES);
        av_sha_update(sha, (const uint8_t *)text, bytes);
        av_sha_final(sha, digest);
        for (int i = 0; i < KEY_BYTES; i++)
            snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    }
    free(text);
    av_free(sha);
}

// --- the file

char *hardware_record_folder(void)
{
    const char *folders = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    const size_t length = folders ? strcspn(folders, ":") : 0;
    char *folder = NULL;
    if (length > 0)
        return strndup(folders, length);
    if (geteuid() == 0)
        return strdup("/var/lib/framed");
    if (state && *state && asprintf(&folder, "%s/framed", state) < 0)
        return NULL;
    if (!folder && home && *home && asprintf(&folder, "%s/.local/state/framed", home) < 0)
        return NULL;
    return folder;
}

// "decoder NAME[:DEVICE] CODEC equal|differs". What is not understood is skipped.
static void read_line(struct hardware_record *record, const char *line)
{
    char decoder[DECODER_NAME_MAX + DECODER_DEVICE_MAX], codec[32], verdict[16];
    if (record->n == HARDWARE_RESULTS_MAX ||
        sscanf(line, "decoder %119s %31s %15s", decoder, codec, verdict) != 3)
        return;
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get_by_name(codec);
    const size_t length = strcspn(decoder, ":");
    struct hardware_result result = {.decoder.by = DECODE_HARDWARE};
    if (!descriptor || length >= DECODER_NAME_MAX || strlen(decoder + length) > DECODER_DEVICE_MAX)
        return;
    memcpy(result.decoder.name, decoder, length);
    if (decoder[length])
        memcpy(result.decoder.device, decoder + length + 1, strlen(decoder + length + 1));
    result.codec = descriptor->id;
    result.equal = strcmp(verdict, "equal") == 0;
    record->list[record->n++] = result;
}

int hardware_record_read(struct hardware_record *ret, const char *folder)
{
    char path[PATH_MAX], line[LINE_BYTES_MAX];
    *ret = (struct hardware_record){0};
    if (snprintf(path, sizeof path, "%s/" NAME, folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    const bool good = fgets(line, sizeof line, file) && strcmp(line, TITLE "\n") == 0 &&
                      fgets(line, sizeof line, file) &&
                      sscanf(line, "key %64[0-9a-f]", ret->key) == 1;
    for (int lines = 0; good && lines < HARDWARE_RESULTS_MAX && fgets(line, sizeof line, file);
         lines++)
        read_line(ret, line);
    fclose(file);
    return good ? 0 : -EBADMSG;
}

static bool print_record(FILE *file, const struct hardware_record *record)
{
    fprintf(file, TITLE "\nkey %s\n", record->key);
    for (const struct hardware_result *result = record->list; result < record->list + record->n;
         result++)
        fprintf(file, "decoder %s%s%s %s %s\n", result->decoder.name,
                result->decoder.device[0] ? ":" : "", result->decoder.device,
                avcodec_get_name(result->codec), result->equal ? "equal" : "differs");
    return !ferror(file);
}

int hardware_record_write(const struct hardware_record *record, const char *folder)
{
    char path[PATH_MAX], part[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" NAME, folder) >= (int)sizeof path ||
        snprintf(part, sizeof part, "%s/" NAME ".part", folder) >= (int)sizeof part)
        return -ENAMETOOLONG;
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return -errno;
    // The service's user reads what root has written.
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int rc = file ? 0 : -errno;
    if (fd >= 0 && !file)
        close(fd);
    if (file && !print_record(file, record))
        rc = -EIO;
    if (file && fclose(file) != 0)
        rc = -errno;
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0)
        unlink(part);
    return rc;
}

const struct decoder_choice *hardware_record_choose(const struct hardware_record *record,
                                                    enum AVCodecID codec)
{
    for (int i = 0; record && i < record->n; i++)
        if (record->list[i].codec == codec && record->list[i].equal)
            return &record->list[i].decoder;
    return NULL;
}
