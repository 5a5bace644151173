// What a box is told by, when it comes to which settings are fast on it.
#ifndef FRAMED_DAEMON_BASE_FINGERPRINT_H
#define FRAMED_DAEMON_BASE_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

enum { FINGERPRINT_TEXT = 400 };

// Words of printable ASCII that need no quoting inside a text; "" where it is not known.
struct fingerprint {
    char cpu[160]; // "Intel(R) N100, 4 processors": those that this process may use
    char gpu[96];  // "none": there is none
    char driver[64];
};

// `device`: what a backend says of its GPU, whose name stands before the first comma; "": there is
// none; NULL: nobody looked.
void fingerprint_read(struct fingerprint *, const char *device);
// "cpu=...; gpu=...; driver=...", as in the key `tuned`.
char *fingerprint_text(const struct fingerprint *, char to[FINGERPRINT_TEXT]); // returns `to`
// Whether such a text is of another box, and what differs: "gpu is none, was NVIDIA L4". What is
// not known here is not compared.
bool fingerprint_differs(const struct fingerprint *, const char *text, char *to, size_t size);

// The processor's model, "unknown" where the system does not say, and the version of the NVIDIA
// kernel module, "" where there is none. Both return `to`.
char *fingerprint_model(char *to, size_t size);
char *fingerprint_driver(char *to, size_t size);

#endif
