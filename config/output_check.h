// State of one output while the rules between its keys are checked: look-up of its keys in the
// file, and notes of mistakes.
#ifndef FRAMED_CONFIG_OUTPUT_CHECK_H
#define FRAMED_CONFIG_OUTPUT_CHECK_H

#include "config/mistakes.h"
#include "config/schema.h"

struct output_check {
    struct mistakes *mistakes;
    const struct config *config;
    struct output_config *output;
    const struct given *given;
    const char *path;
    const char *section; // "", or "detections." if `output` is from detections_as_output
    const struct output_config *whole; // the output itself, or the owner of the detections
};

const struct given *given_of_key(const struct output_check *, const char *key);
// Returns true if the file sets the key in this output, not under `defaults`.
bool key_is_given(const struct output_check *, const char *key);
bool key_is_wrong(const struct output_check *, const char *key); // a mistake is noted already
// Returns the value's place; if it is from `defaults`, the output's.
struct place place_of_value(const struct output_check *, const char *key);

__attribute__((format(printf, 4, 5))) void refuse_at(const struct output_check *, struct place,
                                                     const char *key, const char *format, ...);
// Each notes a mistake: that the output has the key, or that the key has this value.
#define refuse_key(c, name, ...)   refuse_at(c, given_of_key(c, name)->key, name, __VA_ARGS__)
#define refuse_value(c, name, ...) refuse_at(c, place_of_value(c, name), name, __VA_ARGS__)

#endif
