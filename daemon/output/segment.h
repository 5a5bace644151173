// One file of a file sink: whole frames one after another, or a container, whatever fails. If the
// output's path is a pattern, the file is named "NAME.part" while it is written and NAME once it is
// finished; else it has the path from the start, and an existing file is moved aside. Any thread,
// one at a time.
#ifndef FRAMED_DAEMON_OUTPUT_SEGMENT_H
#define FRAMED_DAEMON_OUTPUT_SEGMENT_H

#include <sys/stat.h>
#include <sys/uio.h>

#include "config/config.h"

#define SEGMENT_PART ".part"
enum { PATH_BYTES = 4096 };

// --- finished files
// Enforces `keep` for an output whose path is a pattern: deletes the oldest finished files. Never
// touches files whose names do not match the pattern, nor files that are being written, which have
// other names.
struct keep {
    const struct output_config *config; // outlives it
    int64_t next_ns;                    // CLOCK_MONOTONIC: latest time of the next scan; 0: now
    int64_t finished_bytes;             // of all finished files at the last scan; 0: still too many
    int error;        // of the last scan: negative errno; 0: everything due was deleted
    char failed[256]; // first file that could not be deleted; "": the folder could not be read
    bool logged;      // owned by the caller: `error` was logged
};

// Returns true if keep_enforce would scan: once a minute, after a file was finished, and when
// finished files and the `writing_bytes` of the open file exceed the limit together.
bool keep_is_due(const struct keep *, int64_t writing_bytes);
// Deletes finished files that are too old or exceed the limit of bytes.
void keep_enforce(struct keep *, int64_t writing_bytes);

// --- the file being written
struct segment {
    const struct output_config *config; // outlives the segment
    gid_t group;
    int fd; // -1: no file is open, and the rest is invalid
    dev_t device;
    ino_t inode;
    off_t whole; // bytes of whole frames or fragments; the rest may be cut off; 0: no file is open
    char path[PATH_BYTES];
    int64_t run_ns;                     // begin of the run of `segment`, since 1970; 0: none
    struct keep keep;                   // of finished files
    int64_t change_ns;                  // CLOCK_MONOTONIC: private to segment_may_change
    bool refused_change, logged_change; // a change was refused; logged by the caller
};

enum { SEGMENT_CHANGES = 30 }; // at once; then one a minute

void segment_init(struct segment *, const struct output_config *, gid_t group);
// Creates the file for a frame of that time, in ns since 1970. None may be open. Returns 0; -EBUSY:
// another output or process writes it; -EEXIST: not a regular file; or another negative errno.
int segment_open(struct segment *, int64_t time_ns);
// Checks that segment_open can work for the output's path, as far as possible without creating a
// file. Returns the same errors.
int segment_check(const struct output_config *);
// Returns true if `bytes` of that time belong in the open file: of the same run, with room below
// the size to split at, and the path still names the file.
bool segment_continues(const struct segment *, int64_t time_ns, int64_t bytes);
// Returns true if a file may end because the stream changed. The limit keeps a camera that changes
// its stream with each picture from filling the disk with files.
bool segment_may_change(struct segment *);
// Writes all pieces at the end or nothing, and changes them. -EFBIG: the file is full, another one
// may work. If partly written pieces cannot be cut off, the file is closed with them.
int segment_append(struct segment *, struct iovec *pieces, int n);
// Writes a part of a container, which the caller adds to `whole` later. Returns 0 or a negative
// errno.
int segment_write(struct segment *, const void *data, size_t size, off_t offset);
// Cuts off everything behind `whole`; if that fails, closes the file with it.
void segment_cut(struct segment *);
// Gives the file its name and closes it; deletes an empty one. On error it stays open.
int segment_finish(struct segment *);
// The same, but closes it in any case: on error the next start gives it its name.
int segment_end(struct segment *);
// Returns true if an output of this or another process writes the file; false if unknown. Takes the
// file's lock for a moment.
bool segment_is_written(const char *path);
// Renames a finished "gate.y4m.part" to "gate.y4m", or to the first free name with a number.
// Returns 0 or a negative errno.
int segment_give_name(const char *part);

// --- files left by an earlier process (leftovers.c)
struct leftovers {
    int unread; // the folder cannot be read: negative errno
    int finished, stuck;
    int error; // of the first stuck one: negative errno; -EILSEQ: not of the protocol
    char first_stuck[PATH_BYTES];
};

// Finishes files that an earlier process left under the output's pattern: cuts off partial frames
// and gives them their names. Files for which that fails stay unchanged.
void segment_finish_leftovers(const struct output_config *, struct leftovers *ret);
// Writes the folder of a path, "." if it names none. Returns the bytes of the path before the name.
int segment_folder(const char *path, char to[PATH_BYTES]);

struct segment_files {
    struct segment_file {
        char *path;
        int64_t bytes, modified_ns; // set by keep_enforce
    } * list;
    size_t n;
};

// Finds the files in the pattern's folder whose names match it; free them in any case. Returns 0 or
// a negative errno: the folder cannot be read, or -ENOMEM.
int segment_find_files(struct segment_files *ret, const char *pattern,
                       bool matches(const char *pattern, const char *name));
void segment_free_files(struct segment_files *);
// Returns true if a file of that name, without its folder, is such a leftover.
bool segment_is_leftover(const char *pattern, const char *name);

#endif
