// Rules that a row of the schema cannot express: between the keys of the root, of a camera or of an
// output, and between these objects.
#ifndef FRAMED_CONFIG_CHECK_H
#define FRAMED_CONFIG_CHECK_H

#include "config/schema.h"

// Notes the mistakes of a camera. `given` is indexed by the rows of camera_table.
void check_camera(struct mistakes *, struct camera_config *camera, const struct given given[],
                  const char *path);

// Notes each rule that `output`, the last one in `config`, breaks, and chooses its protocol. A key
// from `defaults` that this output cannot have is dropped without a mistake. `path` is the output's
// dotted name; `given` is indexed by the rows of output_table.
void check_output(struct mistakes *, const struct config *config, struct output_config *output,
                  const struct given given[], const char *path);

// Notes the mistakes in the root's keys, after all keys are read and batches have their members.
// Chooses the values that depend on the whole: threads, and `overflow` of the cameras' outputs.
// `given` is indexed by the rows of root_table.
void check_root(struct mistakes *, struct config *config, const struct given given[]);

// Checks `cluster` as a whole, and cameras that require labels of nodes. `given` is indexed by the
// rows of root_table.
void check_cluster(struct mistakes *, const struct config *, const struct given[]);

// Notes each key that differs between the running configuration and the next but is not `live`.
// `given` is indexed by the rows of root_table.
void check_restart(struct mistakes *, const struct config *running, const struct config *next,
                   const struct given given[]);

// --- between objects

// Cameras that `paused` names, in the configuration itself and in each of its drop-in files.
struct pauses {
    struct pause {
        struct name_patterns names;
        struct place at;
    } * list;
    int n;
};

// Adds the patterns of one file. Returns 0 or -ENOMEM.
int pauses_add(struct pauses *, const struct name_patterns *, struct place at);
// Must run after all cameras are read. Notes in each camera the place of its pause. Patterns of the
// configuration itself have to match a camera. Those of a drop-in file need not: a requested pause
// may outlive its camera, and then holds for the next one of that name.
void pauses_apply(const struct pauses *, struct mistakes *, struct config *);
void pauses_free(struct pauses *);

// Must run after all cameras and batches are read. Chooses the capacity of each batch, appends a
// copy of the batch to each member's outputs, and notes each camera that cannot be a member, each
// batch without members, and each camera without any output. Returns 0 or -ENOMEM.
int members_join(struct mistakes *, struct config *);
// Must run after batches have their members. Gives each output with a `roi` those regions of its
// camera, and notes regions that the camera lacks. Returns 0 or -ENOMEM.
int regions_choose(struct mistakes *, struct config *);
// Notes each rule that an output with `crops` breaks, between its keys and with the output in
// crops.of, and chooses its capacity and overflow. Values from `defaults` that crops cannot have
// are dropped. Must run after members_join: crops.of may name a share in a batch.
void crops_apply(struct mistakes *, struct config *);
// Notes each output whose sink, detections.sink or shared memory an earlier output has already;
// batches come after cameras. Takes n log n steps for n outputs. Returns 0 or -ENOMEM.
int check_rivals(struct mistakes *, const struct config *);

#endif
