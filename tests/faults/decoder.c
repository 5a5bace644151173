// Preloaded into a framed, or linked to a test: makes `decode: v4l2m2m` work on any machine.
// Instead of libavcodec's decoders of that name, which need a device, CPU decoders run, with
// pictures in a device's formats (nv12, p010). They fail as $FRAMED_DECODER says:
//
//   open        the device cannot be opened
//   hang-open   opening it hangs until the variable changes
//   hang-close  closing it hangs in the same way
//   stop        opening it stops the whole process (SIGSTOP)
//   crash       opening it crashes
//   fail:N      packet N and all later ones return an error
//   hang:N      sending packet N hangs until the variable changes
//   full:N      it refuses packet N and all later ones (EAGAIN)
//   silent:N    it gives no picture of packet N or of later ones
//   hold:N      it keeps N pictures back until the end
//   slow-end    at the end each picture must be requested twice
//   wrong:N     picture N and all later ones have one wrong bit
//   wrong10     the same for all pictures of 10 bits
//   reopen      flushing it takes 0.2 s
//
// Copies from a real device's decoder (vaapi, cuda) to the host fail:
//
//   copy:N      copy N of the process and all later ones return an error; copy:N-M: up to M
//   copy-hang:N copy N hangs until the variable changes
#include <dlfcn.h>
#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAKES_MAX = 64, HELD_MAX = 32 };

static struct fake {
    const AVCodecContext *context; // the daemon's; NULL: free
    AVCodecContext *cpu;
    int packets, pictures;
    AVFrame *held[HELD_MAX]; // decoded, not yet returned
    int n_held, ended;
} fakes[FAKES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// True if the environment requests this fault at this count.
static int wants(const char *fault, int count)
{
    const char *wanted = getenv("FRAMED_DECODER");
    const size_t length = strlen(fault);
    if (!wanted || strncmp(wanted, fault, length) != 0)
        return 0;
    const char *last = strchr(wanted + length, '-');
    if (wanted[length] != ':')
        return wanted[length] == 0;
    return count >= atoi(wanted + length + 1) && (!last || count <= atoi(last + 1));
}

static struct fake *find(const AVCodecContext *context)
{
    struct fake *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FAKES_MAX && !found; i++)
        if (fakes[i].context == context)
            found = &fakes[i];
    pthread_mutex_unlock(&lock);
    return found;
}

// Assigns a free fake to the context; returns NULL if there is none.
static struct fake *claim(const AVCodecContext *context, AVCodecContext *cpu)
{
    struct fake *fake = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < FAKES_MAX && !fake; i++)
        if (!fakes[i].context)
            fake = &fakes[i];
    if (fake)
        *fake = (struct fake){.context = context, .cpu = cpu};
    pthread_mutex_unlock(&lock);
    return fake;
}

static void hang_while(const char *fault, int count)
{
    while (wants(fault, count))
        usleep(10000);
}

int avcodec_open2(AVCodecContext *context, const AVCodec *codec, AVDictionary **options)
{
    if (!codec || !strstr(codec->name, "_v4l2m2m"))
        return REAL(avcodec_open2)(context, codec, options);
    if (wants("open", 0))
        return AVERROR(ENODEV);
    hang_while("hang-open", 0);
    if (wants("stop", 0))
        raise(SIGSTOP);
    if (wants("crash", 0))
        abort();
    const AVCodec *real = avcodec_find_decoder(context->codec_id);
    AVCodecContext *cpu = avcodec_alloc_context3(real);
    AVCodecParameters *parameters = avcodec_parameters_alloc();
    if (!cpu || !parameters || avcodec_parameters_from_context(parameters, context) < 0 ||
        avcodec_parameters_to_context(cpu, parameters) < 0)
        return AVERROR(ENOMEM);
    avcodec_parameters_free(&parameters);
    cpu->pkt_timebase = context->pkt_timebase;
    cpu->flags = context->flags;
    cpu->thread_count = 1;
    return claim(context, cpu) ? REAL(avcodec_open2)(cpu, real, NULL) : AVERROR(ENOMEM);
}

int avcodec_send_packet(AVCodecContext *context, const AVPacket *packet)
{
    struct fake *fake = find(context);
    if (!fake)
        return REAL(avcodec_send_packet)(context, packet);
    fake->packets += packet != NULL;
    if (wants("fail", fake->packets))
        return AVERROR(EIO);
    hang_while("hang", fake->packets);
    if (wants("full", fake->packets))
        return AVERROR(EAGAIN);
    fake->ended = !packet;
    const int rc = REAL(avcodec_send_packet)(fake->cpu, packet);
    context->has_b_frames = fake->cpu->has_b_frames;
    context->width = context->coded_width = fake->cpu->width;
    context->height = context->coded_height = fake->cpu->height;
    return rc;
}

// Converts 4:2:0 of 8 or 10 bits: interleaves the CPU's chroma planes, as devices do.
static int convert(AVFrame *to, const AVFrame *from)
{
    const int deep = av_pix_fmt_desc_get(from->format)->comp[0].depth > 8;
    to->format = deep ? AV_PIX_FMT_P010LE : AV_PIX_FMT_NV12;
    to->width = from->width;
    to->height = from->height;
    int rc = av_frame_get_buffer(to, 0);
    for (int y = 0; rc >= 0 && y < from->height * 3 / 2; y++) {
        const int chroma = y >= from->height, row = chroma ? y - from->height : y;
        uint8_t *out = to->data[chroma] + row * to->linesize[chroma];
        for (int x = 0; x < from->width; x++) {
            const int plane = chroma ? 1 + x % 2 : 0, at = chroma ? x / 2 : x;
            const uint8_t *in = from->data[plane] + row * from->linesize[plane];
            if (deep)
                ((uint16_t *)out)[x] = (uint16_t)(((const uint16_t *)in)[at] << 6);
            else
                out[x] = in[at];
        }
    }
    return rc;
}

// Returns the number of pictures to keep back.
static int holds(const struct fake *fake)
{
    const char *wanted = getenv("FRAMED_DECODER");
    return wanted && strncmp(wanted, "hold:", 5) == 0 && !fake->ended ? atoi(wanted + 5) : 0;
}

static void drop(struct fake *fake)
{
    while (fake->n_held > 0)
        av_frame_free(&fake->held[--fake->n_held]);
}

// Returns the CPU decoder's next picture, after those held.
static int receive(struct fake *fake, AVFrame *frame)
{
    int rc = 0;
    while (rc == 0 && fake->n_held < HELD_MAX) {
        AVFrame *decoded = av_frame_alloc();
        rc = decoded ? REAL(avcodec_receive_frame)(fake->cpu, decoded) : AVERROR(ENOMEM);
        if (rc == 0)
            fake->held[fake->n_held++] = decoded;
        else
            av_frame_free(&decoded);
    }
    if (fake->n_held <= holds(fake))
        return rc;
    av_frame_move_ref(frame, fake->held[0]);
    av_frame_free(&fake->held[0]);
    memmove(&fake->held[0], &fake->held[1], (size_t)--fake->n_held * sizeof fake->held[0]);
    return 0;
}

int avcodec_receive_frame(AVCodecContext *context, AVFrame *frame)
{
    struct fake *fake = find(context);
    AVFrame *decoded;
    if (!fake)
        return REAL(avcodec_receive_frame)(context, frame);
    if (!(decoded = av_frame_alloc()))
        return AVERROR(ENOMEM);
    const int later = wants("slow-end", 0) && fake->ended && fake->ended++ % 2;
    int rc = later ? AVERROR(EAGAIN) : receive(fake, decoded);
    if (rc == 0 && wants("silent", fake->packets))
        rc = AVERROR(EAGAIN);
    if (rc == 0)
        rc = convert(frame, decoded);
    if (rc == 0) {
        const int deep = frame->format == AV_PIX_FMT_P010LE;
        fake->pictures++;
        if (wants("wrong", fake->pictures) || (deep && wants("wrong10", 0)))
            frame->data[0][frame->linesize[0] * (frame->height / 2) + frame->width] ^= 0x40;
        frame->pts = decoded->pts;
    }
    av_frame_free(&decoded);
    return rc;
}

void avcodec_flush_buffers(AVCodecContext *context)
{
    struct fake *fake = find(context);
    REAL(avcodec_flush_buffers)(fake ? fake->cpu : context);
    if (fake)
        drop(fake);
    if (fake && wants("reopen", 0))
        usleep(200000);
}

void avcodec_free_context(AVCodecContext **context)
{
    struct fake *fake = *context ? find(*context) : NULL;
    if (fake) {
        AVCodecContext *cpu = fake->cpu;
        hang_while("hang-close", 0);
        drop(fake);
        pthread_mutex_lock(&lock);
        fake->context = NULL;
        pthread_mutex_unlock(&lock);
        REAL(avcodec_free_context)(&cpu);
    }
    REAL(avcodec_free_context)(context);
}

int av_hwframe_transfer_data(AVFrame *to, const AVFrame *from, int flags)
{
    static _Atomic int copies;
    const int copy = ++copies;
    if (wants("copy", copy))
        return AVERROR(EIO);
    hang_while("copy-hang", copy);
    return REAL(av_hwframe_transfer_data)(to, from, flags);
}
