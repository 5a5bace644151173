#include "daemon/service/status_bound.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "daemon/service/bound.h"
#include "daemon/service/processor_time.h"

void load_sample(struct load *load, struct engine *engine, int64_t now)
{
    uint64_t busy = 0;
    meter_sample(&load->own, (uint64_t)processor_time_own_ns(), now);
    meter_sample(&load->all, (uint64_t)processor_time_all_ns(), now);
    load->has_nvdec = engine_nvdec_busy(engine, &busy);
    meter_sample(&load->nvdec, busy, now);
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
        .nvdec = load->has_nvdec ? meter_rate(&load->nvdec) / 1e9 : -1,
        .cuda = strcmp(engine_backend_name(metrics->engine), "cuda") == 0,
    };
    for (int i = 0; i < metrics->n_cameras; i++)
        add_camera(&facts, metrics->cameras[i]);
    struct bound bound = bound_judge(&facts);
    return json_pack("{s:s, s:o, s:o, s:s?, s:o, s:o}", "leg", bound_leg_name(bound.leg), "share",
                     bound.share > 0 ? json_real(bound.share) : json_null(), "cameras_more",
                     bound.more >= 0 ? json_integer(bound.more) : json_null(), "ends_first",
                     bound.end, "cpu", facts.busy > 0 ? json_real(facts.busy) : json_null(),
                     "nvdec", facts.nvdec >= 0 ? json_real(facts.nvdec) : json_null());
}
