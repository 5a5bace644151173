// Parts of a picture as polygons, each a text of its corners: "0,0 640,0 640,120 0,120". Commas may
// replace spaces, as in Frigate's masks.
#ifndef FRAMED_CONFIG_POLYGONS_H
#define FRAMED_CONFIG_POLYGONS_H

#include <stdbool.h>

#include "config/types.h"

// Returns 0 with *ret for polygons_free; -EINVAL with the mistake in *wrong; or -ENOMEM.
int polygons_parse(struct polygons *ret, const char *const text[], int n, const char **wrong);
int polygons_copy(struct polygons *ret, const struct polygons *from); // 0 or -ENOMEM, *ret empty
void polygons_free(struct polygons *);                                // empties it
bool polygons_equal(const struct polygons *, const struct polygons *);

#endif
