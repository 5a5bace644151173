// Objects of a table (the root, a camera, an output): their defaults, copies and places in the
// file.
#ifndef FRAMED_CONFIG_OBJECT_H
#define FRAMED_CONFIG_OBJECT_H

#include "config/schema.h"

// Sets a zeroed object to the defaults of the rows. 0 or -ENOMEM.
int object_init(const struct table *, void *object);
// Gives `object` its own copy of the memory that a memcpy made it share. 0; -ENOMEM, and members
// that could not be copied are empty.
int object_own(const struct table *, void *object);
// Makes `to` a copy with name and place but without items (VALUE_ITEMS), for object_free. 0;
// -ENOMEM, and `to` is empty.
int object_copy_to(const struct table *, void *to, const void *object);
// A copy with name and place but without items (VALUE_ITEMS), for object_free and then free. NULL:
// no memory.
void *object_copy(const struct table *, const void *object);
// Whether all values are equal. Items, name, place, keys of other kernels, patterns and `rois` do
// not count.
bool object_equal(const struct table *, const void *a, const void *b);
void object_free(const struct table *,
                 void *object); // frees what it owns and empties it, not itself

char **object_name(const struct table *, void *object);
struct place *object_place(const struct table *, void *object);

// Notes where the value of a row stands. Line 0: not in the file; line -1: the value is wrong or
// not known, so the member does not hold it.
void object_set_place(const struct table *, void *object, const struct config_row *, struct place);
// Where the value of `key` stands, or the object itself if the file gives it none.
struct place object_value_place(const struct table *, const void *object, const char *key);
// Whether the member holds the value in the file, or a default if there is none.
bool object_is_known(const struct table *, const void *object, const char *key);

// Sets what is shown in place of the member's value, and takes over the text; NULL: the value. 0 or
// -ENOMEM.
int object_set_written(const struct table *, void *object, const struct config_row *, char *text);
// NULL: no reference took part in the value of `key`.
const char *object_written(const struct table *, const void *object, const char *key);
// Returns the member's text as messages show it: as it was written, else `value`.
const char *object_shown(const struct table *, const void *object, const char *key,
                         const char *value);
// The URL of a camera, or of an output's sink, as logs and answers show it, cut to `size` bytes.
// Each returns `to`.
char *config_camera_url(const struct camera_config *, char *to, size_t size);
char *config_sink_url(const struct output_config *, char *to, size_t size);

// The objects of a VALUE_ITEMS row and their number.
void **object_items(const struct config_row *, void *object);
int *object_count(const struct config_row *, void *object);

// Copies of a camera, without its outputs, and of an output, which outlive the configuration they
// are from. NULL: no memory.
struct camera_config *config_copy_camera(const struct camera_config *);
struct output_config *config_copy_output(const struct output_config *);
void config_free_camera(struct camera_config *); // such copies; accept NULL
void config_free_output(struct output_config *);
// A configuration that has the keys of `notify` alone, for config_free. NULL: no memory.
struct config *config_copy_notify(const struct config *);
bool config_same_notify(const struct config *, const struct config *);
// Whether both have the same values, whatever their names and places; of cameras also whether both
// are paused, and without their outputs.
bool config_same_camera(const struct camera_config *, const struct camera_config *);
bool config_same_output(const struct output_config *, const struct output_config *);

#endif
