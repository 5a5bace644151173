// Decoded pictures as images: AVFrame objects from a pool, mapped without a copy where a kernel
// reads their format, else brought to one that it reads by libswscale.
#ifndef FRAMED_DAEMON_DECODE_PICTURE_H
#define FRAMED_DAEMON_DECODE_PICTURE_H

#include "daemon/decode/frame.h"

struct AVFrame;
struct buffers;
struct pictures; // the pool of one decoder: one thread takes and maps, any releases
struct picture;

// What is downloaded or converted comes to lie in `buffers`, which close later.
int pictures_open(struct pictures **ret, struct buffers *buffers);
void pictures_close(struct pictures *); // pictures that are out stay valid; accepts NULL
// Gives back to the decoder's device the frames that were released since the last call: those who
// release them are not to wait for it.
void pictures_reap(struct pictures *);

struct picture *picture_take(struct pictures *); // NULL: no memory
void picture_release(void *picture);             // any thread; accepts NULL
struct AVFrame *picture_frame(struct picture *); // where the decoder puts its output

bool picture_on_device(const struct picture *);            // before picture_map
enum AVPixelFormat picture_format(const struct picture *); // the same; of samples on a device too
// Makes the picture's frame the image of *ret, which then owns it; ret->info is left alone. A
// picture in device memory is downloaded unless `keep_on_device`. `converted` gets the name of the
// format that libswscale had to convert from, or NULL. On error (-ENOTSUP: too large, or nothing
// reads it; -EIO, -ENOMEM) the picture stays the caller's.
int picture_map(struct picture *, bool keep_on_device, struct frame *ret, const char **converted);

#endif
