// A driver for libva that decodes nothing: it returns the pictures of a file, in libavcodec's
// decoding order. The way from a packet to a picture on the host is thus libavcodec's and libva's
// own; only the GPU is missing. Preloaded too, it makes libva accept /dev/null as a GPU's node. For
// LIBVA_DRIVER_NAME=fake and that device:
//
//   FRAMED_VA_PICTURES  a folder with the files h264-8, hevc-8 and hevc-10: two 32-bit numbers,
//                       width and height, then the pictures, NV12 or P010
//   FRAMED_VA           refused:N, the call that ends picture N fails; hang:N, picture N is never
//                       ready; copy:N, it cannot be copied; wrong:N, it has a wrong bit;
//                       vendor:0, the driver has another name
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <va/va_backend.h>

enum { OBJECTS_MAX = 4096 };

// Surfaces, buffers and images; the index is the identifier.
static struct object {
    uint8_t *data; // NULL: free
    int width, height, deep, shown;
} objects[OBJECTS_MAX];

static struct {
    const uint8_t *file; // mapped
    size_t bytes;
    uint32_t width, height;
    int deep, pictures, shown; // pictures of the file; shown by this context
    VASurfaceID target;
} context;

static int wants(const char *fault, int count)
{
    const char *wanted = getenv("FRAMED_VA");
    const size_t length = strlen(fault);
    return wanted && strncmp(wanted, fault, length) == 0 && wanted[length] == ':' &&
           count >= atoi(wanted + length + 1);
}

// Index 0 is not a valid identifier.
static VAGenericID make(size_t bytes, int width, int height, int deep)
{
    for (VAGenericID i = 1; i < OBJECTS_MAX; i++)
        if (!objects[i].data) {
            objects[i] = (struct object){calloc(1, bytes + 64), width, height, deep, 0};
            return i;
        }
    abort();
}

static void drop(VAGenericID id)
{
    free(objects[id].data);
    objects[id].data = NULL;
}

// --- profiles and pictures

static const struct {
    VAProfile profile;
    const char *file;
} profiles[] = {{VAProfileH264ConstrainedBaseline, "h264-8"},
                {VAProfileH264Main, "h264-8"},
                {VAProfileH264High, "h264-8"},
                {VAProfileHEVCMain, "hevc-8"},
                {VAProfileHEVCMain10, "hevc-10"}};
enum { PROFILES = sizeof profiles / sizeof *profiles };

static VAStatus query_profiles(VADriverContextP c, VAProfile *list, int *n)
{
    (void)c;
    for (int i = 0; i < PROFILES; i++)
        list[i] = profiles[i].profile;
    *n = PROFILES;
    return VA_STATUS_SUCCESS;
}

static VAStatus query_entrypoints(VADriverContextP c, VAProfile profile, VAEntrypoint *list, int *n)
{
    (void)c, (void)profile;
    list[0] = VAEntrypointVLD;
    *n = 1;
    return VA_STATUS_SUCCESS;
}

static VAStatus get_attributes(VADriverContextP c, VAProfile profile, VAEntrypoint entrypoint,
                               VAConfigAttrib *list, int n)
{
    (void)c, (void)profile, (void)entrypoint;
    for (int i = 0; i < n; i++)
        list[i].value = list[i].type == VAConfigAttribRTFormat
                            ? VA_RT_FORMAT_YUV420 | VA_RT_FORMAT_YUV420_10
                            : VA_ATTRIB_NOT_SUPPORTED;
    return VA_STATUS_SUCCESS;
}

// A configuration's identifier is its profile's index plus 1.
static VAStatus create_config(VADriverContextP c, VAProfile profile, VAEntrypoint entrypoint,
                              VAConfigAttrib *list, int n, VAConfigID *ret)
{
    (void)c, (void)entrypoint, (void)list, (void)n;
    for (int i = 0; i < PROFILES; i++)
        if (profiles[i].profile == profile) {
            *ret = (VAConfigID)i + 1;
            return VA_STATUS_SUCCESS;
        }
    return VA_STATUS_ERROR_UNSUPPORTED_PROFILE;
}

static VAStatus destroy_config(VADriverContextP c, VAConfigID id)
{
    (void)c, (void)id;
    return VA_STATUS_SUCCESS;
}

static VAStatus query_surfaces(VADriverContextP c, VAConfigID id, VASurfaceAttrib *list,
                               unsigned *n)
{
    const int deep = profiles[id - 1].profile == VAProfileHEVCMain10;
    const struct {
        VASurfaceAttribType type;
        int value;
    } facts[] = {{VASurfaceAttribPixelFormat, deep ? VA_FOURCC_P010 : VA_FOURCC_NV12},
                 {VASurfaceAttribMinWidth, 16},
                 {VASurfaceAttribMinHeight, 16},
                 {VASurfaceAttribMaxWidth, 4096},
                 {VASurfaceAttribMaxHeight, 4096}};
    (void)c;
    for (unsigned i = 0; list && i < 5; i++) {
        list[i] = (VASurfaceAttrib){.type = facts[i].type, .flags = VA_SURFACE_ATTRIB_GETTABLE};
        list[i].value.type = VAGenericValueTypeInteger;
        list[i].value.value.i = facts[i].value;
    }
    *n = 5;
    return VA_STATUS_SUCCESS;
}

// --- surfaces and a context

static VAStatus create_surfaces2(VADriverContextP c, unsigned format, unsigned width,
                                 unsigned height, VASurfaceID *list, unsigned n,
                                 VASurfaceAttrib *attributes, unsigned n_attributes)
{
    (void)c, (void)attributes, (void)n_attributes;
    for (unsigned i = 0; i < n; i++)
        list[i] = make((size_t)width * height * 3, (int)width, (int)height,
                       format == VA_RT_FORMAT_YUV420_10);
    return VA_STATUS_SUCCESS;
}

static VAStatus create_surfaces(VADriverContextP c, int width, int height, int format, int n,
                                VASurfaceID *list)
{
    return create_surfaces2(c, (unsigned)format, (unsigned)width, (unsigned)height, list,
                            (unsigned)n, NULL, 0);
}

static VAStatus destroy_surfaces(VADriverContextP c, VASurfaceID *list, int n)
{
    (void)c;
    for (int i = 0; i < n; i++)
        drop(list[i]);
    return VA_STATUS_SUCCESS;
}

static VAStatus create_context(VADriverContextP c, VAConfigID id, int width, int height, int flags,
                               VASurfaceID *list, int n, VAContextID *ret)
{
    char path[512];
    struct stat st;
    (void)c, (void)width, (void)height, (void)flags, (void)list, (void)n;
    snprintf(path, sizeof path, "%s/%s", getenv("FRAMED_VA_PICTURES"), profiles[id - 1].file);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) < 0)
        return VA_STATUS_ERROR_ALLOCATION_FAILED;
    context.bytes = (size_t)st.st_size;
    context.file = mmap(NULL, context.bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    memcpy(&context.width, context.file, 4);
    memcpy(&context.height, context.file + 4, 4);
    context.deep = profiles[id - 1].profile == VAProfileHEVCMain10;
    const size_t picture = (size_t)context.width * context.height * 3 / 2 << context.deep;
    context.pictures = (int)((context.bytes - 8) / picture);
    context.shown = 0;
    *ret = 1;
    return VA_STATUS_SUCCESS;
}

static VAStatus destroy_context(VADriverContextP c, VAContextID id)
{
    (void)c, (void)id;
    munmap((void *)context.file, context.bytes);
    return VA_STATUS_SUCCESS;
}

// --- buffers

static VAStatus create_buffer(VADriverContextP c, VAContextID id, VABufferType type, unsigned size,
                              unsigned n, void *data, VABufferID *ret)
{
    (void)c, (void)id, (void)type;
    *ret = make((size_t)size * n, 0, 0, 0);
    if (data)
        memcpy(objects[*ret].data, data, (size_t)size * n);
    return VA_STATUS_SUCCESS;
}

static VAStatus set_elements(VADriverContextP c, VABufferID id, unsigned n)
{
    (void)c, (void)id, (void)n;
    return VA_STATUS_SUCCESS;
}

static VAStatus map_buffer(VADriverContextP c, VABufferID id, void **ret)
{
    (void)c;
    *ret = objects[id].data;
    return VA_STATUS_SUCCESS;
}

static VAStatus unmap_buffer(VADriverContextP c, VABufferID id)
{
    (void)c, (void)id;
    return VA_STATUS_SUCCESS;
}

static VAStatus destroy_buffer(VADriverContextP c, VABufferID id)
{
    (void)c;
    drop(id);
    return VA_STATUS_SUCCESS;
}

// --- pictures

static VAStatus begin_picture(VADriverContextP c, VAContextID id, VASurfaceID target)
{
    (void)c, (void)id;
    context.target = target;
    return VA_STATUS_SUCCESS;
}

static VAStatus render_picture(VADriverContextP c, VAContextID id, VABufferID *list, int n)
{
    (void)c, (void)id, (void)list, (void)n;
    return VA_STATUS_SUCCESS;
}

static VAStatus end_picture(VADriverContextP c, VAContextID id)
{
    struct object *surface = &objects[context.target];
    const size_t row = (size_t)context.width << context.deep;
    const uint8_t *from =
        context.file + 8 +
        row * (context.height * 3 / 2) * (size_t)(context.shown % context.pictures);
    (void)c, (void)id;
    surface->shown = ++context.shown;
    if (wants("refused", context.shown))
        return VA_STATUS_ERROR_OPERATION_FAILED;
    const size_t stride = (size_t)surface->width << context.deep;
    for (uint32_t y = 0; y < context.height * 3 / 2; y++, from += row) {
        const uint32_t to = y < context.height ? y : y - context.height + (uint32_t)surface->height;
        memcpy(surface->data + to * stride, from, row);
    }
    if (wants("wrong", context.shown))
        surface->data[stride * 100 + 100] ^= 0x40;
    return VA_STATUS_SUCCESS;
}

static VAStatus sync_surface(VADriverContextP c, VASurfaceID id)
{
    (void)c;
    while (wants("hang", objects[id].shown))
        pause();
    return VA_STATUS_SUCCESS;
}

static VAStatus query_status(VADriverContextP c, VASurfaceID id, VASurfaceStatus *ret)
{
    (void)c, (void)id;
    *ret = VASurfaceReady;
    return VA_STATUS_SUCCESS;
}

// --- images

static VAStatus query_formats(VADriverContextP c, VAImageFormat *list, int *n)
{
    (void)c;
    list[0] = (VAImageFormat){.fourcc = VA_FOURCC_NV12, .byte_order = VA_LSB_FIRST};
    list[1] = (VAImageFormat){.fourcc = VA_FOURCC_P010, .byte_order = VA_LSB_FIRST};
    *n = 2;
    return VA_STATUS_SUCCESS;
}

static VAStatus create_image(VADriverContextP c, VAImageFormat *format, int width, int height,
                             VAImage *ret)
{
    const unsigned deep = format->fourcc == VA_FOURCC_P010;
    const unsigned stride = (unsigned)width << deep;
    (void)c;
    *ret = (VAImage){.format = *format,
                     .width = (uint16_t)width,
                     .height = (uint16_t)height,
                     .num_planes = 2,
                     .pitches = {stride, stride},
                     .offsets = {0, stride * (unsigned)height},
                     .data_size = stride * (unsigned)height * 3 / 2};
    ret->buf = make(ret->data_size, width, height, (int)deep);
    ret->image_id = make(1, width, height, (int)ret->buf);
    return VA_STATUS_SUCCESS;
}

static VAStatus derive_image(VADriverContextP c, VASurfaceID id, VAImage *ret)
{
    (void)c, (void)id, (void)ret;
    return VA_STATUS_ERROR_OPERATION_FAILED;
}

static VAStatus destroy_image(VADriverContextP c, VAImageID id)
{
    (void)c;
    drop((VAGenericID)objects[id].deep);
    drop(id);
    return VA_STATUS_SUCCESS;
}

static VAStatus get_image(VADriverContextP c, VASurfaceID id, int x, int y, unsigned width,
                          unsigned height, VAImageID image)
{
    const struct object *from = &objects[id], *to = &objects[objects[image].deep];
    const size_t stride = (size_t)from->width << to->deep, out = (size_t)to->width << to->deep;
    (void)c, (void)x, (void)y;
    if (wants("copy", from->shown))
        return VA_STATUS_ERROR_OPERATION_FAILED;
    for (size_t plane = 0; plane < 2; plane++)
        for (unsigned row = 0; row < height >> plane; row++)
            memcpy(to->data + (plane * (size_t)to->height + row) * out,
                   from->data + (plane * (size_t)from->height + row) * stride,
                   (size_t)width << to->deep);
    return VA_STATUS_SUCCESS;
}

// --- the node's type for libdrm

int drmGetNodeTypeFromFd(int file);
int drmGetNodeTypeFromFd(int file)
{
    (void)file;
    return 2; // a render node
}

// --- functions that libva requires and nothing calls

static VAStatus nothing(void)
{
    return VA_STATUS_ERROR_UNIMPLEMENTED;
}

static VAStatus terminate(VADriverContextP c)
{
    (void)c;
    return VA_STATUS_SUCCESS;
}

VAStatus __vaDriverInit_1_0(VADriverContextP c);
VAStatus __vaDriverInit_1_0(VADriverContextP c)
{
    struct VADriverVTable *table = c->vtable;
    c->version_major = 1;
    c->version_minor = 0;
    c->max_profiles = PROFILES;
    c->max_entrypoints = 1;
    c->max_attributes = 1;
    c->max_image_formats = 2;
    c->max_subpic_formats = 1;
    c->max_display_attributes = 1;
    c->str_vendor = wants("vendor", 0) ? "another without a GPU" : "a driver without a GPU";
#define NOTHING(name) table->name = (__typeof__(table->name))(void (*)(void))nothing
    NOTHING(vaQueryConfigAttributes);
    NOTHING(vaPutSurface);
    NOTHING(vaSetImagePalette);
    NOTHING(vaPutImage);
    NOTHING(vaQuerySubpictureFormats);
    NOTHING(vaCreateSubpicture);
    NOTHING(vaDestroySubpicture);
    NOTHING(vaSetSubpictureImage);
    NOTHING(vaSetSubpictureChromakey);
    NOTHING(vaSetSubpictureGlobalAlpha);
    NOTHING(vaAssociateSubpicture);
    NOTHING(vaDeassociateSubpicture);
    NOTHING(vaQueryDisplayAttributes);
    NOTHING(vaGetDisplayAttributes);
    NOTHING(vaSetDisplayAttributes);
    NOTHING(vaBufferInfo);
    NOTHING(vaLockSurface);
    NOTHING(vaUnlockSurface);
    table->vaTerminate = terminate;
    table->vaQueryConfigProfiles = query_profiles;
    table->vaQueryConfigEntrypoints = query_entrypoints;
    table->vaGetConfigAttributes = get_attributes;
    table->vaCreateConfig = create_config;
    table->vaDestroyConfig = destroy_config;
    table->vaQuerySurfaceAttributes = query_surfaces;
    table->vaCreateSurfaces = create_surfaces;
    table->vaCreateSurfaces2 = create_surfaces2;
    table->vaDestroySurfaces = destroy_surfaces;
    table->vaCreateContext = create_context;
    table->vaDestroyContext = destroy_context;
    table->vaCreateBuffer = create_buffer;
    table->vaBufferSetNumElements = set_elements;
    table->vaMapBuffer = map_buffer;
    table->vaUnmapBuffer = unmap_buffer;
    table->vaDestroyBuffer = destroy_buffer;
    table->vaBeginPicture = begin_picture;
    table->vaRenderPicture = render_picture;
    table->vaEndPicture = end_picture;
    table->vaSyncSurface = sync_surface;
    table->vaQuerySurfaceStatus = query_status;
    table->vaQueryImageFormats = query_formats;
    table->vaCreateImage = create_image;
    table->vaDeriveImage = derive_image;
    table->vaDestroyImage = destroy_image;
    table->vaGetImage = get_image;
    return VA_STATUS_SUCCESS;
}
