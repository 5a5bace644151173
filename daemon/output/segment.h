// One file of a file sink: whole frames one after another, or a container, whatever fails. Where
// the output's path is a pattern, the file is called "NAME.part" while it is written and NAME once
// it is finished; else it has the path from the beginning, and what stood there is moved aside. Any
// thread, one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_SEGMENT_H
#define FRAMED_DAEMON_OUTPUT_SEGMENT_H

#include <sys/stat.h>

#include "config/config.h"
#include "daemon/output/keep.h"
#include "daemon/output/protocol.h"
#include "daemon/output/unique_path.h"

#define SEGMENT_PART ".part"

// Which run of `segment` a time lies in: those that a day begins with begin at midnight.
struct segment_run {
    int64_t number;
    long offset; // of local time to UTC in seconds
};

struct segment {
    const struct output_config *config; // outlives the segment
    gid_t group;
    int fd; // -1: no file is open, and the rest means nothing
    dev_t device;
    ino_t inode;
    off_t whole; // bytes of whole frames in it; what is behind them may be cut off
    char path[PATH_BYTES];
    struct segment_run run;
    struct result_format format;        // of its first frame
    struct keep keep;                   // of the files before it
    int64_t change_ns;                  // CLOCK_MONOTONIC: private to segment_change
    bool refused_change, logged_change; // a change was refused; `logged_change` is the caller's
};

enum { SEGMENT_CHANGES = 30 }; // at once; then one a minute

void segment_init(struct segment *, const struct output_config *, gid_t group);
// Makes the file for a frame of that time, in ns since 1970. None may be open. Returns 0; -EBUSY:
// somebody else is writing the file; -EEXIST: what has its name is no file; other negative errno.
int segment_open(struct segment *, int64_t time_ns);
// Whether segment_open may do for the output's path, as far as that shows without making a file;
// the same errors.
int segment_check(const struct output_config *);
bool segment_is_open(const struct segment *);
// Whether `bytes` of that time belong into the open file: there is room below the size to split at,
// and the file is still what its path names.
bool segment_continues(const struct segment *, int64_t time_ns, int64_t bytes);
// Whether a file may end because the stream became another one. A camera that changes its stream
// with each picture would else fill the disk with files.
bool segment_may_change(struct segment *);
// Whether the open file cannot hold the frame's geometry.
bool segment_differs(const struct segment *, const struct result *);
// Whether the frame belongs into the open file: its time and geometry do, there is room below the
// size to split at, and the file is still what its path names.
bool segment_takes(const struct segment *, const struct result *);
// Writes the frame, all of it or nothing. On -EFBIG the file is full and another one may do. Where
// a part of a frame cannot be cut off, the file is closed with it.
int segment_append(struct segment *, const struct result *, const struct stream_position *);
// Writes a part of a container. 0 or negative errno. Nothing of it counts before segment_settle.
int segment_write(struct segment *, const void *data, size_t size, off_t offset);
// The file's first bytes are good by themselves from now on, and are kept.
void segment_settle(struct segment *, off_t bytes);
// Cuts off what is not settled; where that fails the file is closed with it.
void segment_cut(struct segment *);
// Gives the file its name and closes it; an empty one is deleted. On error it stays open.
int segment_finish(struct segment *);
void segment_close(struct segment *); // as it is
// Deletes finished files where `keep` says so; cheap where there is nothing to do.
void segment_keep(struct segment *);
bool segment_keep_is_due(const struct segment *);

struct leftovers {
    int finished, stuck;
    int error; // of the first that is stuck: negative errno; -EILSEQ: it is none of the protocol
    char first_stuck[PATH_BYTES];
};

// Finishes the files that an earlier process left under the output's pattern: cuts off what is no
// whole frame and gives them their names. What that cannot be done with stays as it is. Returns 0,
// or negative errno where nobody could look for them.
int segment_finish_leftovers(const struct output_config *, struct leftovers *ret);
// Whether a file of that name, without its folder, is one of those.
bool segment_is_leftover(const char *pattern, const char *name);
// Whether an output of this or of another process writes the file; false where that cannot be told.
// Takes the file's lock for a moment.
bool segment_is_written(const char *path);

#endif
