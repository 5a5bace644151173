// A copy of the keys of one site, from etcd's answers and its watch.
#ifndef FRAMED_DAEMON_CLUSTER_MIRROR_H
#define FRAMED_DAEMON_CLUSTER_MIRROR_H

#include "daemon/cluster/etcd.h"

struct mirror_entry {
    char *key, *value; // the key without the prefix
    size_t length;
    int64_t mod_revision;
    uint64_t serial; // different for each received value
};

struct mirror {
    char *prefix;              // "/framed/yard/"
    struct mirror_entry *list; // in the order of the keys' bytes
    int n, room;
    int64_t revision; // of the store, up to which all changes are applied
    uint64_t serial;  // of the last received entry
};

int mirror_open(struct mirror *, const char *prefix); // 0 or -ENOMEM
void mirror_close(struct mirror *);                   // accepts a zeroed one
// Replaces all keys by those in the answer, at its revision. Returns 0 or -ENOMEM.
int mirror_set(struct mirror *, const struct etcd_answer *);
// Applies the changes of a watch. Returns 0 or -ENOMEM.
int mirror_change(struct mirror *, const struct etcd_answer *);
int64_t mirror_newest(const struct mirror *); // revision of the last written key; 0: none
// Returns true if the mirror has all of etcd's keys, by the answer of etcd_get_changes since
// mirror_newest. The newest key must be unchanged, too: a store restored from a backup lacks it.
bool mirror_is_whole(const struct mirror *, const struct etcd_answer *);
// Returns NULL if there is none.
const struct mirror_entry *mirror_find(const struct mirror *, const char *key);
// Returns the first key that begins with "camera/" or the like, and sets *n to their number.
const struct mirror_entry *mirror_folder(const struct mirror *, const char *folder, int *n);

#endif
