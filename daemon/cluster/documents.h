// Documents in etcd below /framed/SITE/, as JSON:
//   plan          {"schema":1,"version":7,"removed":0,
//                 "cameras":{"gate":{"node":"box1","bound":5210,"generation":3,"cost":1.5}}}
//   camera/NAME   {"schema":1,"text":"cameras: {gate: {...}}\n","on":{"vlan":"a"},"wish":"box2",
//                 "cost":1.0}
//                 text is YAML of a configuration with that camera alone, all defaults expanded
//   node/NODE     on the node's lease:
//                 {"schema":1,"incarnation":N,"obeys":V,"room":R,"taken":T,"counts":false,
//                 "http":"http://10.0.0.1:9090","labels":{...},"version":"0.9.0","draining":false,
//                 "since":S,"running":[{"camera":"gate","generation":3,"cost":1.0}],
//                 "refused":["yard"]}
//   trouble/NAME  {"schema":1,"node":"box1","why":"framed.d/cluster-gate.yaml:2:5: ..."}
//   drain/NODE    "" : the node gives its cameras away (set by `drain`, removed by `undrain`)
// Unknown keys of the same schema are ignored. Missing keys are empty, except those marked *. Names
// are of cameras and nodes; numbers are finite and not negative.
#ifndef FRAMED_DAEMON_CLUSTER_DOCUMENTS_H
#define FRAMED_DAEMON_CLUSTER_DOCUMENTS_H

#include <stddef.h>

#include "daemon/cluster/plan.h"

struct json_t;

enum { DOCUMENT_URL_SIZE = 256, DOCUMENT_VERSION_SIZE = 64, DOCUMENT_WHY_SIZE = 512 };
#define DOCUMENT_MS_MAX (INT64_C(1) << 53)

struct camera_document {
    char *text;                // * with passwords: for secret_free, see camera_document_clear
    struct plan_labels on;     // labels that its node must have
    char wish[PLAN_NAME_SIZE]; // "": none
    double cost;               // expected; 0: unknown
};

struct running_camera {
    char camera[PLAN_NAME_SIZE]; // *
    uint32_t generation;         // *
    double cost;                 // measured; 0: not yet
};

struct node_document {
    int64_t incarnation; // *
    int64_t obeys;       // version of the plan that it has carried out; 0: none
    double room, taken;
    bool counts;      // room and taken count cameras of any size
    int64_t since_ms; // of its join, by its clock, since 1970; "since" in JSON
    char http[DOCUMENT_URL_SIZE];
    char version[DOCUMENT_VERSION_SIZE];
    struct plan_labels labels;
    bool draining;
    int n_running;
    struct running_camera *running;
    int64_t n_refused;
    char (*refused)[PLAN_NAME_SIZE];
};

struct trouble_document {
    char node[PLAN_NAME_SIZE]; // that refused the camera
    char why[DOCUMENT_WHY_SIZE];
};

// Return 0 with *ret to be cleared; or, with *ret empty, -EBADMSG, -EPROTONOSUPPORT (a newer
// schema) or -ENOMEM.
int camera_document_parse(struct camera_document *ret, const char *json, size_t length);
int node_document_parse(struct node_document *ret, const char *json, size_t length);
int trouble_document_parse(struct trouble_document *ret, const char *json, size_t length);
int plan_parse(struct plan **ret, const char *json, size_t length); // *ret is for plan_free
// Return a text to be freed; NULL: no memory. A camera's has passwords: for secret_free.
char *camera_document_print(const struct camera_document *);
char *node_document_print(const struct node_document *);
char *trouble_document_print(const struct trouble_document *);
char *plan_print(const struct plan *);
// Free the members and empty the document.
void camera_document_clear(struct camera_document *);
void node_document_clear(struct node_document *);

bool is_document_name(const char *name);
struct json_t *document_of_labels(const struct plan_labels *); // accepts NULL; NULL: no memory

#endif
