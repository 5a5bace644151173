// Writes frames or lines to files, one after another: each job opens the file if needed and writes
// one whole frame, or the waiting lines of one second. After an error everything is lost for a
// second, and then one job is tried.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/output/lines.h"
#include "daemon/output/protocol.h"
#include "daemon/output/writer.h"

enum { LINES_BYTES = 256 << 10 };           // most bytes of one job; a line has fewer
static const int64_t RETRY_NS = 1000000000; // from a failure to the next try

struct file_sink {
    struct writer writer;
    int64_t retry_ns; // CLOCK_MONOTONIC: everything before is lost

    // The acquired piece:
    bool written;
    int64_t time_ns; // since 1970
    size_t bytes;    // at most

    // Frames:
    const struct result *result;     // being written, held; NULL for lines
    struct stream_position position; // of the frames written
    struct result_format format;     // of the open file's first frame

    // Lines:
    uint64_t next;          // number of the next line
    int n;                  // being written, all of the same second
    char text[LINES_BYTES]; // takes no memory before it is written
};

// --- the pieces, on the loop

// Copies the waiting lines of one second: a file may begin at each second.
static bool acquire_lines(struct file_sink *file)
{
    const struct sink_context *context = &file->writer.sink.context;
    const struct line *line;
    line_queue_offer(context->lines, context->account, 1);
    context->account->lost += line_queue_skip(context->lines, &file->next);
    file->bytes = 0;
    if (file->writer.stopped) {
        context->account->lost += context->lines->next - file->next;
        file->next = context->lines->next;
    }
    while ((line = line_queue_get(context->lines, file->next)) &&
           file->bytes + line->bytes <= LINES_BYTES) {
        if (file->n == 0)
            file->time_ns = line->time_ns;
        else if (line->time_ns / 1000000000 != file->time_ns / 1000000000)
            break;
        memcpy(file->text + file->bytes, line->text, line->bytes);
        file->bytes += line->bytes;
        file->n++;
        file->next++;
    }
    return file->n > 0;
}

static bool acquire_piece(struct file_sink *file)
{
    struct pool *pool = file->writer.sink.context.pool;
    if (!pool)
        return acquire_lines(file);
    file->result = pool_acquire(pool, &file->writer.consumer);
    if (!file->result)
        return false;
    file->time_ns = protocol_first_item(file->result)->frame.capture_ns;
    file->bytes = protocol_header_max(file->result) +
                  protocol_payload_size(writer_config(&file->writer), file->result);
    return true;
}

// Counts the acquired piece, if there is one.
static void release_piece(struct file_sink *file)
{
    const struct sink_context *context = &file->writer.sink.context;
    if (context->pool)
        pool_release(context->pool, &file->writer.consumer, file->written);
    else
        *(file->written ? &context->account->delivered : &context->account->lost) +=
            (uint64_t)file->n;
    file->written = false;
    file->n = 0;
}

// Finishing makes a last attempt.
static bool acquire_next(struct writer *writer)
{
    struct file_sink *file = (struct file_sink *)writer;
    const bool waits = !writer->finishing && monotonic_ns() < file->retry_ns;
    bool acquired;
    do
        release_piece(file);
    while ((acquired = acquire_piece(file)) && waits);
    return acquired;
}

// --- the job

// Returns true if the open file cannot hold the frame's geometry.
static bool frame_differs(const struct file_sink *file)
{
    return file->result && file->writer.segment.whole > 0 &&
           !protocol_continues(writer_config(&file->writer)->protocol, &file->format,
                               &file->result->format);
}

// Opens the file that the piece belongs in. -EXFULL: the stream changes too often.
static int choose_file(struct file_sink *file)
{
    struct segment *segment = &file->writer.segment;
    const bool differs = frame_differs(file);
    int rc = 0;
    if (differs && !segment_may_change(segment))
        return -EXFULL;
    if (segment->fd >= 0 &&
        (differs || !segment_continues(segment, file->time_ns, (int64_t)file->bytes)))
        rc = segment_finish(segment);
    if (rc == 0 && segment->fd < 0)
        rc = segment_open(segment, file->time_ns);
    return rc;
}

// A failed frame keeps the position: the file's next frame counts it as lost.
static int append_frame(struct file_sink *file)
{
    struct segment *segment = &file->writer.segment;
    const struct output_config *config = writer_config(&file->writer);
    const struct result *result = file->result;
    const bool first = segment->whole == 0;
    struct stream_position position = file->position;
    char *header = malloc(protocol_header_max(result));
    if (!header)
        return -ENOMEM;
    stream_advance(&position, result);
    struct iovec pieces[] = {
        {header, protocol_header(config, result, &position, first, header)},
        {result->data, protocol_payload_size(config, result)},
    };
    int rc = segment_append(segment, pieces, 2);
    if (rc == 0 && first)
        file->format = result->format;
    if (rc == 0)
        file->position = position;
    free(header);
    return rc;
}

static int append_piece(struct file_sink *file)
{
    int rc = choose_file(file);
    if (rc < 0)
        return rc;
    return file->result
               ? append_frame(file)
               : segment_append(&file->writer.segment, &(struct iovec){file->text, file->bytes}, 1);
}

// A file at its size limit does not mean a full disk: another one begins.
static void write_piece(struct writer *writer)
{
    struct file_sink *file = (struct file_sink *)writer;
    struct segment *segment = &writer->segment;
    if (writer->ending) {
        writer->unfinished = segment_end(segment);
        return;
    }
    int rc = append_piece(file);
    if (rc == -EFBIG && segment->fd >= 0 && segment->whole > 0) {
        rc = segment_finish(segment);
        if (rc == 0)
            rc = append_piece(file);
    }
    file->written = rc == 0;
    if (rc != -EXFULL)
        writer->status = rc;
    if (rc < 0 && rc != -EXFULL) {
        file->retry_ns = monotonic_ns() + RETRY_NS;
        snprintf(writer->why, sizeof writer->why, "cannot write %s: %s: %s are lost",
                 writer_config(writer)->sink.path, strerror(-rc),
                 file->result ? "frames" : "lines");
    }
    keep_enforce(&segment->keep, segment->whole);
}

const struct writer_kind file_kind = {
    .size = sizeof(struct file_sink),
    .acquire = acquire_next,
    .write = write_piece,
};
