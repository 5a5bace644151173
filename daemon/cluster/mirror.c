#include "daemon/cluster/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/value.h"

int mirror_open(struct mirror *mirror, const char *prefix)
{
    *mirror = (struct mirror){.prefix = strdup(prefix)};
    return mirror->prefix ? 0 : -ENOMEM;
}

static void free_entry(struct mirror_entry *entry)
{
    free(entry->key);
    secret_free(entry->value); // cameras' URLs have passwords
}

static void clear(struct mirror *mirror)
{
    for (int i = 0; i < mirror->n; i++)
        free_entry(&mirror->list[i]);
    mirror->n = 0;
}

void mirror_close(struct mirror *mirror)
{
    clear(mirror);
    free(mirror->list);
    free(mirror->prefix);
    *mirror = (struct mirror){0};
}

// Returns the place of the key, or of the first one after it.
static int place_of(const struct mirror *mirror, const char *key)
{
    int low = 0, high = mirror->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (strcmp(mirror->list[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(struct mirror *mirror, int at)
{
    free_entry(&mirror->list[at]);
    mirror->n--;
    memmove(&mirror->list[at], &mirror->list[at + 1],
            sizeof *mirror->list * (size_t)(mirror->n - at));
}

static int make_room(struct mirror *mirror)
{
    if (mirror->n < mirror->room)
        return 0;
    const int room = 2 * mirror->room + 16;
    struct mirror_entry *list = realloc(mirror->list, sizeof *list * (size_t)room);
    if (!list)
        return -ENOMEM;
    mirror->list = list;
    mirror->room = room;
    return 0;
}

static int copy_entry(struct mirror *mirror, struct mirror_entry *ret, const char *key,
                      const struct etcd_entry *entry)
{
    *ret = (struct mirror_entry){.key = strdup(key),
                                 .value = malloc(entry->length + 1),
                                 .length = entry->length,
                                 .mod_revision = entry->mod_revision,
                                 .serial = ++mirror->serial};
    if (!ret->key || !ret->value) {
        free(ret->key);
        free(ret->value);
        return -ENOMEM;
    }
    memcpy(ret->value, entry->value, entry->length);
    ret->value[entry->length] = 0;
    return 0;
}

static int apply(struct mirror *mirror, const struct etcd_entry *entry)
{
    const size_t prefix = strlen(mirror->prefix);
    if (strncmp(entry->key, mirror->prefix, prefix) != 0)
        return 0;
    const char *key = entry->key + prefix;
    const int at = place_of(mirror, key);
    const bool known = at < mirror->n && strcmp(mirror->list[at].key, key) == 0;
    if (entry->version == 0) {
        if (known)
            remove_at(mirror, at);
        return 0;
    }
    struct mirror_entry copy;
    int rc = known ? 0 : make_room(mirror);
    if (rc == 0)
        rc = copy_entry(mirror, &copy, key, entry);
    if (rc < 0)
        return rc;
    if (known) {
        free_entry(&mirror->list[at]);
    } else {
        memmove(&mirror->list[at + 1], &mirror->list[at],
                sizeof *mirror->list * (size_t)(mirror->n - at));
        mirror->n++;
    }
    mirror->list[at] = copy;
    return 0;
}

static int apply_all(struct mirror *mirror, const struct etcd_answer *answer)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < answer->n; i++)
        rc = apply(mirror, &answer->entries[i]);
    if (rc == 0 && answer->revision > mirror->revision)
        mirror->revision = answer->revision;
    return rc;
}

int mirror_set(struct mirror *mirror, const struct etcd_answer *answer)
{
    clear(mirror);
    mirror->revision = 0;
    return apply_all(mirror, answer);
}

int mirror_change(struct mirror *mirror, const struct etcd_answer *answer)
{
    return apply_all(mirror, answer);
}

int64_t mirror_newest(const struct mirror *mirror)
{
    int64_t newest = 0;
    for (int i = 0; i < mirror->n; i++)
        if (mirror->list[i].mod_revision > newest)
            newest = mirror->list[i].mod_revision;
    return newest;
}

bool mirror_is_whole(const struct mirror *mirror, const struct etcd_answer *answer)
{
    const size_t prefix = strlen(mirror->prefix);
    bool whole = answer->total == mirror->n && answer->n > 0;
    for (int i = 0; whole && i < answer->n; i++) {
        const struct mirror_entry *known = mirror_find(mirror, answer->entries[i].key + prefix);
        whole = known && known->mod_revision == answer->entries[i].mod_revision;
    }
    return whole;
}

const struct mirror_entry *mirror_find(const struct mirror *mirror, const char *key)
{
    const int at = place_of(mirror, key);
    return at < mirror->n && strcmp(mirror->list[at].key, key) == 0 ? &mirror->list[at] : NULL;
}

const struct mirror_entry *mirror_folder(const struct mirror *mirror, const char *folder, int *n)
{
    const size_t length = strlen(folder);
    const int at = place_of(mirror, folder);
    *n = 0;
    while (at + *n < mirror->n && strncmp(mirror->list[at + *n].key, folder, length) == 0)
        ++*n;
    return &mirror->list[at];
}
