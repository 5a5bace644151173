// Addresses of a subject on NATS: nats://HOST[:PORT][,HOST[:PORT]...]/SUBJECT, with all servers of
// one cluster of them.
#ifndef FRAMED_CONFIG_NATS_URL_H
#define FRAMED_CONFIG_NATS_URL_H

enum { NATS_SERVERS_MAX = 8, NATS_SERVERS_BYTES = 1024, NATS_SUBJECT_MAX = 128 };

struct nats_url {
    // As they stand in the URL, each with its port: "10.0.0.1:4222,[::1]:4222".
    char servers[NATS_SERVERS_BYTES];
    char subject[NATS_SUBJECT_MAX + 1];
};

// NULL, or what is wrong with the URL, which quotes nothing.
const char *nats_url_parse(struct nats_url *ret, const char *url);

#endif
