#include "config/gone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A camera, output or batch cannot exist without a required key: if that key's value is gone, the
// whole item is left out.
// clang-format off
static const struct gone_key gone_keys[] = {
    {&camera_table, "spare", NULL, "0.2.0", "delete it: a silent camera is connected to again, and no second session is opened", false},
    {&camera_table, "demuxer", NULL, "0.2.0", "delete it: framed's own client reads RTSP, or libavformat's where the codec needs it", true},
    {&camera_table, "options", NULL, "0.2.0", "delete them: framed's own client reads RTSP, and has no options", true},
    {&root_table, "tuned", NULL, "0.1.0", "delete it: nothing replaces `framed tune`", false},
    {&root_table, "nats", NULL, "0.2.0", "delete it: framed has no NATS client", false},
    {&root_table, "notify.nats", NULL, "0.2.0", "notify.command can run a program that publishes, or notify.mqtt", false},
    {&output_table, "sink", "nats:*", "0.2.0", "unix:PATH, tcp:HOST:PORT or file:PATH, from which a forwarder takes the lines", false},
    {&output_table, "detections.sink", "nats:*", "0.2.0", "unix:PATH, tcp:HOST:PORT or file:PATH, from which a forwarder takes the lines", false},
};
// clang-format on

const struct gone_key *gone_find(const struct table *table, const char *key,
                                 const struct gone_key *before)
{
    const struct gone_key *end = gone_keys + sizeof gone_keys / sizeof *gone_keys;
    for (const struct gone_key *gone = before ? before + 1 : gone_keys; gone < end; gone++)
        if (gone->table->rows == table->rows && strcmp(gone->key, key) == 0)
            return gone;
    return NULL;
}

int gone_note(struct config *config, const struct gone_key *gone, struct place at, const char *path)
{
    struct gone_use *grown = reallocarray(config->gone, (size_t)config->n_gone + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    config->gone = grown;
    grown[config->n_gone] = (struct gone_use){.gone = gone, .at = at, .path = strdup(path)};
    if (!grown[config->n_gone].path)
        return -ENOMEM;
    config->n_gone++;
    return 0;
}

char *gone_text(const struct config *config, int i)
{
    const struct gone_use *use = &config->gone[i];
    const struct gone_key *gone = use->gone;
    const struct config_row *row = gone->value ? table_find(gone->table, gone->key) : NULL;
    char *text, is_off[32];
    snprintf(is_off, sizeof is_off, "the %s is off", strchr(gone->table->noun, ' ') + 1);
    int n = asprintf(&text, "%s:%d:%d: %s: %s gone%s since framed %s: %s (%s)",
                     config_files_path(&config->files, use->at), use->at.line, use->at.column,
                     use->path, gone->value ? "this value is" : "is",
                     gone->rtsp ? " for an RTSP camera" : "", gone->version,
                     row && row->required ? is_off : "ignored", gone->instead);
    return n < 0 ? NULL : text;
}

bool gone_is_first(const struct config *config, int i)
{
    int first = 0;
    while (config->gone[first].gone != config->gone[i].gone)
        first++;
    return first == i;
}

void gone_free(struct config *config)
{
    for (int i = 0; i < config->n_gone; i++)
        free(config->gone[i].path);
    free(config->gone);
    config->gone = NULL;
    config->n_gone = 0;
}
