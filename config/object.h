// Objects of a table (a camera, an output): begun with the defaults of its rows, copied, freed.
#ifndef FRAMED_CONFIG_OBJECT_H
#define FRAMED_CONFIG_OBJECT_H

#include "config/schema.h"

int object_init(const struct table *, void *object); // a zeroed one; 0 or -ENOMEM
// Gives `object` its own copies of what a memcpy made it share with another; what cannot be copied
// is left empty. 0 or -ENOMEM.
int object_own(const struct table *, void *object);
// A copy of its own with name and place, without the items of a VALUE_ITEMS row; to be freed after
// object_free. NULL: no memory.
void *object_copy(const struct table *, const void *object);
// Whether all rows that the object's kernel knows have equal values, items aside; name and place do
// not count.
bool object_equal(const struct table *, const void *a, const void *b);
void object_free(const struct table *, void *object); // what it owns, not itself; leaves it empty

char **object_name(const struct table *, void *object);
struct place *object_place(const struct table *, void *object);

// Notes where the value of a row stands. Line 0: not in the file; a negative one: there is a value
// that the member does not hold, since it is wrong.
void object_set_place(const struct table *, void *object, const struct config_row *, struct place);
// Where the value of `key` stands; where the file does not give the object one, its own place.
struct place object_value_place(const struct table *, const void *object, const char *key);
// Whether the member holds what the file says, or a default where it says nothing.
bool object_is_known(const struct table *, const void *object, const char *key);

// The objects of a VALUE_ITEMS row and their number.
void **object_items(const struct config_row *, void *object);
int *object_count(const struct config_row *, void *object);

// Copies of a camera, without its outputs, and of an output, which outlive the configuration they
// are from. NULL: no memory.
struct camera_config *config_copy_camera(const struct camera_config *);
struct output_config *config_copy_output(const struct output_config *);
void config_free_camera(struct camera_config *); // such copies; accept NULL
void config_free_output(struct output_config *);
// Whether both have the same values, whatever their names and places; of cameras without their
// outputs.
bool config_same_camera(const struct camera_config *, const struct camera_config *);
bool config_same_output(const struct output_config *, const struct output_config *);

#endif
