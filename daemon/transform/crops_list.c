#include "daemon/transform/crops_list.h"

#include <string.h>

#include "daemon/base/log.h"

// Removes the crops of that output from the list and returns them; NULL: there are none.
static struct crops *take_out(struct crops_list *list, const struct output *output)
{
    for (int i = 0; i < list->n; i++) {
        struct crops *crops = list->list[i].crops;
        if (crops_output(crops) != output)
            continue;
        list->list[i] = list->list[--list->n];
        return crops;
    }
    return NULL;
}

static void log_failure(const struct output *output, int rc)
{
    log_event(LOG_LEVEL_ERROR, "output=%s no thread: %s", output->config->name, strerror(-rc));
}

void crops_list_subscribe(struct crops_list *list, const struct subscriptions *subscriptions,
                          const struct device_lease *lease, struct event_queue *events)
{
    struct crops_list next = {0};
    for (int i = subscriptions->n_pictures; i < subscriptions->n_pools; i++) {
        const struct subscription *own = &subscriptions->list[i];
        struct crops_entry *entry = &next.list[next.n];
        int rc = 0;
        entry->of = subscriptions_find(subscriptions, own->output->config->crops.of);
        entry->crops = take_out(list, own->output);
        if (!entry->crops)
            rc = crops_open(&entry->crops, &(struct crops_context){own, lease, events});
        if (rc < 0)
            log_failure(own->output, rc);
        next.n += rc == 0;
    }
    crops_list_close(list);
    *list = next;
}

void crops_list_close(struct crops_list *list)
{
    while (list->n > 0)
        crops_close(list->list[--list->n].crops);
}

int crops_list_prepare(struct crops_list *list, const struct frame *frame, int num, int den,
                       char *notice, size_t size)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < list->n; i++)
        rc = crops_prepare(list->list[i].crops, frame, num, den, notice, size);
    return rc;
}

void crops_list_keep(struct crops_list *list, struct frame *frame)
{
    for (int i = 0; i < list->n; i++) {
        struct crops_entry *entry = &list->list[i];
        if (!entry->of || entry->of->ordinal == entry->ordinal)
            continue;
        entry->ordinal = entry->of->ordinal;
        crops_keep(entry->crops, frame);
    }
}

int64_t crops_list_keep_ns(const struct crops_list *list)
{
    int64_t longest_ns = 0;
    for (int i = 0; i < list->n; i++) {
        const int64_t ns = crops_output(list->list[i].crops)->config->crops.keep.ns;
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

void crops_list_drain(struct crops_list *list)
{
    for (int i = 0; i < list->n; i++)
        crops_drain(list->list[i].crops);
}
