// framed verify IMAGE: the tensor that an output makes of a picture file.
#ifndef FRAMED_DAEMON_CLI_VERIFY_IMAGE_H
#define FRAMED_DAEMON_CLI_VERIFY_IMAGE_H

#include "config/config.h"

// Decodes the first picture of `path`, a picture or a video, as the daemon does, and prints the
// result of the output, a warp: sizes, matrix, the means and a digest of the tensor. Returns
// EXIT_OK, or EXIT_RUNTIME after printing one line to stderr.
int verify_image(const char *path, const struct output_config *output);

#endif
