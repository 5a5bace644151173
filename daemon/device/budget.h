// What memory a configuration takes, computed before anything runs. Needs no device; any thread.
#ifndef FRAMED_DAEMON_DEVICE_BUDGET_H
#define FRAMED_DAEMON_DEVICE_BUDGET_H

#include "config/config.h"
#include "daemon/device/placement.h"
#include "kernels/backend.h"

enum {
    FRAMES_IN_FLIGHT_MAX = 4, // the most frames of one camera in a backend at once
    FRAMES_HELD_MAX = FRAMES_IN_FLIGHT_MAX + 1, // with the one that previews are made of
};

// How many frames of one camera this backend has at once: more would only hold memory.
int frames_in_flight(const struct backend_driver *);

// Device memory of one decoder of NVDEC: its surfaces, those for frames that are held among them
// (0: not known), and what it keeps beside them. As measured on an H200, driver 580.
size_t budget_nvdec(enum stream_codec, int width, int height, int bits, int surfaces);

// The camera's stream; before its first picture one of 1920x1080 is assumed, with as many pictures
// as H.264 allows. Pictures are at least as large as `picture`.
struct stream_memory budget_stream(const struct camera_config *);

// One camera with pictures of 8 bits, on that backend; `nvdec`: decoded there. Outputs that cannot
// be made of such a picture are left out. `pinned` is all of its host memory: pictures and slots,
// page-locked where the backend pins any, and what its input and its decoder take.
struct memory_need budget_camera(const struct camera_config *, const struct backend_driver *,
                                 bool nvdec);

// Bytes planned for the pictures and tables of the camera's decoder on the cpu before it has shown
// any. 0: a file without `picture`, which takes all with its first picture.
size_t budget_decoder(const struct camera_config *);

// Pictures that an output with crops keeps of a camera with num / den pictures a second (0/0: not
// known): those that come within crops.keep, and one more.
int budget_kept_pictures(const struct crops_config *, int num, int den);
// The same for a camera that has not come yet.
int budget_planned_pictures(const struct camera_config *, const struct output_config *);

// The results of a batch, which its cameras share and budget_camera leaves out.
struct memory_need budget_batch(const struct config *, const struct output_config *batch,
                                const struct backend_driver *);

// What such a camera takes of a GPU with that backend, as budget_check counts it.
struct gpu_share budget_share(const struct camera_config *, const struct backend_driver *,
                              bool nvdec);

// Whether a camera is to be decoded by NVDEC, on a box that has it.
bool budget_wants_nvdec(const struct camera_config *, const struct backend_driver *);

// What the cameras share beside what each takes; `nvdec`: this box has it.
struct memory_need budget_shared(const struct config *, const struct backend_driver *, bool nvdec);

// All cameras and batches together, and what they share; `nvdec`: this box has it.
struct memory_need budget_sum(const struct config *, const struct backend_driver *, bool nvdec);

// Bytes of the host for all of them where each decoder on the cpu counts with budget_decoder: what
// decoders need beyond it, they take from the memory_reserve.
size_t budget_reserved(const struct config *, const struct backend_driver *, bool nvdec);

// Memory that may be used of a device that has `device_bytes` (0: not known): `cuda.memory`,
// and never more than leaves some for contexts and kernels. SIZE_MAX where nothing is known.
size_t budget_limit(const struct config *, size_t device_bytes);

// Memory of this box, or what its control group allows where that is less, bytes.
size_t budget_host_limit(void);

// Returns whether all cameras have room: on each GPU within its limit (budget_limit), placed in
// their order by placement_choose, and in the memory of this box and its control group. A file
// without `picture` counts without its decoder, at a reload too. n 0: no GPU. `framed check` and
// `framed run` call it before a camera starts. 0; or -ENOSPC with a sentence in `why`: "cameras
// need 151.2 GiB of device memory, cuda.memory allows 139.0 GiB", and the keys.
int budget_check(const struct config *, const struct backend_driver *, bool nvdec,
                 const struct placement_gpu[], int n, char *why, size_t size);

#endif
