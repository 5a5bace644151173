// Objects of a table (the root, a camera, an output): their defaults, presets, copies, differences
// and places in the file.
#ifndef FRAMED_CONFIG_OBJECT_H
#define FRAMED_CONFIG_OBJECT_H

#include "config/schema.h"

// Sets a zeroed object to the rows' defaults. Returns 0 or -ENOMEM.
int object_init(const struct table *, void *object);
// Gives `object` its own copy of memory that it shares after a memcpy. Returns 0, or -ENOMEM with
// the members empty that were not copied.
int object_own(const struct table *, void *object);
// Makes `to` a copy with name and place but without items (VALUE_ITEMS), for object_free. Returns
// 0, or -ENOMEM with `to` empty.
int object_copy_to(const struct table *, void *to, const void *object);
void object_free(const struct table *,
                 void *object); // frees its members and empties it, but not itself

char **object_name(const struct table *, void *object);
struct place *object_place(const struct table *, void *object);

// Notes the place of a row's value. Line 0: not in the file; line -1: the value is wrong or
// unknown, so the member does not hold it.
void object_set_place(const struct table *, void *object, const struct config_row *, struct place);
// Returns the place of the value of `key`, or of the object itself if the file gives it none.
struct place object_value_place(const struct table *, const void *object, const char *key);
// Returns true if the member holds the value in the file, or a default if there is none.
bool object_is_known(const struct table *, const void *object, const char *key);

// Sets the text to show in place of the member's value, and takes it over; NULL: the value. Returns
// 0 or -ENOMEM.
int object_set_written(const struct table *, void *object, const struct config_row *, char *text);
// Returns NULL if no reference took part in the value of `key`.
const char *object_written(const struct table *, const void *object, const char *key);
// Returns the member's text for messages: as it was written, else `value`.
const char *object_shown(const struct table *, const void *object, const char *key,
                         const char *value);
// Each writes the URL of a camera, or of an output's sink, as logs and answers show it, cut to
// `size` bytes. Returns `to`.
char *config_camera_url(const struct camera_config *, char *to, size_t size);
char *config_sink_url(const struct output_config *, char *to, size_t size);

// Objects of a VALUE_ITEMS row and their number.
void **object_items(const struct config_row *, void *object);
int *object_count(const struct config_row *, void *object);

// Each copies a camera, without its outputs, or an output. The copy outlives the configuration.
// NULL: no memory.
struct camera_config *config_copy_camera(const struct camera_config *);
struct output_config *config_copy_output(const struct output_config *);
void config_free_camera(struct camera_config *); // frees such a copy; accepts NULL
void config_free_output(struct output_config *);
// Returns a configuration with the keys of `notify` alone, for config_free. NULL: no memory.
struct config *config_copy_notify(const struct config *);
bool config_same_notify(const struct config *, const struct config *);
// Returns true if both have the same values, whatever their names and places. Cameras must also
// match in generation and pause; their outputs are not compared.
bool config_same_camera(const struct camera_config *, const struct camera_config *);
bool config_same_output(const struct output_config *, const struct output_config *);

// --- presets: conventions of frameworks, as values of an output's keys

// If the file sets `preset`, sets the keys of presets that the file does not set beside it. A
// preset has a value for each of them, which replaces any earlier value. `tiles.size` sets `size`
// in the same way. `given` is indexed by the rows of output_table.
void preset_apply(struct output_config *output, const struct given given[]);
// Calls `each` for all of these keys with their values as a user writes them, one text or a list of
// three. If a key comes twice, the later value holds.
void preset_each(enum preset,
                 void (*each)(void *opaque, const char *key, const char *const text[], int n),
                 void *opaque);
// Sets all of these keys to the values of output->preset.
void preset_values(struct output_config *output);

// --- the key `detections` of an output: its sink has the same keys as an output's own

// Returns an output with these keys, for opening and checking the sink of the lines. Its texts
// remain the original output's.
struct output_config detections_as_output(const struct output_config *);
bool detections_equal(const struct output_config *, const struct output_config *);
// Replaces the detections of `to` by a copy. Returns 0, or -ENOMEM with `to` unchanged.
int detections_copy(struct output_config *to, const struct output_config *from);
void detections_free(struct output_config *);

// --- differences between two configurations

enum config_change { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CHANGED };

// Calls `each` for every camera, output and batch that is added, removed or has different values,
// and for the root's own values, in the order of the tables and then of `after`. `path` is dotted:
// "cameras.gate.outputs.detector", "" for the root. `keys` lists the changed keys: "size, fit".
// Both are valid during the call. A camera that is paused or resumed has "paused" among its keys.
void config_difference(const struct config *before, const struct config *after,
                       void (*each)(void *opaque, const char *path, enum config_change,
                                    const char *keys),
                       void *opaque);

#endif
