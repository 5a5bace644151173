// A copy of the keys of one site, as etcd's answers and its watch give them.
#ifndef FRAMED_DAEMON_CLUSTER_MIRROR_H
#define FRAMED_DAEMON_CLUSTER_MIRROR_H

#include "daemon/cluster/etcd.h"

struct mirror_entry {
    char *key, *value; // the key without the prefix
    size_t length;
    int64_t mod_revision;
    uint64_t serial; // another for each value that came
};

struct mirror {
    char *prefix;              // "/framed/yard/"
    struct mirror_entry *list; // by the keys' bytes
    int n, room;
    int64_t revision; // of the store, up to which all changes are in
    uint64_t serial;  // of the entry that came last
};

int mirror_open(struct mirror *, const char *prefix); // 0 or -ENOMEM
void mirror_close(struct mirror *);                   // accepts a zeroed one
// All keys below the prefix at the answer's revision, in place of what was known. 0 or -ENOMEM.
int mirror_set(struct mirror *, const struct etcd_answer *);
// Changes of a watch. 0 or -ENOMEM.
int mirror_change(struct mirror *, const struct etcd_answer *);
int64_t mirror_newest(const struct mirror *); // revision of the key that was written last; 0: none
// Whether it has all keys as etcd has them, by etcd_get_changes since mirror_newest. That one, too,
// is to be there as it was: a store that was restored from a backup lacks it.
bool mirror_is_whole(const struct mirror *, const struct etcd_answer *);
// NULL: there is none.
const struct mirror_entry *mirror_find(const struct mirror *, const char *key);
// The first key that begins with "camera/" or the like, with how many there are behind it.
const struct mirror_entry *mirror_folder(const struct mirror *, const char *folder, int *n);

#endif
