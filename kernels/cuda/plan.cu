// A plan of the CUDA backend: its memory, one allocation on the device and one on the host, and the
// events of its slots.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

const struct cuda_op *const cuda_ops[OP_KINDS] = {&warp_cuda, &yuv_cuda};

// Alignment within a plan's memory, and the units of allocations.
enum { ALIGNMENT = 256, DEVICE_UNIT = 2 << 20, PINNED_UNIT = 4096 };

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

// --- layout

// Leaves room for rows padded by an eighth: such planes are uploaded in one run with their padding.
size_t cuda_source_pitch(const struct image *src, int plane)
{
    size_t row_bytes = plane_row_bytes(src->format, plane, src->width);
    return round_up(row_bytes + row_bytes / 8, 64);
}

// Returns the size of all planes if `plane` is their number.
size_t cuda_source_offset(const struct image *src, int plane)
{
    size_t offset = 0;
    for (int p = 0; p < plane; p++)
        offset += round_up(cuda_source_pitch(src, p) * plane_rows(src->format, p, src->height),
                           ALIGNMENT);
    return offset;
}

struct footprint {
    size_t block[PLAN_OPS_MAX];     // offsets in the plan's device memory
    size_t lut[PLAN_OPS_MAX];       // the same; ops with the same LUT share it
    size_t slots;                   // offset of the first slot
    size_t result[PLAN_OPS_MAX];    // offsets in a slot; the source is at 0
    size_t own_block[PLAN_OPS_MAX]; // offsets in a slot's blocks
    size_t blocks;                  // those blocks' offset in a slot
    size_t slot;                    // bytes of a slot
    size_t staging, staged;         // bytes of a slot's pinned memory, and the source's part of it
};

// Returns the first op that has the same LUT as op i.
static int first_with_lut(const struct op *const ops[], int i)
{
    int first = 0;
    while (op_lut(ops[first]) != op_lut(ops[i]))
        first++;
    return first;
}

static struct footprint footprint_of(const struct image *src, const struct op *const ops[], int n)
{
    struct footprint footprint;
    struct image tight = *src;
    size_t blocks = 0;
    memset(&footprint, 0, sizeof footprint);
    if (src->memory != MEMORY_CUDA)
        footprint.slot = cuda_source_offset(src, pixel_format_planes(src->format));
    if (src->memory == MEMORY_HOST)
        footprint.staged = round_up(image_lay_out(&tight, NULL), ALIGNMENT);
    for (int i = 0; i < n; i++) {
        const struct cuda_op *kernels = cuda_ops[ops[i]->kind];
        footprint.block[i] = footprint.slots;
        footprint.own_block[i] = blocks;
        if (kernels->block_bytes)
            footprint.slots += round_up(kernels->block_bytes(ops[i]), ALIGNMENT);
        const struct lut *lut = op_lut(ops[i]);
        const int first = first_with_lut(ops, i);
        footprint.lut[i] = first < i ? footprint.lut[first] : footprint.slots;
        if (lut && first == i)
            footprint.slots += round_up(lut_bytes(lut), ALIGNMENT);
        if (kernels->block_room && ops[i]->moves)
            blocks += round_up(kernels->block_room(ops[i]), ALIGNMENT);
        footprint.result[i] = footprint.slot;
        footprint.slot += round_up(ops[i]->dst_bytes, ALIGNMENT);
    }
    footprint.blocks = footprint.slot;
    footprint.slot += blocks;
    footprint.staging = footprint.staged + blocks;
    return footprint;
}

struct memory_need cuda_plan_need(const struct image *src, const struct op *const ops[], int n,
                                  int depth)
{
    struct footprint footprint = footprint_of(src, ops, n);
    return {round_up(footprint.slots + depth * footprint.slot, DEVICE_UNIT),
            round_up(depth * footprint.staging, PINNED_UNIT)};
}

static cudaError_t memory_init(struct plan *plan, const struct footprint *footprint, int depth)
{
    size_t staging = depth * footprint->staging;
    CUDA_TRY(cudaMalloc((void **)&plan->device, footprint->slots + depth * footprint->slot));
    if (staging > 0)
        CUDA_TRY(cudaHostAlloc((void **)&plan->staging, staging, cudaHostAllocPortable));
    return cudaSuccess;
}

// --- ops

// Loads kernels before their first launch, which could otherwise wait for the device.
static cudaError_t load_kernels(const struct plan *plan)
{
    for (int i = 0; i < plan->ops; i++)
        CUDA_TRY(cuda_ops[plan->op[i]->kind]->load(plan->op[i]));
    return cudaSuccess;
}

static int blocks_init(struct plan *plan, const struct footprint *footprint)
{
    if (footprint->slots == 0)
        return 0;
    uint8_t *host = (uint8_t *)calloc(1, footprint->slots);
    if (!host)
        return -ENOMEM;
    for (int i = 0; i < plan->ops; i++) {
        const struct cuda_op *kernels = cuda_ops[plan->op[i]->kind];
        plan->block[i] = plan->device + footprint->block[i];
        plan->own_block[i] = footprint->own_block[i];
        const struct lut *lut = op_lut(plan->op[i]);
        if (lut) {
            plan->lut[i] = (const struct lut *)(plan->device + footprint->lut[i]);
            memcpy(host + footprint->lut[i], lut, lut_bytes(lut));
        }
        if (kernels->block_pack)
            kernels->block_pack(plan->op[i], host + footprint->block[i],
                                plan->device + footprint->block[i], plan->lut[i]);
    }
    int error = cuda_errno(cuda_copy(plan->backend, plan->device, host, footprint->slots));
    free(host);
    return error;
}

// --- slots

static cudaError_t events_init(cudaEvent_t *events, int n)
{
    for (int i = 0; i < n; i++)
        CUDA_TRY(
            cudaEventCreateWithFlags(&events[i], cudaEventBlockingSync | cudaEventDisableTiming));
    return cudaSuccess;
}

static void events_finish(cudaEvent_t *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
}

// A frame in one slice has all its work on one stream; only a frame on the device has an event to
// wait for.
static cudaError_t slot_init(struct job_slot *slot, struct plan *plan,
                             const struct footprint *footprint, int index)
{
    uint8_t *device = plan->device + footprint->slots + index * footprint->slot;
    const struct schedule *schedule = &plan->schedule;
    slot->plan = plan;
    if (plan->src.memory != MEMORY_CUDA)
        slot->source = device;
    if (plan->staging) {
        uint8_t *pinned = plan->staging + index * footprint->staging;
        slot->staging = footprint->staged > 0 ? pinned : NULL;
        slot->blocks = pinned + footprint->staged;
        slot->device_blocks = device + footprint->blocks;
    }
    for (int i = 0; i < plan->ops; i++)
        slot->result[i] = device + footprint->result[i];
    CUDA_TRY(events_init(slot->ready, schedule->slices));
    if (schedule->slices > 1)
        CUDA_TRY(events_init(slot->computed, schedule->slices));
    return events_init(slot->finished, schedule->frame_streams);
}

static void slot_finish(struct job_slot *slot)
{
    events_finish(slot->ready, BANDS_MAX);
    events_finish(slot->computed, BANDS_MAX);
    events_finish(slot->finished, CUDA_STREAMS_MAX);
}

static int slots_init(struct plan *plan, const struct footprint *footprint, int depth)
{
    cudaError_t error = cudaSuccess;
    plan->slot = (struct job_slot *)calloc(depth, sizeof *plan->slot);
    if (!plan->slot)
        return -ENOMEM;
    while (plan->slots < depth && error == cudaSuccess) {
        struct job_slot *slot = &plan->slot[plan->slots];
        error = slot_init(slot, plan, footprint, plan->slots++);
        slot->next = plan->idle;
        plan->idle = slot;
    }
    return cuda_errno(error);
}

// --- plan

// Returns the last slice that leaves WAKE_SECONDS of uploads after it.
static int wake_slice(const struct plan *plan)
{
    struct image tight = plan->src;
    const double rate = plan->backend->schedule.link.up;
    const double seconds_a_row = image_lay_out(&tight, NULL) / rate / plan->src.height;
    double left = 0;
    int i = plan->schedule.slices - 1;
    for (; i > 0 && left < WAKE_SECONDS; i--) {
        const struct band rows = plan->schedule.slice[i].rows;
        left += (rows.y1 - rows.y0) * seconds_a_row;
    }
    return i;
}

int cuda_plan_init(struct plan *plan, struct backend *backend, const struct image *src,
                   const struct op *const ops[], int n, int depth)
{
    const struct footprint footprint = footprint_of(src, ops, n);
    plan->backend = backend;
    plan->src = *src;
    plan->ops = n;
    memcpy(plan->op, ops, n * sizeof *ops);

    int error = schedule_init(&plan->schedule, src, ops, n, &backend->schedule);
    plan->wake = wake_slice(plan);
    cuda_copies_init(plan);
    if (!error)
        error = cuda_errno(load_kernels(plan));
    if (!error)
        error = cuda_errno(memory_init(plan, &footprint, depth));
    if (!error)
        error = blocks_init(plan, &footprint);
    if (!error)
        error = slots_init(plan, &footprint, depth);
    if (error)
        cuda_plan_finish(plan);
    return error;
}

void cuda_plan_finish(struct plan *plan)
{
    for (int i = 0; i < plan->slots; i++)
        slot_finish(&plan->slot[i]);
    free(plan->slot);
    schedule_finish(&plan->schedule);
    cudaFreeHost(plan->staging);
    cudaFree(plan->device);
}
