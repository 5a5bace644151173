#include "daemon/decode/hardware_trial.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/decode/buffers.h"
#include "daemon/decode/hardware_codec.h"

struct hardware_trial {
    _Atomic int users;  // the camera and the thread: the last of them frees all
    _Atomic int result; // as hardware_trial_result
    struct decoder_choice choice;
    AVCodecParameters *parameters;
    AVPacket *keyframe;
};

static void drop(struct hardware_trial *trial)
{
    if (--trial->users > 0)
        return;
    avcodec_parameters_free(&trial->parameters);
    av_packet_free(&trial->keyframe);
    free(trial);
}

static int decode(const struct hardware_trial *trial, struct buffers *buffers, AVFrame *picture)
{
    struct hardware_codec *hardware;
    char why[128];
    int rc = hardware_codec_open(&hardware, trial->parameters, &trial->choice, false, buffers, why,
                                 sizeof why);
    if (rc < 0)
        return rc;
    rc = hardware_codec_send(hardware, trial->keyframe, 1, false);
    if (rc >= 0)
        rc = hardware_codec_send(hardware, NULL, 0, false); // it may hold the picture back
    if (rc >= 0)
        rc = hardware_codec_receive(hardware, picture);
    const bool hangs = hardware_codec_hangs(hardware);
    hardware_codec_close(hardware);
    return rc >= 0 ? 0 : hangs ? -ETIMEDOUT : -ENODEV;
}

static void *run(void *opaque)
{
    struct hardware_trial *trial = opaque;
    struct buffers *buffers = NULL;
    AVFrame *picture = av_frame_alloc();
    int rc = picture ? buffers_open(&buffers, NULL) : -ENOMEM;
    pthread_setname_np(pthread_self(), "hardware trial");
    if (rc == 0)
        rc = decode(trial, buffers, picture);
    av_frame_free(&picture);
    buffers_close(buffers);
    trial->result = rc;
    drop(trial);
    return NULL;
}

int hardware_trial_start(struct hardware_trial **ret, const AVCodecParameters *parameters,
                         const struct decoder_choice *choice, const AVPacket *keyframe)
{
    pthread_t id;
    struct hardware_trial *trial = calloc(1, sizeof *trial);
    if (!trial)
        return -ENOMEM;
    *trial = (struct hardware_trial){.users = 1, .result = -EAGAIN, .choice = *choice};
    trial->parameters = avcodec_parameters_alloc();
    trial->keyframe = av_packet_clone(keyframe);
    if (!trial->parameters || !trial->keyframe ||
        avcodec_parameters_copy(trial->parameters, parameters) < 0) {
        drop(trial);
        return -ENOMEM;
    }
    trial->users = 2;
    if (pthread_create(&id, NULL, run, trial) != 0) {
        trial->users = 1;
        drop(trial);
        return -ENOMEM;
    }
    pthread_detach(id);
    *ret = trial;
    return 0;
}

int hardware_trial_result(const struct hardware_trial *trial)
{
    return trial->result;
}

void hardware_trial_end(struct hardware_trial *trial)
{
    if (trial)
        drop(trial);
}
