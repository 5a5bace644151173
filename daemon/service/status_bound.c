#include "daemon/service/status_bound.h"

#include <jansson.h>
#include <math.h>

#include "daemon/service/bound.h"
#include "daemon/service/processor_time.h"

void load_sample(struct load *load, struct engine *engine, int64_t now)
{
    uint64_t busy = 0;
    meter_sample(&load->own, (uint64_t)processor_time_own_ns(), now);
    meter_sample(&load->all, (uint64_t)processor_time_all_ns(), now);
    load->has_nvdec = engine_nvdec_busy(engine, &busy);
    meter_sample(&load->nvdec, busy, now);

    struct device_busy device = {0};
    load->has_device = engine_device_busy(engine, &device);
    meter_sample(&load->upload, device.upload, now);
    meter_sample(&load->kernel, device.kernel, now);
    meter_sample(&load->download, device.download, now);
}

// -1: there is nothing to be busy. Kernels that ran side by side may come to more than 1.
static double share(const struct meter *meter, bool has)
{
    return has ? fmin(meter_rate(meter) / 1e9, 1) : -1;
}

static json_t *share_json(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

static void add_output(struct bound_facts *facts, const struct output *output)
{
    facts->offered += meter_rate(&output->emitted) + meter_rate(&output->lost);
    facts->overflow += meter_rate(&output->overflowed);
}

static bool may_wait(const struct camera *camera)
{
    for (int i = 0; i < camera->outputs.n; i++)
        if (camera->outputs.list[i]->config->overflow == OVERFLOW_WAIT)
            return true;
    return false;
}

static void add_camera(struct bound_facts *facts, const struct camera *camera)
{
    double submit = meter_rate(&camera->spent[LEG_SUBMIT]) / 1e9;
    facts->running += atomic_load(&camera->state) == CAMERA_RUNNING;
    facts->decode = fmax(facts->decode, meter_rate(&camera->spent[LEG_DECODE]) / 1e9);
    if (submit > facts->submit) {
        facts->submit = submit;
        facts->waits = may_wait(camera);
    }
    for (int i = 0; i < camera->outputs.n; i++)
        add_output(facts, camera->outputs.list[i]);
}

json_t *status_bound_json(const struct load *load, const struct metrics *metrics)
{
    struct bound_facts facts = {
        .processors = processor_time_limit(),
        .used = meter_rate(&load->own) / 1e9,
        .busy = meter_rate(&load->all) / 1e9,
        .nvdec = share(&load->nvdec, load->has_nvdec),
        .upload = share(&load->upload, load->has_device),
        .kernel = share(&load->kernel, load->has_device),
        .download = share(&load->download, load->has_device),
    };
    for (int i = 0; i < metrics->n_cameras; i++)
        add_camera(&facts, metrics->cameras[i]);
    struct bound bound = bound_judge(&facts);
    return json_pack("{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "leg",
                     bound_leg_name(bound.leg), "share",
                     bound.share > 0 ? json_real(bound.share) : json_null(), "cameras_more",
                     bound.more >= 0 ? json_integer(bound.more) : json_null(), "ends_first",
                     bound.end, "cpu", facts.busy > 0 ? json_real(facts.busy) : json_null(),
                     "nvdec", share_json(facts.nvdec), "upload", share_json(facts.upload), "kernel",
                     share_json(facts.kernel), "download", share_json(facts.download));
}
