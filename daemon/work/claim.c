#include "daemon/work/geometry.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/wire.h"

// --- items

void elements_describe(struct result *result, int first, const struct elements *elements,
                       const struct output *output, const struct frame_info *info,
                       uint64_t sequence, uint64_t ordinal)
{
    const bool new_epoch = result->item[first].new_epoch;
    const uint64_t lost = result->item[first].lost;
    for (int i = 0; i < elements->n; i++) {
        const struct op *op = &elements->list[i].op;
        struct item *item = &result->item[first + i];
        item->frame = *info;
        item->frame.flags |= new_epoch ? FRAMED_FLAG_FIRST_OF_EPOCH : 0;
        item->lost = lost;
        item->sequence = sequence;
        item->ordinal = ordinal;
        item->parent_sequence = sequence;
        item->object = 0;
        item->part = i;
        item->parts = elements->n;
        strncpy(item->camera, output->camera, sizeof item->camera - 1);
        memset(item->region, 0, sizeof item->region);
        strncpy(item->region, elements->list[i].name, sizeof item->region - 1);
        memcpy(item->src_to_dst, op->src_to_dst, sizeof item->src_to_dst);
        memcpy(item->dst_to_src, op->dst_to_src, sizeof item->dst_to_src);
    }
}

void elements_fill(struct job_result *to, const struct elements *elements, struct result *result,
                   int first)
{
    for (int i = 0; i < elements->n; i++) {
        const struct op *op = &elements->list[i].op;
        struct item *item = &result->item[first + i];
        to[i] = (struct job_result){
            .data = (uint8_t *)result->data + (size_t)(first + i) * op->dst_bytes,
            .memory = result->memory,
            .filled = item->valid_op == op->serial,
        };
        item->valid_op = op->serial;
    }
}

struct result_format elements_format(const struct op *op, const struct output *output,
                                     const struct frame *frame, void *data)
{
    const bool warp = op->kind == OP_WARP;
    struct result_format format = {
        .dtype = warp ? op->warp.dtype : DTYPE_U8,
        .layout = warp ? op->warp.layout : LAYOUT_NCHW,
        .order = warp ? op->warp.order : ORDER_RGB,
        .field_order = frame->info.field_order,
        .rate_num = frame->rate_num,
        .rate_den = frame->rate_den,
    };
    op_lay_out(op, &format.image, data);
    rate_limit(&output->rate, &format.rate_num, &format.rate_den);
    return format;
}

enum loss claim_loss(int rc, bool stopping)
{
    switch (rc) {
    case -ENOTCONN:
        return LOSS_CLIENT;
    case -EPIPE:
        return LOSS_SINK;
    case -EAGAIN:
        return LOSS_OVERFLOW;
    case -ENOSPC:
        return LOSS_CONFIG;
    case -ETIME:
        return LOSS_LATE;
    case -ESHUTDOWN:
        return LOSS_STOPPING;
    case -ECANCELED:
        return stopping ? LOSS_STOPPING : LOSS_BACKEND;
    default:
        return LOSS_BACKEND;
    }
}

// --- claims

static int claim_result(struct claim *claim, struct output *output, const struct elements *elements,
                        struct result **ret)
{
    const struct op *op = &elements->list[0].op;
    struct pool_request request = {
        .size = op->dst_bytes,
        .items = elements->n,
        .ledger = &output->ledger,
        .wait_until_ns = output->demand ? 0 : claim->wait_until_ns,
        .stop = claim->interrupted,
    };
    if (output->config->overflow == OVERFLOW_WAIT || monotonic_ns() < request.wait_until_ns)
        stage_enter(claim->stages, STAGE_SUBMIT, STAGE_NO_LIMIT);
    int rc = pool_claim(output->pool, &request, ret);
    stage_enter(claim->stages, STAGE_SUBMIT, 0);
    claim->opening_ns += request.opening_ns;
    if (rc == 0)
        (*ret)->format = elements_format(op, output, claim->frame, (*ret)->data);
    return rc;
}

// Does not wait: the work waits for batches before it claims anything.
static int claim_of_batch(struct claim *claim, struct output *output,
                          const struct elements *elements, uint64_t ordinal, struct result **ret,
                          int *first)
{
    const struct op *op = &elements->list[0].op;
    struct batch_request request = {
        .size = op->dst_bytes,
        .format = elements_format(op, output, claim->frame, NULL),
        .parts = elements->n,
        .ordinal = ordinal,
        .epoch = claim->frame->info.epoch,
    };
    memcpy(request.fill, op->warp.fill_element, sizeof request.fill);
    int rc = batch_claim(&output->share, &request, ret, first);
    claim->opening_ns += request.opening_ns;
    return rc;
}

// Hands the frame to the batch, which fills its items later. False: the frame cannot be shared.
static bool park(struct claim *claim, struct output *output, int parts, uint64_t sequence,
                 uint64_t ordinal)
{
    struct parked parked = {.sequence = sequence, .ordinal = ordinal};
    if (frame_share(claim->frame, &parked.frame) < 0)
        return false;
    batch_park(&output->share, &parked, parts);
    return true;
}

static int claim_offered(struct claim *claim, struct output *output,
                         const struct elements *elements, struct result **ret, int *first)
{
    const struct frame_info *info = &claim->frame->info;
    const uint64_t sequence = output->sequence++;
    int rc = -ENOSPC; // no elements: they cannot be made from this source
    ledger_offer(&output->ledger);
    const bool opens = gate_opens(&output->gate, &output->config->gate, info);
    // A picture behind a closed gate must not delay the first one that passes.
    const bool kept = opens && rate_keeps(&output->rate, info->pts_ns);
    if (!kept) { // no loss to a client: takes no ordinal
        ledger_lose(&output->ledger, opens ? LOSS_THINNED : LOSS_STILL);
        return -EAGAIN;
    }
    const uint64_t ordinal = output->ordinal++;
    if (elements->n > 0 && frame_is_late(info, output->config->max_age.ns))
        rc = -ETIME;
    else if (elements->n > 0 && output->parent)
        rc = claim_of_batch(claim, output, elements, ordinal, ret, first);
    else if (elements->n > 0)
        rc = claim_result(claim, output, elements, ret);
    const bool parked =
        rc == -EAGAIN && output->parent && park(claim, output, elements->n, sequence, ordinal);
    if (rc == 0 || parked)
        gate_passed(&output->gate, info);
    if (rc == 0)
        elements_describe(*ret, *first, elements, output, info, sequence, ordinal);
    else if (!parked)
        ledger_lose(&output->ledger, claim_loss(rc, atomic_load(claim->stop)));
    return rc;
}

// --- claims for viewers

// Counts the result's memory before it is claimed: its slots and, to show a tensor, two copies with
// three bytes a pixel. Returns 0, -EFBIG or -EDQUOT.
static int admit_demand(struct demand *demand, const struct op *op)
{
    const size_t pixels = (size_t)op->dst.width * (size_t)op->dst.height;
    const size_t bytes = DEMAND_SLOTS * op->dst_bytes + (demand->of ? pixels * 2 * 3 : 0);
    if (op->dst.width > DEMAND_SIDE_MAX || op->dst.height > DEMAND_SIDE_MAX)
        return -EFBIG;
    if (bytes == demand->bytes)
        return 0;
    const size_t more = bytes - demand->bytes; // modulo SIZE_MAX + 1
    const size_t all = atomic_fetch_add(demand->taken, more) + more;
    const bool fits = all <= DEMANDS_BYTES_MAX;
    if (!fits)
        atomic_fetch_sub(demand->taken, bytes);
    demand->bytes = fits ? bytes : 0;
    return fits ? 0 : -EDQUOT;
}

static struct demand_source source_of(const struct image *image, const struct op *op)
{
    const struct warp *warp = op->kind == OP_WARP ? &op->warp : op->yuv.warps;
    struct demand_source source = {
        image->width, image->height, {0, 0, image->width, image->height}};
    if (warp)
        source.shown = (struct rect){warp->x0, warp->y0, warp->x1 - warp->x0, warp->y1 - warp->y0};
    return source;
}

// Claims the one item of an output for viewers if it is due.
static int claim_demanded(struct claim *claim, struct output *output,
                          const struct elements *elements, struct result **ret)
{
    struct demand *demand = output->demand;
    const struct frame_info *info = &claim->frame->info;
    const uint64_t sequence = demand->of ? demand->of->sequence - 1 : claim->number;
    const bool due = atomic_exchange(&demand->due, false);
    if (due)
        rate_restart(&output->rate);
    const bool kept = atomic_load(&demand->runs) && rate_keeps(&output->rate, info->pts_ns);
    if (!due && !kept)
        return -EAGAIN;
    int rc = elements->n > 0 ? admit_demand(demand, &elements->list[0].op) : demand->unmade;
    if (rc < 0) {
        atomic_store(&demand->refused, rc);
        return rc;
    }
    rc = claim_result(claim, output, elements, ret);
    if (rc < 0) {
        if (due) // else the loop may have set it meanwhile
            atomic_store(&demand->due, true);
        return rc;
    }
    demand->source[(*ret)->number] = source_of(&claim->frame->image, &elements->list[0].op);
    elements_describe(*ret, 0, elements, output, info, sequence, sequence);
    return 0;
}

int claim_items(struct claim *claim, struct output *output, const struct elements *elements,
                struct result **ret, int *first)
{
    *first = 0;
    return output->demand ? claim_demanded(claim, output, elements, ret)
                          : claim_offered(claim, output, elements, ret, first);
}
