// Decoded pictures as images: AVFrame objects, mapped without a copy if a kernel reads their
// format, else converted by libswscale.
#ifndef FRAMED_DAEMON_CODEC_PICTURE_H
#define FRAMED_DAEMON_CODEC_PICTURE_H

#include "daemon/codec/frame.h"

struct AVFrame;
struct buffers;
struct pictures; // of one decoder: one thread takes and maps, any thread releases
struct picture;

// Downloaded and converted pictures lie in `buffers`, which must be closed later.
int pictures_open(struct pictures **ret, struct buffers *buffers);
void pictures_close(struct pictures *); // pictures that are out stay valid; accepts NULL
// Gives the frames released since the last call back to the decoder's device, so that the releasing
// threads need not wait for it.
void pictures_reap(struct pictures *);

struct picture *picture_take(struct pictures *); // NULL: no memory
void picture_release(void *picture);             // any thread; accepts NULL
struct AVFrame *picture_frame(struct picture *); // the decoder's output goes here

bool picture_on_device(const struct picture *);            // before picture_map
enum AVPixelFormat picture_format(const struct picture *); // the same; on a device of its samples
// Makes the picture's frame the image of *ret, which then owns it; does not touch ret->info. A
// picture in device memory is downloaded unless `keep_on_device`. `converted` gets the name of the
// format that libswscale converted from, or NULL. On error (-ENOTSUP: too large, or no reader for
// the format; -EIO, -ENOMEM) the caller keeps the picture.
int picture_map(struct picture *, bool keep_on_device, struct frame *ret, const char **converted);

#endif
