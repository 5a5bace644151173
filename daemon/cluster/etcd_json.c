#include "daemon/cluster/etcd_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <libavutil/base64.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

// Most values in an answer: each takes up to 300 bytes once parsed, however short its text. A key
// with its fields takes 8 of them.
enum { JSON_VALUES_MAX = 1 << 19 };

// --- requests: NULL is no memory, and each caller passes it on, as json_pack does

static json_t *base64_of(const char *data, size_t size)
{
    if (size > INT_MAX / 2)
        return NULL;
    const size_t room = AV_BASE64_SIZE(size);
    char *text = malloc(room);
    json_t *string = text && av_base64_encode(text, (int)room, (const uint8_t *)data, (int)size)
                         ? json_string(text)
                         : NULL;
    free(text);
    return string;
}

static json_t *text_of(int64_t number)
{
    return json_sprintf("%" PRId64, number);
}

static char *print(json_t *root)
{
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

// Returns the first key after all that begin with `prefix`; "\0", any, if there is none.
static json_t *end_of(const char *prefix)
{
    char *end = strdup(prefix);
    size_t length = end ? strlen(end) : 0;
    while (length > 0 && (unsigned char)end[length - 1] == 0xff)
        length--;
    if (length > 0)
        end[length - 1]++;
    json_t *text = !end ? NULL : length > 0 ? base64_of(end, length) : base64_of("", 1);
    free(end);
    return text;
}

// Returns the range of keys with that prefix. etcd requires one byte if all keys are meant.
static json_t *range_of(const char *prefix)
{
    return json_pack("{s:o, s:o}", "key", base64_of(prefix, *prefix ? strlen(prefix) : 1),
                     "range_end", end_of(prefix));
}

char *etcd_print_range(const char *prefix)
{
    return print(range_of(prefix));
}

char *etcd_print_changes(const char *prefix, int64_t since)
{
    json_t *range = range_of(prefix);
    if (!range || json_object_set_new(range, "min_mod_revision", text_of(since)) < 0 ||
        json_object_set_new(range, "keys_only", json_true()) < 0) {
        json_decref(range);
        return NULL;
    }
    return print(range);
}

char *etcd_print_grant(int64_t ttl_s)
{
    return print(json_pack("{s:o}", "TTL", text_of(ttl_s)));
}

char *etcd_print_lease(int64_t lease)
{
    return print(json_pack("{s:o}", "ID", text_of(lease)));
}

char *etcd_print_login(const char *user, const char *password)
{
    return print(json_pack("{s:s, s:s}", "name", user, "password", password));
}

char *etcd_print_watch(const char *prefix, int64_t revision)
{
    json_t *range = range_of(prefix);
    if (!range || json_object_set_new(range, "start_revision", text_of(revision)) < 0) {
        json_decref(range);
        return NULL;
    }
    return print(json_pack("{s:o}", "create_request", range));
}

static json_t *compare_json(const struct etcd_compare *compare)
{
    const bool mod = compare->kind == ETCD_MOD_REVISION;
    return json_pack("{s:s, s:s, s:o, s:o}", "target", mod ? "MOD" : "VERSION", "result",
                     compare->kind == ETCD_VERSION_ABOVE ? "GREATER" : "EQUAL", "key",
                     base64_of(compare->key, strlen(compare->key)),
                     mod ? "mod_revision" : "version", text_of(compare->value));
}

static json_t *write_json(const struct etcd_write *write)
{
    json_t *key = base64_of(write->key, strlen(write->key));
    if (!write->value)
        return json_pack("{s:{s:o}}", "request_delete_range", "key", key);
    return json_pack("{s:{s:o, s:o, s:o}}", "request_put", "key", key, "value",
                     base64_of(write->value, strlen(write->value)), "lease", text_of(write->lease));
}

char *etcd_print_txn(const struct etcd_compare compares[], int n_compares,
                     const struct etcd_write writes[], int n_writes)
{
    json_t *compare = json_array(), *success = json_array();
    bool good = compare && success;
    for (int i = 0; good && i < n_compares; i++)
        good = json_array_append_new(compare, compare_json(&compares[i])) == 0;
    for (int i = 0; good && i < n_writes; i++)
        good = json_array_append_new(success, write_json(&writes[i])) == 0;
    if (!good) {
        json_decref(compare);
        json_decref(success);
        return NULL;
    }
    return print(json_pack("{s:o, s:o}", "compare", compare, "success", success));
}

// --- numbers and texts of answers

// Reads a number, or one as a text; 0 if it is absent. Returns false if it is neither.
static bool read_number(int64_t *ret, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    *ret = json_integer_value(value);
    if (!value || json_is_integer(value))
        return true;
    const char *text = json_string_value(value);
    char *end;
    errno = 0;
    *ret = text ? strtoll(text, &end, 10) : 0;
    return text && *text && strspn(text, "-0123456789") == strlen(text) && !*end && errno == 0;
}

// Reads a boolean, false if it is absent. Returns false if it has another type.
static bool read_bool(bool *ret, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    *ret = json_is_true(value);
    return !value || json_is_boolean(value);
}

static int fail(struct etcd_reply *reply, int rc, const char *why)
{
    log_scrub(reply->why, sizeof reply->why, why);
    if (!reply->why[0])
        snprintf(reply->why, sizeof reply->why, "it answers with an error without words");
    return rc;
}

static int refuse(struct etcd_reply *reply)
{
    return fail(reply, -EPROTO, "its answer is not etcd's");
}

// --- keys and values

// Decodes base64 after the data decoded before, and appends a zero byte. NULL: it is no base64.
static const char *decode(char **at, const json_t *text, size_t *length)
{
    char *to = *at;
    int size = 0;
    if (text && !json_is_string(text))
        return NULL;
    if (json_string_length(text) > 0)
        size = av_base64_decode((uint8_t *)to, json_string_value(text),
                                AV_BASE64_DECODE_SIZE((int)json_string_length(text)));
    if (size < 0)
        return NULL;
    to[size] = 0;
    *length = (size_t)size;
    *at = to + size + 1;
    return to;
}

// Returns the bytes that decode may need for all entries.
static size_t room_of(const json_t *list, bool events)
{
    size_t room = 0, i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const json_t *kv = events ? json_object_get(item, "kv") : item;
        room += AV_BASE64_DECODE_SIZE(json_string_length(json_object_get(kv, "key"))) + 1;
        room += AV_BASE64_DECODE_SIZE(json_string_length(json_object_get(kv, "value"))) + 1;
    }
    return room;
}

// Returns 1 for an entry; 0 if its key has a zero byte, so it is not framed's; or -EPROTO.
static int read_entry(struct etcd_entry *ret, char **at, const json_t *kv, const char *prefix)
{
    size_t key_length = 0;
    ret->key = decode(at, json_object_get(kv, "key"), &key_length);
    ret->value = decode(at, json_object_get(kv, "value"), &ret->length);
    if (!json_is_object(kv) || !ret->key || !ret->value || key_length == 0 ||
        !read_number(&ret->mod_revision, kv, "mod_revision") ||
        !read_number(&ret->version, kv, "version") || !read_number(&ret->lease, kv, "lease") ||
        ret->mod_revision <= 0 || ret->mod_revision == INT64_MAX || ret->version < 0 ||
        (prefix && strncmp(ret->key, prefix, strlen(prefix)) != 0))
        return -EPROTO;
    return strlen(ret->key) == key_length;
}

// Returns true if an event deletes. False in `good`: it is no event.
static bool is_deletion(const json_t *event, bool *good)
{
    const json_t *type = json_object_get(event, "type");
    const char *name = json_string_value(type);
    const bool deletion = name && strcmp(name, "DELETE") == 0;
    *good = !type || deletion || (name && strcmp(name, "PUT") == 0);
    return deletion;
}

static int read_entries(struct etcd_reply *reply, const json_t *list, bool events,
                        const char *prefix)
{
    const size_t n = json_array_size(list);
    if (list && !json_is_array(list))
        return refuse(reply);
    if (n == 0)
        return 0;
    reply->entries = calloc(n, sizeof *reply->entries);
    reply->bytes = malloc(room_of(list, events));
    if (!reply->entries || !reply->bytes)
        return fail(reply, -ENOMEM, strerror(ENOMEM));
    char *at = reply->bytes;
    int taken = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        struct etcd_entry *entry = &reply->entries[taken];
        bool good = true;
        const int rc = read_entry(entry, &at, events ? json_object_get(item, "kv") : item, prefix);
        const bool deletion = events && is_deletion(item, &good);
        if (rc < 0 || !good || (rc > 0 && deletion != (entry->version == 0)) ||
            (events && taken > 0 && entry->mod_revision < entry[-1].mod_revision))
            return refuse(reply);
        taken += rc;
    }
    reply->answer.entries = reply->entries;
    reply->answer.n = taken;
    return 0;
}

// --- answers of each method

// Reads an error of etcd. Its words decide on the errno; -EIO if they are not known.
static int read_error(struct etcd_reply *reply, const char *reason)
{
    static const struct {
        const char *words;
        int rc;
    } known[] = {
        {"invalid auth token", -EKEYEXPIRED},
        {"user name is empty", -EKEYEXPIRED},
        {"revision of auth store is old", -EKEYEXPIRED},
        {"authentication failed", -EACCES},
        {"permission denied", -EACCES},
        {"database space exceeded", -ENOSPC},
        {"requested lease not found", -ENOENT},
        {"revision has been compacted", -EOVERFLOW},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(reason, known[i].words))
            return fail(reply, known[i].rc, reason);
    return fail(reply, -EIO, reason);
}

// Returns the words of an error, "" if it has none; NULL: this is no error.
static const char *error_of(const json_t *root)
{
    const json_t *error = json_object_get(root, "error");
    if (!error && json_object_get(root, "code")) // the gateway of Debian 13's etcd
        error = json_object_get(root, "message");
    if (!error)
        return NULL;
    const char *words =
        json_string_value(json_is_object(error) ? json_object_get(error, "message") : error);
    return words ? words : "";
}

static int read_token(struct etcd_reply *reply, const json_t *root)
{
    const char *token = json_string_value(json_object_get(root, "token"));
    if (!token || !*token || strpbrk(token, "\r\n"))
        return refuse(reply);
    reply->token = strdup(token);
    return reply->token ? 0 : fail(reply, -ENOMEM, strerror(ENOMEM));
}

static int read_lease(struct etcd_reply *reply, enum etcd_method method, const json_t *root)
{
    struct etcd_answer *answer = &reply->answer;
    if (!read_number(&answer->lease, root, "ID") || !read_number(&answer->ttl, root, "TTL") ||
        answer->lease == 0 || answer->ttl < 0 || (method == ETCD_GRANT && answer->ttl == 0))
        return refuse(reply);
    return 0;
}

static int read_watch(struct etcd_reply *reply, const json_t *root, const char *prefix)
{
    bool canceled;
    int64_t compacted;
    if (!read_bool(&canceled, root, "canceled") || !read_bool(&reply->created, root, "created") ||
        !read_number(&compacted, root, "compact_revision"))
        return refuse(reply);
    if (compacted > 0)
        return fail(reply, -EOVERFLOW, "the watched revision has been compacted");
    if (canceled) {
        const char *reason = json_string_value(json_object_get(root, "cancel_reason"));
        return read_error(reply, reason ? reason : "it has ended the watch");
    }
    return read_entries(reply, json_object_get(root, "events"), true, prefix);
}

static int read_method(struct etcd_reply *reply, enum etcd_method method, const char *prefix,
                       const json_t *root)
{
    // The end of a watch has no revision, and a token needs none.
    const bool has_revision =
        method != ETCD_AUTHENTICATE &&
        (method != ETCD_WATCH || !json_is_true(json_object_get(root, "canceled")));
    if (!read_number(&reply->answer.revision, json_object_get(root, "header"), "revision") ||
        reply->answer.revision < has_revision || reply->answer.revision == INT64_MAX)
        return refuse(reply);
    switch (method) {
    case ETCD_RANGE:
        if (!read_number(&reply->answer.total, root, "count"))
            return refuse(reply);
        return read_entries(reply, json_object_get(root, "kvs"), false, prefix);
    case ETCD_GRANT:
    case ETCD_KEEPALIVE:
        return read_lease(reply, method, root);
    case ETCD_REVOKE:
        return 0;
    case ETCD_TXN:
        return read_bool(&reply->answer.succeeded, root, "succeeded") ? 0 : refuse(reply);
    case ETCD_AUTHENTICATE:
        return read_token(reply, root);
    case ETCD_WATCH:
        return read_watch(reply, root, prefix);
    }
    return refuse(reply);
}

// Returns true if the text has at most JSON_VALUES_MAX values. Base64 has none of these signs.
static bool is_moderate(const char *text, size_t length)
{
    int values = 0;
    for (size_t i = 0; i < length && values <= JSON_VALUES_MAX; i++)
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values <= JSON_VALUES_MAX;
}

int etcd_reply_read(struct etcd_reply *ret, enum etcd_method method, const char *prefix,
                    const char *text, size_t length)
{
    *ret = (struct etcd_reply){0};
    if (!is_moderate(text, length))
        return refuse(ret);
    json_t *root = json_loadb(text, length, 0, NULL);
    const bool streams = method == ETCD_KEEPALIVE || method == ETCD_WATCH;
    const char *error = error_of(root);
    int rc;
    if (error && method == ETCD_AUTHENTICATE && strstr(error, "authentication is not enabled"))
        rc = 0;
    else if (error)
        rc = read_error(ret, error);
    else
        rc = read_method(ret, method, prefix, streams ? json_object_get(root, "result") : root);
    json_decref(root);
    return rc;
}

void etcd_reply_free(struct etcd_reply *reply)
{
    free(reply->token);
    free(reply->entries);
    free(reply->bytes);
    *reply = (struct etcd_reply){0};
}
