// Parts of a picture as polygons, each a text of its corners: "0,0 640,0 640,120 0,120". Commas may
// stand in place of spaces, as in Frigate's masks.
#ifndef FRAMED_CONFIG_POLYGONS_H
#define FRAMED_CONFIG_POLYGONS_H

#include <stdbool.h>

#include "config/types.h"

// 0 with *ret for polygons_free; -EINVAL with what is wrong in *wrong; -ENOMEM.
int polygons_parse(struct polygons *ret, const char *const text[], int n, const char **wrong);
int polygons_copy(struct polygons *ret, const struct polygons *from); // 0; -ENOMEM, *ret is empty
void polygons_free(struct polygons *);                                // empties it
bool polygons_equal(const struct polygons *, const struct polygons *);

#endif
