// Any answer and any watch message of etcd's gateway: parsed values have their types and bounds,
// keys are the requested ones, and an error is a line of text.
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/etcd_json.h"
#include "tests/fuzz/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entries(const struct etcd_answer *answer, const char *prefix, bool events)
{
    int64_t revision = 0;
    MUST(answer->n >= 0 && (answer->n == 0 || answer->entries));
    for (int i = 0; i < answer->n; i++) {
        const struct etcd_entry *entry = &answer->entries[i];
        MUST(*entry->key && strncmp(entry->key, prefix, strlen(prefix)) == 0);
        MUST(entry->value[entry->length] == 0);
        MUST(entry->mod_revision > 0 && entry->mod_revision < INT64_MAX && entry->version >= 0);
        MUST(!events || entry->mod_revision >= revision);
        revision = entry->mod_revision;
    }
}

static void check_why(const char *why)
{
    MUST(*why && strlen(why) < ETCD_WHY_MAX);
    for (; *why; why++)
        MUST(!iscntrl((unsigned char)*why));
}

static void check_reply(enum etcd_method method, const char *prefix, const char *text, size_t size)
{
    struct etcd_reply reply;
    const int rc = etcd_reply_read(&reply, method, prefix, text, size);
    const struct etcd_answer *answer = &reply.answer;
    MUST(rc <= 0);
    if (rc < 0) {
        MUST(answer->n == 0);
        check_why(reply.why);
        etcd_reply_free(&reply);
        return;
    }
    MUST(answer->revision >= (method != ETCD_AUTHENTICATE) && answer->revision < INT64_MAX);
    MUST(answer->n == 0 || method == ETCD_RANGE || method == ETCD_WATCH);
    MUST((method != ETCD_GRANT && method != ETCD_KEEPALIVE) || (answer->lease && answer->ttl >= 0));
    MUST(!reply.token || (method == ETCD_AUTHENTICATE && *reply.token));
    check_entries(answer, prefix, method == ETCD_WATCH);
    etcd_reply_free(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (enum etcd_method method = ETCD_RANGE; method <= ETCD_WATCH; method++) {
        check_reply(method, "/framed/", (const char *)data, size);
        check_reply(method, "", (const char *)data, size);
    }
    return 0;
}
