#include "daemon/decode/slice_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct slice_thread {
    struct slice_check *check; // the thread's between begin and end
    pthread_t id;
    bool runs; // else the owner's thread checks
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const uint8_t *data; // of the packet to check; NULL: none
    size_t size;
    enum slice_check_result result;
    bool ends;
};

static void *check_packets(void *opaque)
{
    struct slice_thread *thread = opaque;
    pthread_setname_np(pthread_self(), "slices");
    pthread_mutex_lock(&thread->lock);
    for (;;) {
        while (!thread->data && !thread->ends)
            pthread_cond_wait(&thread->changed, &thread->lock);
        if (thread->ends)
            break;
        pthread_mutex_unlock(&thread->lock);
        const enum slice_check_result result =
            slice_check_packet(thread->check, thread->data, thread->size);
        pthread_mutex_lock(&thread->lock);
        thread->result = result;
        thread->data = NULL;
        pthread_cond_signal(&thread->changed);
    }
    pthread_mutex_unlock(&thread->lock);
    return NULL;
}

int slice_thread_open(struct slice_thread **ret)
{
    struct slice_thread *thread = calloc(1, sizeof *thread);
    if (!thread || !(thread->check = slice_check_open())) {
        free(thread);
        return -ENOMEM;
    }
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->changed, NULL);
    thread->runs = pthread_create(&thread->id, NULL, check_packets, thread) == 0;
    *ret = thread;
    return 0;
}

void slice_thread_close(struct slice_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->lock);
    thread->ends = true;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    if (thread->runs)
        pthread_join(thread->id, NULL);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->lock);
    slice_check_close(thread->check);
    free(thread);
}

void slice_thread_extradata(struct slice_thread *thread, const uint8_t *extradata, size_t size)
{
    slice_check_extradata(thread->check, extradata, size);
}

void slice_thread_begin(struct slice_thread *thread, const uint8_t *data, size_t size)
{
    if (!thread->runs) {
        thread->result = slice_check_packet(thread->check, data, size);
        return;
    }
    pthread_mutex_lock(&thread->lock);
    thread->data = data;
    thread->size = size;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
}

enum slice_check_result slice_thread_end(struct slice_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    while (thread->data)
        pthread_cond_wait(&thread->changed, &thread->lock);
    pthread_mutex_unlock(&thread->lock);
    return thread->result;
}

bool slice_thread_lacks_profile(const struct slice_thread *thread)
{
    return slice_check_lacks_profile(thread->check);
}
