#include "config/check.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "config/object.h"
#include "config/url.h"
#include "config/value.h"
#include "kernels/processors.h"

enum {
    TOKEN_MIN = 16,         // minimum length of http_token in bytes
    TOPIC_MAX = 128,        // bytes of an MQTT topic
    CLUSTER_NAME_SIZE = 64, // of a site's or node's name, with the final zero
    THREADS_AUTO = 4,       // most threads of one camera with `decode_threads: auto`
};

static const struct given *find_root(const struct given given[], const char *key)
{
    return &given[table_find(&root_table, key) - root_table.rows];
}

static bool root_is_set(const struct given given[], const char *key)
{
    const struct given *of = find_root(given, key);
    return of->key.line && !of->wrong;
}

// --- notify

static void check_webhook(struct mistakes *mistakes, const struct config *config,
                          const struct given given[])
{
    const char *url = config->notify.webhook;
    if (!root_is_set(given, "notify.webhook") || !url)
        return;
    const bool http = strncasecmp(url, "http://", 7) == 0,
               tls = strncasecmp(url, "https://", 8) == 0;
    const char *host = url + (tls ? 8 : 7);
    if ((!http && !tls) || !*host || *host == '/' || strpbrk(url, " \"<>"))
        mistake(mistakes, find_root(given, "notify.webhook")->value, "notify.webhook",
                "is not a URL that can be posted to (http://HOST/PATH or https://HOST/PATH)");
}

static void check_topic(struct mistakes *mistakes, const struct given given[], const char *key,
                        const char *topic)
{
    if (!root_is_set(given, key) || !topic)
        return;
    const size_t length = strlen(topic);
    const bool edges = topic[0] == '/' || topic[0] == '$' || (length && topic[length - 1] == '/');
    if (length > TOPIC_MAX || edges || strpbrk(topic, "+#"))
        mistake(mistakes, find_root(given, key)->value, key,
                "is not what topics can begin with (1 to %d bytes without + and #, no $ at its "
                "begin, no / at its ends)",
                TOPIC_MAX);
}

static void check_mqtt(struct mistakes *mistakes, const struct config *config,
                       const struct given given[])
{
    static const char *const others[] = {"notify.mqtt.user", "notify.mqtt.password",
                                         "notify.mqtt.ca", "notify.mqtt.topic"};
    const struct mqtt_config *mqtt = &config->notify.mqtt;
    const bool server = find_root(given, "notify.mqtt.server")->key.line;
    struct mqtt_url url;
    for (size_t i = 0; !server && i < sizeof others / sizeof *others; i++)
        if (root_is_set(given, others[i]))
            mistake(mistakes, find_root(given, others[i])->key, others[i],
                    "has no effect without notify.mqtt.server (server: mqtt://HOST)");
    if (!root_is_set(given, "notify.mqtt.server") || !mqtt->server)
        return;
    const char *wrong = mqtt_url_parse(&url, mqtt->server);
    if (wrong)
        mistake(mistakes, find_root(given, "notify.mqtt.server")->value, "notify.mqtt.server",
                "%s (mqtt://HOST, mqtts://HOST, each with :PORT or without)", wrong);
    if (!wrong && !url.tls && root_is_set(given, "notify.mqtt.ca"))
        mistake(mistakes, find_root(given, "notify.mqtt.ca")->key, "notify.mqtt.ca",
                "is only for a broker with TLS (server: mqtts://HOST)");
    if (root_is_set(given, "notify.mqtt.password") &&
        !find_root(given, "notify.mqtt.user")->key.line)
        mistake(mistakes, find_root(given, "notify.mqtt.password")->key, "notify.mqtt.password",
                "has no user beside it (user: NAME)");
    check_topic(mistakes, given, "notify.mqtt.topic", mqtt->topic);
    check_topic(mistakes, given, "notify.mqtt.discovery", mqtt->discovery);
}

static void check_notify(struct mistakes *mistakes, const struct config *config,
                         const struct given given[])
{
    check_webhook(mistakes, config, given);
    check_mqtt(mistakes, config, given);
}

// --- cluster

static void check_cluster_name(struct mistakes *mistakes, const struct given given[],
                               const char *key, const char *name)
{
    if (root_is_set(given, key) && name && !is_cluster_name(name, CLUSTER_NAME_SIZE))
        mistake(mistakes, find_root(given, key)->value, key,
                "cannot be a name (1 to %d of A-Z a-z 0-9 . _ -)", CLUSTER_NAME_SIZE - 1);
}

static void check_together(struct mistakes *mistakes, const struct given given[], const char *key,
                           const char *other, const char *what)
{
    if (root_is_set(given, key) && !find_root(given, other)->key.line)
        mistake(mistakes, find_root(given, key)->key, key, "%s", what);
}

static void check_cluster_tls(struct mistakes *mistakes, const struct config *config,
                              const struct given given[])
{
    static const char *const keys[] = {"cluster.ca", "cluster.certificate", "cluster.keyfile"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (root_is_set(given, keys[i]) && !endpoints_have_tls(&config->cluster.etcd))
            mistake(mistakes, find_root(given, keys[i])->key, keys[i],
                    "is only for an etcd with TLS (etcd: [https://HOST:PORT])");
    check_together(mistakes, given, "cluster.certificate", "cluster.keyfile",
                   "has no key beside it (keyfile: FILE)");
    check_together(mistakes, given, "cluster.keyfile", "cluster.certificate",
                   "has no certificate beside it (certificate: FILE)");
}

// Only the cluster's cameras are placed by labels, so `on` has no effect on the daemon's own.
static void check_camera_labels(struct mistakes *mistakes, const struct config *config)
{
    const struct config_row *on = table_find(&camera_table, "on");
    char dotted[KEY_MAX];
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const struct place at = camera->places.value[on - camera_table.rows];
        snprintf(dotted, sizeof dotted, "cameras.%s.on", camera->name);
        if (at.line > 0)
            mistake(mistakes, at, dotted,
                    "has no effect on a camera of this daemon's own (framed cluster apply -f FILE "
                    "gives cameras to the cluster)");
    }
}

void check_cluster(struct mistakes *mistakes, const struct config *config,
                   const struct given given[])
{
    const char *const prefix = "cluster.";
    for (int i = 0; i < root_table.n && !find_root(given, "cluster.etcd")->key.line; i++) {
        const struct config_row *row = &root_table.rows[i];
        if (strncmp(row->key, prefix, strlen(prefix)) == 0 && !row->text && given[i].key.line)
            mistake(mistakes, given[i].key, row->key,
                    "has no effect without cluster.etcd (etcd: [http://HOST:2379])");
    }
    if (!root_is_set(given, "cluster.etcd"))
        return;
    if (!find_root(given, "cluster.site")->key.line)
        mistake(mistakes, find_root(given, "cluster.etcd")->key, "cluster.site",
                "is missing (for example site: yard)");
    check_cluster_name(mistakes, given, "cluster.site", config->cluster.site);
    check_cluster_name(mistakes, given, "cluster.node", config->cluster.node);
    check_cluster_tls(mistakes, config, given);
    check_together(mistakes, given, "cluster.password", "cluster.user",
                   "has no user beside it (user: NAME)");
    check_together(mistakes, given, "cluster.user", "cluster.password",
                   "has no password beside it (password: ${NAME} of a credential)");
    check_camera_labels(mistakes, config);
}

// --- the daemon's own sockets

static const char *token_wrong(const char *token)
{
    if (strlen(token) < TOKEN_MIN)
        return "is too short to be a secret";
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return "has a character that an HTTP header cannot hold";
    return NULL;
}

// Returns true if the key gives a token, good or bad.
static bool check_token(struct mistakes *mistakes, const char *key, const struct given *given,
                        const char *token)
{
    const char *wrong = token && !given->wrong ? token_wrong(token) : NULL;
    if (wrong)
        mistake(mistakes, given->value, key,
                "%s (at least %d letters, digits or punctuation marks)", wrong, TOKEN_MIN);
    return token || given->wrong;
}

static void check_http(struct mistakes *mistakes, const struct config *config,
                       const struct given given[])
{
    const struct given *http = find_root(given, "http"),
                       *reads = find_root(given, "http_read_token");
    const bool has_token =
        check_token(mistakes, "http_token", find_root(given, "http_token"), config->http_token);
    if (check_token(mistakes, "http_read_token", reads, config->http_read_token) && !has_token)
        mistake(mistakes, reads->key, "http_read_token",
                "needs an http_token beside it, for those who may do more (http_token: ${NAME} of "
                "a credential)");
    if (config->http_token && config->http_read_token &&
        strcmp(config->http_token, config->http_read_token) == 0)
        mistake(mistakes, reads->value, "http_read_token",
                "is the http_token (another text than that of http_token)");
    if (!address_is_local(&config->http.at) && !has_token)
        mistake(
            mistakes, http->value, "http",
            "can be reached from other machines, so it needs an http_token "
            "(http_token: ${NAME} of a credential, or 127.0.0.1:PORT, [::1]:PORT or unix:PATH)");
}

static bool has_sink_at(const struct output_config *output, const struct sink_address *address)
{
    return address_collides(&output->sink, address) ||
           address_collides(&output->detections.sink, address);
}

// The daemon's own sockets must not collide with any sink.
static void check_path(struct mistakes *mistakes, const struct config *config, const char *key,
                       struct place at, const struct sink_address *address)
{
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        for (int o = 0; o < camera->n_outputs; o++) {
            const struct output_config *output = &camera->outputs[o];
            if (!output->is_batch && has_sink_at(output, address))
                mistake(mistakes, at, key, "is also the sink of cameras.%s.outputs.%s",
                        camera->name, output->name);
        }
    }
    for (int i = 0; i < config->n_batches; i++)
        if (has_sink_at(&config->batches[i], address))
            mistake(mistakes, at, key, "is also the sink of batches.%s", config->batches[i].name);
}

static struct place place_or_start(struct place at)
{
    return at.line ? at : (struct place){.line = 1, .column = 1};
}

static int descriptor_of(const struct camera_config *camera)
{
    return camera->url && object_is_known(&camera_table, camera, "url")
               ? config_url_descriptor(camera->url)
               : -1;
}

// Two cameras cannot share a pipe: each would miss the bytes that the other reads.
static void check_descriptors(struct mistakes *mistakes, const struct config *config)
{
    char key[KEY_MAX];
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        const int fd = descriptor_of(camera);
        int j = 0;
        while (fd >= 0 && j < i && descriptor_of(&config->cameras[j]) != fd)
            j++;
        if (fd < 0 || j == i)
            continue;
        snprintf(key, sizeof key, "cameras.%s.url", camera->name);
        mistake(mistakes, object_value_place(&camera_table, camera, "url"), key,
                "is already read by cameras.%s: pipe:%d (each camera needs its own)",
                config->cameras[j].name, fd);
    }
}

// cuda.device and cuda.devices are one value, and contain each camera's GPU. A GPU given by UUID is
// not checked: its number is unknown until the GPUs are opened.
static void check_gpus(struct mistakes *mistakes, const struct config *config,
                       const struct given given[])
{
    const struct given *one = find_root(given, "cuda.device"),
                       *all = find_root(given, "cuda.devices");
    const struct gpu_list *gpus = &config->cuda.devices;
    char key[KEY_MAX], list[4 * GPUS_MAX] = "";
    size_t used = 0;
    if (one->key.line && all->key.line)
        mistake(mistakes, one->key, "cuda.device",
                "is the short form of cuda.devices, which line %d gives (one of both)",
                all->key.line);
    if (one->wrong || all->wrong)
        return;
    for (int i = 0; i < gpus->n; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", i ? ", " : "",
                                 gpus->number[i]);
    for (int i = 0; i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        int at = 0;
        while (at < gpus->n && gpus->number[at] != camera->device.number)
            at++;
        if (camera->device.by != GPU_BY_NUMBER || gpus->n == 0 || at < gpus->n)
            continue;
        snprintf(key, sizeof key, "cameras.%s.device", camera->name);
        mistake(mistakes, object_value_place(&camera_table, camera, "device"), key,
                "GPU %d is not among cuda.devices (auto, or of %s)", camera->device.number, list);
    }
}

// More threads than processors do not decode faster, and few streams keep more than four busy.
static void choose_threads(struct config *config)
{
    const struct processors allowed = processors_allowed();
    for (int i = 0; i < config->n_cameras; i++) {
        struct camera_config *camera = &config->cameras[i];
        const int share = processors_count(&allowed) / config->n_cameras;
        const enum url_kind kind = camera->url ? config_url_kind(camera->url) : URL_NONE;
        const bool live = kind == URL_RTSP || kind == URL_TCP || kind == URL_UNIX;
        const int chosen = !live || share < 1 ? 1 : share > THREADS_AUTO ? THREADS_AUTO : share;
        camera->threads = camera->decode_threads > 0 ? camera->decode_threads : chosen;
    }
}

// Only a regular file can be read more slowly without harm: a fifo or device may be live.
static bool is_file_at_full_pace(const struct config *config, const struct camera_config *camera)
{
    struct stat st;
    if (config->closed || !camera->url || config_url_kind(camera->url) != URL_FILE ||
        camera->pace != PACE_FULL)
        return false;
    return stat(config_url_path(camera->url), &st) < 0 || S_ISREG(st.st_mode);
}

static void choose_overflow(const struct config *config, struct camera_config *camera)
{
    enum overflow chosen =
        is_file_at_full_pace(config, camera) ? OVERFLOW_WAIT : OVERFLOW_DROP_OLDEST;
    for (int i = 0; i < camera->n_outputs; i++) {
        struct output_config *output = &camera->outputs[i];
        output->overflow_auto = output->overflow == OVERFLOW_AUTO;
        if (output->overflow_auto)
            output->overflow = chosen;
    }
}

// Refuses keys of the analysis that nothing uses, unless the file gives stats (stats: false).
static void check_analysis(struct mistakes *mistakes, const struct config *config,
                           const struct camera_config *camera)
{
    static const char *const keys[] = {"grid", "motion.sensitivity", "motion.mask",
                                       "motion.min_area"};
    const struct config_row *stats = table_find(&camera_table, "stats");
    const bool wanted = camera_config_analyses(camera) ||
                        camera->places.value[stats - camera_table.rows].line ||
                        gone_is_used(config, "gate.change");
    char dotted[KEY_MAX];
    for (size_t i = 0; !wanted && i < sizeof keys / sizeof *keys; i++) {
        const struct config_row *row = table_find(&camera_table, keys[i]);
        const struct place at = camera->places.value[row - camera_table.rows];
        snprintf(dotted, sizeof dotted, "cameras.%s.%s", camera->name, row->key);
        if (at.line > 0)
            mistake(mistakes, at, dotted,
                    "has no effect without stats: true, or an output with a gate or of kernel "
                    "stats");
    }
}

void check_root(struct mistakes *mistakes, struct config *config, const struct given given[])
{
    struct place control = find_root(given, "control")->value;
    struct place http = find_root(given, "http")->value;
    config->control_place = place_or_start(control);
    config->http_place = place_or_start(http);
    check_http(mistakes, config, given);
    check_path(mistakes, config, "control", control, &config->control.at);
    check_path(mistakes, config, "http", http, &config->http.at);
    if (address_collides(&config->control.at, &config->http.at))
        mistake(mistakes, http, "http", "is also the control socket");
    check_notify(mistakes, config, given);
    check_cluster(mistakes, config, given);
    check_descriptors(mistakes, config);
    check_gpus(mistakes, config, given);
    choose_threads(config);
    for (int i = 0; i < config->n_cameras; i++) {
        choose_overflow(config, &config->cameras[i]);
        check_analysis(mistakes, config, &config->cameras[i]);
    }
}

// --- cameras

// Schemes are case-insensitive (RFC 3986), but libavformat accepts only lower case.
static void lower_scheme(struct camera_config *camera)
{
    if (!camera->url || config_url_kind(camera->url) == URL_NONE || !strchr(camera->url, ':'))
        return;
    if (config_url_kind(camera->url) == URL_FILE && config_url_path(camera->url) == camera->url)
        return; // a path without a scheme
    for (char *c = camera->url; *c != ':'; c++)
        *c = (char)tolower((unsigned char)*c);
}

static const struct given *find_camera(const struct given given[], const char *key)
{
    return &given[table_find(&camera_table, key) - camera_table.rows];
}

// Refuses tls.ca and tls.fingerprint without TLS: the user would rely on a check that never runs.
// `defaults` may hold them, for the cameras that have TLS.
static void check_camera_tls(struct mistakes *mistakes, const struct camera_config *camera,
                             const struct given given[], const char *path)
{
    static const char *const keys[] = {"tls.ca", "tls.fingerprint"};
    char dotted[KEY_MAX];
    if (config_url_is_rtsps(camera->url) || !object_is_known(&camera_table, camera, "url"))
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct given *key = find_camera(given, keys[i]);
        snprintf(dotted, sizeof dotted, "%s.%s", path, keys[i]);
        if (key->key.line)
            mistake(mistakes, key->key, dotted, "is only for a camera with TLS (url: rtsps://)");
    }
}

void check_camera(struct mistakes *mistakes, struct camera_config *camera,
                  const struct given given[], const char *path)
{
    const struct given *url = find_camera(given, "url"), *grid = find_camera(given, "grid");
    char dotted[KEY_MAX];
    if (camera->grid.width * camera->grid.height > GRID_CELLS_MAX) {
        snprintf(dotted, sizeof dotted, "%s.grid", path);
        mistake(mistakes, grid->value, dotted, "has more than %d cells (32x18, or up to 32x32)",
                GRID_CELLS_MAX);
    }
    const char *wrong = url->key.line && !url->wrong ? config_url_mistake(camera->url) : NULL;
    lower_scheme(camera);
    if (!wrong && camera->url)
        check_camera_tls(mistakes, camera, given, path);
    if (!wrong)
        return;
    snprintf(dotted, sizeof dotted, "%s.url", path);
    mistake(mistakes, url->value, dotted, "%s", wrong);
}

// Returns true if another key with the same value counts: the one in the file, else the first.
static bool counts_as_another(int i, const struct given given[])
{
    bool another = false;
    for (int j = 0; j < root_table.n && !given[i].key.line; j++)
        another |= j != i && row_has_value(&root_table.rows[j]) &&
                   root_table.rows[j].offset == root_table.rows[i].offset &&
                   (given[j].key.line || j < i);
    return another;
}

void check_restart(struct mistakes *mistakes, const struct config *running,
                   const struct config *next, const struct given given[])
{
    for (int i = 0; i < root_table.n; i++) {
        const struct config_row *row = &root_table.rows[i];
        struct place at = place_or_start(given[i].value);
        if (row_has_value(row) && !row->live && !given[i].wrong && !counts_as_another(i, given) &&
            !value_equal(row, running, next))
            mistake(mistakes, at, row->key,
                    "needs a restart (a reload keeps the value that framed started with)");
    }
}
