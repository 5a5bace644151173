// Prints the frames or batches read through libframed: a line of JSON for each, then one with the
// counts. usage: client_frames ADDRESS newest|all COUNT [HOLD_MS] (-1: takes frames without looking
// at them)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/framed.h"

static void print_elements(const struct framed_view *view)
{
    printf(", \"elements\": [");
    for (uint32_t i = 0; i < view->batch.count; i++) {
        const struct framed_header *header = &view->elements[i].header;
        printf("%s[\"%s\", %ju, %u, %u]", i ? ", " : "", header->camera,
               (uintmax_t)header->sequence, header->flags, header->source_width);
    }
    printf("]");
}

// Prints the view with two sums over its payload; the test computes them for another reader too.
static void print_view(const struct framed_reader *reader, const struct framed_view *view,
                       int hold_ms)
{
    const uint8_t *data = view->data;
    uint64_t sum = 0, weighted = 0;
    usleep((useconds_t)hold_ms * 1000);
    for (uint64_t i = 0; i < view->bytes; i++) {
        sum += data[i];
        weighted += data[i] * i;
    }
    printf("{\"sequence\": %ju, \"epoch\": %u, \"bytes\": %ju, \"sums\": [%ju, %ju]",
           (uintmax_t)view->header.sequence, view->header.epoch, (uintmax_t)view->bytes,
           (uintmax_t)sum, (uintmax_t)weighted);
    printf(", \"camera\": \"%s\", \"whole\": %d", view->header.camera, framed_whole(reader, view));
    if (view->batch.count > 0)
        print_elements(view);
    puts("}");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    struct framed_view view;
    struct framed_counts counts;
    struct framed_reader *reader =
        framed_open(argv[1], strcmp(argv[2], "newest") == 0 ? FRAMED_NEWEST : 0);
    const int hold_ms = argc > 4 ? atoi(argv[4]) : 0;
    if (!reader) {
        perror(argv[1]);
        return 1;
    }
    for (int n = atoi(argv[3]); n > 0 && framed_next(reader, &view, -1) > 0; n--)
        if (hold_ms >= 0)
            print_view(reader, &view, hold_ms);
    framed_release(reader, &view, NULL, 0);
    framed_count(reader, &counts);
    printf("{\"frames\": %ju, \"skipped\": %ju, \"torn\": %ju, \"lost\": %ju, "
           "\"connections\": %ju}\n",
           (uintmax_t)counts.frames, (uintmax_t)counts.skipped, (uintmax_t)counts.torn,
           (uintmax_t)counts.lost, (uintmax_t)counts.connections);
    framed_close(reader);
    return 0;
}
