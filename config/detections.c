#include "config/detections.h"

#include <errno.h>

#include "config/object.h"
#include "config/value.h"

struct output_config detections_as_output(const struct output_config *output)
{
    const struct detections_config *detections = &output->detections;
    return (struct output_config){
        .name = output->name,
        .place = output->place,
        .sink = detections->sink,
        .open = detections->open,
        .clients = detections->clients,
        .protocol = PROTOCOL_LINES,
        .segment = detections->segment,
        .keep = detections->keep,
        .mode = detections->mode,
        .group = detections->group,
        .group_id = detections->group_id,
        .has_group_id = detections->has_group_id,
    };
}

void detections_take(struct output_config *output, const struct output_config *lines)
{
    output->detections.open = lines->open;
    output->detections.segment = lines->segment;
    output->detections.keep = lines->keep;
}

bool detections_equal(const struct output_config *a, const struct output_config *b)
{
    for (int i = 0; i < output_table.n; i++)
        if (row_is_of_detections(&output_table.rows[i]) &&
            !value_equal(&output_table.rows[i], a, b))
            return false;
    return true;
}

void detections_free(struct output_config *output)
{
    for (int i = 0; i < output_table.n; i++)
        if (row_is_of_detections(&output_table.rows[i]))
            value_free(&output_table.rows[i], output);
}

int detections_copy(struct output_config *to, const struct output_config *from)
{
    struct output_config copy = {.detections = from->detections};
    int rc = 0;
    for (int i = 0; i < output_table.n; i++) {
        const struct config_row *row = &output_table.rows[i];
        if (row_is_of_detections(row) && value_own(row, &copy) < 0)
            rc = -ENOMEM;
    }
    detections_free(rc == 0 ? to : &copy);
    if (rc == 0)
        to->detections = copy.detections;
    return rc;
}
