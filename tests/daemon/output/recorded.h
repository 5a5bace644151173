// Shared by the tests of file sinks: recording frames into files, and reading the files.
#ifndef FRAMED_TESTS_DAEMON_OUTPUT_RECORDED_H
#define FRAMED_TESTS_DAEMON_OUTPUT_RECORDED_H

#include "tests/daemon/output/fixture.h"

// Feeds one frame and waits until it is in the file, or lost.
static inline void rig_record(struct rig *rig)
{
    rig_frame(rig);
    for (int i = 0; i < 5000 && ledger_in_flight(&rig->ledger) > 0; i++) {
        usleep(1000);
        on_loop(rig, rig_pump);
    }
    CHECK(ledger_in_flight(&rig->ledger) == 0, "frame %d hangs", (int)rig->ordinal - 1);
}

// Returns a path in the rig's folder, valid until the next call.
static inline char *rig_in_folder(const struct rig *rig, const char *name)
{
    static char path[sizeof rig->folder + 256];
    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    return path;
}

static inline off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : -1;
}

// Returns the number of whole frames in a framed file, after checking each byte; -1 if anything but
// a cut frame follows them. *lost is from the last header.
static inline int frames_in(const char *path, uint64_t *lost, bool *cut)
{
    int frames = 0, rc = 0;
    struct framed_header header;
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    *cut = false;
    while (rc == 0) {
        size_t n = fread(&header, 1, sizeof header, file);
        *cut = n > 0 && n < sizeof header;
        if (n < sizeof header)
            break;
        if (memcmp(header.magic, FRAMED_MAGIC, 4) != 0)
            rc = -1;
        for (size_t i = 0; rc == 0 && !*cut && i < header.payload_bytes; i++) {
            int byte = getc(file);
            *cut = byte == EOF;
            if (byte != EOF && byte != sample(header.sequence, i))
                rc = -1;
        }
        if (*cut)
            break;
        *lost = header.lost;
        frames++;
    }
    fclose(file);
    return rc == 0 ? frames : -1;
}

static inline void expect_frames(const char *path, int frames, uint64_t lost)
{
    uint64_t counted = 0;
    bool cut;
    int n = frames_in(path, &counted, &cut);
    CHECK(n == frames && !cut, "%s: %d frames instead of %d, cut %d", path, n, frames, cut);
    CHECK(counted == lost, "%s: lost %d instead of %d", path, (int)counted, (int)lost);
}

#endif
