// `bench-cuvid`: pictures per second of NVDEC with its own parser and without libavcodec, as the
// limit for decoding. Each decoder has a thread, which parses a clip in memory again and again, and
// maps each picture once, in the order of display.
// usage: bench-cuvid CLIP DECODERS[,DECODERS...] [SECONDS]
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ffnvcodec/dynlink_loader.h>

#include "tests/bench/clip_units.h"

enum { DECODERS_MAX = 256, SURFACES = 8, UP_S = 60 };

// The clip as one stream with start codes: unit i is [at[i], at[i + 1]).
struct stream {
    struct clip_units clip;
    uint8_t *bytes;
    size_t *at;
};

struct bench_decoder {
    const struct stream *stream;
    CUcontext context;
    CUvideodecoder decoder;
    CUvideoparser parser;
    pthread_t thread;
    _Atomic uint64_t pictures;
    CUresult error; // read after the thread's end
};

static CudaFunctions *cuda;
static CuvidFunctions *cuvid;
static _Atomic bool stop, failed;

// --- the clip

static void append(struct stream *stream, size_t *used, const struct nal *nal)
{
    static const uint8_t start_code[] = {0, 0, 0, 1};
    if (nal->bytes == 0)
        return;
    memcpy(stream->bytes + *used, start_code, sizeof start_code);
    memcpy(stream->bytes + *used + sizeof start_code, nal->data, nal->bytes);
    *used += sizeof start_code + nal->bytes;
}

static int read_stream(struct stream *stream, const char *path)
{
    const struct clip_units *clip = &stream->clip;
    char why[200];
    int rc = clip_units_open(&stream->clip, path, why, sizeof why);
    if (rc < 0) {
        fprintf(stderr, "bench-cuvid: %s\n", why);
        return rc;
    }
    size_t bytes = clip->vps.bytes + clip->sps.bytes + clip->pps.bytes + 12, used = 0;
    for (int i = 0; i < clip->n; i++)
        for (int nal = 0; nal < clip->units[i].n; nal++)
            bytes += clip->units[i].nals[nal].bytes + 4;
    stream->bytes = malloc(bytes);
    stream->at = calloc((size_t)clip->n + 1, sizeof *stream->at);
    if (!stream->bytes || !stream->at)
        return -ENOMEM;
    append(stream, &used, &clip->vps);
    append(stream, &used, &clip->sps);
    append(stream, &used, &clip->pps);
    for (int i = 0; i < clip->n; i++) {
        for (int nal = 0; nal < clip->units[i].n; nal++)
            append(stream, &used, &clip->units[i].nals[nal]);
        stream->at[i + 1] = used;
    }
    return 0;
}

// --- one decoder; the parser's callbacks return 0 on failure

static int CUDAAPI create_decoder(void *opaque, CUVIDEOFORMAT *format)
{
    struct bench_decoder *d = opaque;
    const unsigned long surfaces = format->min_num_decode_surfaces + SURFACES;
    if (d->decoder) // the clip has begun again
        return (int)surfaces;
    CUVIDDECODECREATEINFO info = {
        .ulWidth = format->coded_width,
        .ulHeight = format->coded_height,
        .ulNumDecodeSurfaces = surfaces,
        .CodecType = format->codec,
        .ChromaFormat = format->chroma_format,
        .ulCreationFlags = cudaVideoCreate_PreferCUVID,
        .bitDepthMinus8 = format->bit_depth_luma_minus8,
        .OutputFormat = format->bit_depth_luma_minus8 ? cudaVideoSurfaceFormat_P016
                                                      : cudaVideoSurfaceFormat_NV12,
        .ulTargetWidth = format->coded_width,
        .ulTargetHeight = format->coded_height,
        .ulNumOutputSurfaces = 2,
    };
    d->error = cuvid->cuvidCreateDecoder(&d->decoder, &info);
    return d->error == CUDA_SUCCESS ? (int)surfaces : 0;
}

static int CUDAAPI decode_picture(void *opaque, CUVIDPICPARAMS *picture)
{
    struct bench_decoder *d = opaque;
    d->error = cuvid->cuvidDecodePicture(d->decoder, picture);
    return d->error == CUDA_SUCCESS;
}

// Mapping waits until the picture is decoded.
static int CUDAAPI show_picture(void *opaque, CUVIDPARSERDISPINFO *shown)
{
    struct bench_decoder *d = opaque;
    CUVIDPROCPARAMS how = {.progressive_frame = 1};
    CUdeviceptr at = 0;
    unsigned int pitch = 0;
    if (!shown)
        return 1;
    d->error = cuvid->cuvidMapVideoFrame(d->decoder, shown->picture_index, &at, &pitch, &how);
    if (d->error != CUDA_SUCCESS)
        return 0;
    cuvid->cuvidUnmapVideoFrame(d->decoder, at);
    atomic_fetch_add_explicit(&d->pictures, 1, memory_order_relaxed);
    return 1;
}

static void *run_decoder(void *opaque)
{
    struct bench_decoder *d = opaque;
    const struct stream *stream = d->stream;
    CUVIDPARSERPARAMS params = {
        .CodecType = stream->clip.codec == CLIP_H264 ? cudaVideoCodec_H264 : cudaVideoCodec_HEVC,
        .ulMaxNumDecodeSurfaces = 1,
        .ulMaxDisplayDelay = 2,
        .pUserData = d,
        .pfnSequenceCallback = create_decoder,
        .pfnDecodePicture = decode_picture,
        .pfnDisplayPicture = show_picture,
    };
    CUcontext popped;
    cuda->cuCtxPushCurrent(d->context);
    d->error = cuvid->cuvidCreateVideoParser(&d->parser, &params);
    for (int i = 0; d->error == CUDA_SUCCESS && !atomic_load(&stop); i = (i + 1) % stream->clip.n) {
        CUVIDSOURCEDATAPACKET packet = {
            .flags = CUVID_PKT_ENDOFPICTURE,
            .payload_size = stream->at[i + 1] - stream->at[i],
            .payload = stream->bytes + stream->at[i],
        };
        const CUresult error = cuvid->cuvidParseVideoData(d->parser, &packet);
        if (d->error == CUDA_SUCCESS)
            d->error = error;
    }
    if (d->error != CUDA_SUCCESS)
        atomic_store(&failed, true);
    if (d->parser)
        cuvid->cuvidDestroyVideoParser(d->parser);
    if (d->decoder)
        cuvid->cuvidDestroyDecoder(d->decoder);
    cuda->cuCtxPopCurrent(&popped);
    return NULL;
}

// --- a number of decoders

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void pause_ms(int ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static uint64_t count_pictures(const struct bench_decoder *decoders, int n, int *delivered)
{
    uint64_t sum = 0;
    *delivered = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t pictures = atomic_load(&decoders[i].pictures);
        sum += pictures;
        *delivered += pictures > 0;
    }
    return sum;
}

static void measure_rate(const struct bench_decoder *decoders, int n, double seconds)
{
    const int64_t begun_ns = now_ns();
    int delivered = 0;
    while (delivered < n && !atomic_load(&failed) &&
           now_ns() - begun_ns < UP_S * INT64_C(1000000000)) {
        pause_ms(5);
        count_pictures(decoders, n, &delivered);
    }
    const double up_s = (double)(now_ns() - begun_ns) / 1e9;
    const int64_t from_ns = now_ns();
    const uint64_t before = count_pictures(decoders, n, &delivered);
    pause_ms((int)(seconds * 1000));
    const uint64_t pictures = count_pictures(decoders, n, &delivered) - before;
    const double rate = (double)pictures / ((double)(now_ns() - from_ns) / 1e9);
    if (!atomic_load(&failed))
        printf("%3d decoders: %8.1f pictures/s, all delivered after %.2f s\n", n, rate, up_s);
}

static int measure(const struct stream *stream, CUcontext context, int n, double seconds)
{
    struct bench_decoder *decoders = calloc((size_t)n, sizeof *decoders);
    int started = 0;
    if (!decoders)
        return -ENOMEM;
    atomic_store(&stop, false);
    for (; started < n; started++) {
        decoders[started].stream = stream;
        decoders[started].context = context;
        if (pthread_create(&decoders[started].thread, NULL, run_decoder, &decoders[started]) != 0)
            break;
    }
    measure_rate(decoders, started, seconds);
    atomic_store(&stop, true);
    for (int i = 0; i < started; i++) {
        pthread_join(decoders[i].thread, NULL);
        if (decoders[i].error != CUDA_SUCCESS)
            fprintf(stderr, "bench-cuvid: decoder %d: error %d\n", i, (int)decoders[i].error);
    }
    free(decoders);
    fflush(stdout);
    return started == n && !atomic_load(&failed) ? 0 : -EIO;
}

static int open_gpu(CUcontext *ret)
{
    CUdevice device;
    if (cuda_load_functions(&cuda, NULL) < 0 || cuvid_load_functions(&cuvid, NULL) < 0)
        return -ENODEV;
    if (cuda->cuInit(0) != CUDA_SUCCESS || cuda->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuda->cuDevicePrimaryCtxRetain(ret, device) != CUDA_SUCCESS)
        return -ENODEV;
    return 0;
}

int main(int argc, char **argv)
{
    struct stream stream = {0};
    CUcontext context;
    const double seconds = argc == 4 ? atof(argv[3]) : 5;
    if (argc < 3 || argc > 4 || !(seconds > 0)) {
        fputs("usage: bench-cuvid CLIP DECODERS[,DECODERS...] [SECONDS]\n", stderr);
        return 2;
    }
    int rc = open_gpu(&context);
    if (rc < 0)
        fputs("bench-cuvid: no GPU with NVDEC\n", stderr);
    if (rc == 0)
        rc = read_stream(&stream, argv[1]);
    for (char *at = argv[2]; rc == 0 && *at; at += *at == ',') {
        const long n = strtol(at, &at, 10);
        rc = n > 0 && n <= DECODERS_MAX && (!*at || *at == ',')
                 ? measure(&stream, context, (int)n, seconds)
                 : -EINVAL;
    }
    free(stream.bytes);
    free(stream.at);
    clip_units_close(&stream.clip);
    return rc < 0;
}
