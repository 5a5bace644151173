// The documents in etcd: printed ones can be read again, and nonsense is refused.
#include "daemon/cluster/documents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void test_plan(void)
{
    struct plan_entry entries[] = {{"gate", "box1", INT64_MAX, 65535, 1.5}, {"yard", "", 0, 0, 0}};
    const struct plan plan = {.schema = 1, .version = 7, .removed = 3, .n = 2, .entries = entries};
    struct plan *read = NULL;
    char *text = plan_print(&plan);
    CHECK(text && plan_parse(&read, text, strlen(text)) == 0, "%s", text);
    if (read) {
        CHECK(read->version == 7 && read->removed == 3 && read->n == 2, "%s", text);
        CHECK(!memcmp(&read->entries[0], &entries[0], sizeof entries[0]), "%s", text);
        CHECK(!memcmp(&read->entries[1], &entries[1], sizeof entries[1]), "%s", text);
    }
    plan_free(read);
    free(text);
}

static void test_camera(void)
{
    char yaml[] = "cameras:\n  gate: {url: \"rtsp://u:p@h/\\u00e9\"}\n";
    const struct camera_document camera = {
        .text = yaml, .on = {1, {{"vlan", "a"}}}, .wish = "box2", .cost = 4};
    struct camera_document read;
    char *text = camera_document_print(&camera);
    CHECK(text && camera_document_parse(&read, text, strlen(text)) == 0, "%s", text);
    CHECK(!strcmp(read.text, yaml) && !strcmp(read.wish, "box2") && read.cost == 4, "%s", text);
    CHECK(read.on.n == 1 && !strcmp(read.on.list[0].key, "vlan") &&
              !strcmp(read.on.list[0].value, "a"),
          "%s", text);
    camera_document_clear(&read);
    CHECK(!read.text, "cleared");
    free(text);
}

static void test_node(void)
{
    struct running_camera running[] = {{"gate", 3, 0.25}};
    char refused[][PLAN_NAME_SIZE] = {"yard", "hall"};
    const struct node_document node = {.incarnation = INT64_C(7587884392011234567),
                                       .obeys = 12,
                                       .room = 16.5,
                                       .taken = 2,
                                       .counts = true,
                                       .since_ms = INT64_C(1795000000000),
                                       .http = "http://10.0.0.1:9090",
                                       .version = "0.1.0",
                                       .labels = {2, {{"vlan", "a"}, {"floor", "2"}}},
                                       .draining = true,
                                       .n_running = 1,
                                       .running = running,
                                       .n_refused = 2,
                                       .refused = refused};
    struct node_document read;
    char *text = node_document_print(&node), *again;
    CHECK(text && node_document_parse(&read, text, strlen(text)) == 0, "%s", text);
    again = node_document_print(&read);
    CHECK(again && !strcmp(text, again), "%s\n%s", text, again);
    CHECK(read.incarnation == node.incarnation && read.draining && read.counts &&
              read.labels.n == 2,
          "%s", text);
    CHECK(read.n_running == 1 && read.running[0].generation == 3 && read.running[0].cost == 0.25,
          "%s", text);
    CHECK(read.n_refused == 2 && !strcmp(read.refused[1], "hall"), "%s", text);
    node_document_clear(&read);
    free(text);
    free(again);
}

static void test_trouble(void)
{
    struct trouble_document read, trouble = {.node = "box1"};
    snprintf(trouble.why, sizeof trouble.why, "no \xff\xfe at rtsp://u:secret@h/");
    char *text = trouble_document_print(&trouble);
    CHECK(text && trouble_document_parse(&read, text, strlen(text)) == 0, "%s", text);
    CHECK(!strncmp(read.why, "no ?? at rtsp://", 16) && !strstr(read.why, "secret"), "%s",
          read.why);
    free(text);
    memset(trouble.why, 'x', sizeof trouble.why - 1);
    text = trouble_document_print(&trouble);
    CHECK(text && trouble_document_parse(&read, text, strlen(text)) == 0, "%s", text);
    free(text);
}

enum { PLAN = 1, CAMERA = 2, NODE = 4, TROUBLE = 8, ALL = 15 };

static int read_as(int kind, const char *text, size_t length)
{
    struct plan *plan = NULL;
    struct camera_document camera;
    struct node_document node;
    struct trouble_document trouble;
    int rc;
    switch (kind) {
    case PLAN:
        rc = plan_parse(&plan, text, length);
        plan_free(plan);
        return rc;
    case CAMERA:
        rc = camera_document_parse(&camera, text, length);
        camera_document_clear(&camera);
        return rc;
    case NODE:
        rc = node_document_parse(&node, text, length);
        node_document_clear(&node);
        return rc;
    default:
        return trouble_document_parse(&trouble, text, length);
    }
}

#define NAME64 "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
    int kinds, rc;
    const char *text;
} cases[] = {
    {ALL, -EBADMSG, ""},
    {ALL, -EBADMSG, "{"},
    {ALL, -EBADMSG, "[]"},
    {ALL, -EBADMSG, "null"},
    {ALL, -EBADMSG, "{\"schema\":1} {}"},
    {ALL, -EBADMSG, "{\"schema\":1,\"schema\":1}"},
    {ALL, -EBADMSG, "{}"},
    {ALL, -EBADMSG, "{\"schema\":\"1\"}"},
    {ALL, -EBADMSG, "{\"schema\":0}"},
    {ALL, -EBADMSG, "{\"schema\":1.0}"},
    {ALL, -EPROTONOSUPPORT, "{\"schema\":2}"},
    {PLAN | TROUBLE, 0, "{\"schema\":1,\"future\":[1,{}]}"},
    {CAMERA | NODE, -EBADMSG, "{\"schema\":1}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"version\":-1}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"version\":4611686018427387905}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"version\":1e3}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"removed\":65536}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":[]}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":1}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"\":{}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"a/b\":{}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"" NAME64 "\":{}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":{\"node\":\"" NAME64 "\"}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":{\"node\":\"box\"}}}"},
    {PLAN, -EBADMSG,
     "{\"schema\":1,\"cameras\":{\"gate\":{\"node\":\"box\",\"generation\":65536}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":{},\"gate\":{}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":{\"cost\":-1}}}"},
    {PLAN, -EBADMSG, "{\"schema\":1,\"cameras\":{\"gate\":{\"cost\":\"1\"}}}"},
    {PLAN, 0, "{\"schema\":1,\"cameras\":{\"gate\":{}}}"},
    {CAMERA, 0, "{\"schema\":1,\"text\":\"\"}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"a\\u0000b\"}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"\",\"on\":\"vlan\"}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"\",\"on\":{\"vlan\":1}}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"\",\"on\":{\"" NAME64 "\":\"a\"}}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"\",\"on\":{\"vlan\":\"" NAME64 "\"}}"},
    {CAMERA, -EBADMSG, "{\"schema\":1,\"text\":\"\",\"wish\":\"a\\nb\"}"},
    {NODE, 0, "{\"schema\":1,\"incarnation\":1}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":0}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"room\":-1}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"room\":1e999}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"draining\":0}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"running\":{}}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"running\":[{\"generation\":1}]}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"running\":[{\"camera\":\"a\"}]}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"refused\":[1]}"},
    {NODE, -EBADMSG, "{\"schema\":1,\"incarnation\":1,\"refused\":[\"\"]}"},
    {TROUBLE, -EBADMSG, "{\"schema\":1,\"why\":[]}"},
    {TROUBLE, -EBADMSG, "{\"schema\":1,\"node\":\"a/b\"}"},
};

static void test_nonsense(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int kind = PLAN; kind <= TROUBLE; kind *= 2) {
            const char *text = cases[i].text;
            const int rc = cases[i].kinds & kind ? read_as(kind, text, strlen(text)) : cases[i].rc;
            CHECK(rc == cases[i].rc, "%d: %d: %s", kind, rc, text);
        }
    char labels[2048] = "{\"schema\":1,\"text\":\"\",\"on\":{";
    for (int i = 0; i <= PLAN_LABELS_MAX; i++)
        sprintf(labels + strlen(labels), "%s\"k%d\":\"\"", i ? "," : "", i);
    strcat(labels, "}}");
    CHECK(read_as(CAMERA, labels, strlen(labels)) == -EBADMSG, "one label too many");
}

int main(void)
{
    TEST(test_plan());
    TEST(test_camera());
    TEST(test_node());
    TEST(test_trouble());
    TEST(test_nonsense());
    return test_end();
}
