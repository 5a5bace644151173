// Reading a site's keys: unchanged ones are shared, changed ones are read, and learned facts of a
// camera are kept.
#include "daemon/cluster/site.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test.h"

enum { CAMERAS = 1000, NODES = 20 };

static struct mirror mirror;
static struct site site;
static int64_t revision;

// `value` NULL: the key is deleted.
static void put(const char *key, const char *value)
{
    char whole[256];
    snprintf(whole, sizeof whole, "/framed/yard/%s", key);
    const struct etcd_entry entry = {.key = whole,
                                     .value = value ? value : "",
                                     .length = value ? strlen(value) : 0,
                                     .version = value != NULL,
                                     .mod_revision = ++revision};
    const struct etcd_answer answer = {.revision = revision, .entries = &entry, .n = 1};
    CHECK(mirror_change(&mirror, &answer) == 0, "%s", key);
}

static void put_node(const char *name, const char *running)
{
    char key[128], json[8192];
    snprintf(key, sizeof key, "node/%s", name);
    snprintf(json, sizeof json,
             "{\"schema\":1,\"incarnation\":5,\"obeys\":2,\"room\":8,\"running\":[%s]}", running);
    put(key, json);
}

static void put_camera(const char *name, const char *rest)
{
    char key[128], json[256];
    snprintf(key, sizeof key, "camera/%s", name);
    snprintf(json, sizeof json, "{\"schema\":1,\"text\":\"%s\"%s}", name, rest);
    put(key, json);
}

static void read_site(void)
{
    struct site next;
    CHECK(site_read(&next, &mirror, &site) == 0, "no memory");
    site_clear(&site);
    site = next;
}

static void begin(void)
{
    site_clear(&site);
    mirror_close(&mirror);
    CHECK(mirror_open(&mirror, "/framed/yard/") == 0, "no memory");
    put_camera("gate", ",\"on\":{\"vlan\":\"a\"},\"wish\":\"box2\"");
    put_camera("yard", "");
    put_node("box1", "{\"camera\":\"gate\",\"generation\":3,\"cost\":2.5},"
                     "{\"camera\":\"gone\",\"generation\":9,\"cost\":1}");
    put("plan", "{\"schema\":1,\"version\":2,\"cameras\":{"
                "\"gate\":{\"node\":\"box1\",\"bound\":5,\"generation\":3},"
                "\"yard\":{\"node\":\"box1\",\"bound\":5,\"generation\":7}}}");
    read_site();
}

static const struct plan_camera *camera_named(const char *name)
{
    for (int i = 0; i < site.n_cameras; i++)
        if (strcmp(site.cameras[i].name, name) == 0)
            return &site.cameras[i];
    static const struct plan_camera none;
    return &none;
}

static void test_keys(void)
{
    begin();
    CHECK(site.n_cameras == 2 && site.n_nodes == 1 && site.plan && site_obeys(&site), "%d, %d",
          site.n_cameras, site.n_nodes);
    const struct plan_camera *gate = camera_named("gate");
    CHECK(gate->on && gate->on->n == 1 && !strcmp(gate->wish, "box2") && gate->cost == 2.5 &&
              gate->generation == 3,
          "%g, %u", gate->cost, gate->generation);
    CHECK(!camera_named("yard")->on && camera_named("yard")->cost == 0, "nobody measured it");
    CHECK(!strcmp(site_camera_key(&site, "gate")->camera.text, "gate") &&
              !site_camera_key(&site, "hall"),
          "texts");
    CHECK(site_camera_key(&site, "yard")->revision == 2, "%lld",
          (long long)site_camera_key(&site, "yard")->revision);
    put("node/box1", "{");
    put("camera/yard", "[]");
    put("plan", "no plan");
    put("drain/box1", "");
    read_site();
    CHECK(site.n_nodes == 1 && site.nodes[0].room == 0 && site.nodes[0].draining, "a node");
    CHECK(site.n_cameras == 2 && site_camera_key(&site, "yard")->rc < 0, "a camera");
    CHECK(!site.plan && site.plan_rc < 0, "a plan");
}

// A plan cannot contain cameras or nodes with such names, so they are ignored.
static void test_names(void)
{
    begin();
    put_camera("a/b", "");
    put_camera("a b", "");
    put_camera("", "");
    put_camera("\u00e4", "");
    put_camera("a-name-of-twenty-4-bytes", "");
    put_node("box/2", "");
    read_site();
    CHECK(site.n_cameras == 2 && site.n_nodes == 1, "%d cameras, %d nodes", site.n_cameras,
          site.n_nodes);
}

// Only changed keys are read again: the others are the same objects in memory.
static void test_shared(void)
{
    begin();
    const uint64_t placement = site.placement;
    const struct site_key *gate = site_camera_key(&site, "gate"),
                          *yard = site_camera_key(&site, "yard"), *box = site.node_keys[0],
                          *plan = site.plan_key;
    put_node("box1", "{\"camera\":\"yard\",\"generation\":7,\"cost\":1.5}");
    put_node("box0", "");
    read_site();
    CHECK(site.n_nodes == 2 && site.node_keys[1] != box && site.node_keys[1]->node.n_running == 1,
          "the node is what it was");
    CHECK(site_camera_key(&site, "gate") == gate && site_camera_key(&site, "yard") == yard &&
              site.plan_key == plan,
          "what did not change was read again");
    CHECK(site.placement == placement, "a load asks for no orders");
    put_camera("hall", "");
    put_camera("yard", ",\"wish\":\"box1\"");
    box = site.node_keys[1];
    read_site();
    CHECK(site.n_cameras == 3 && site_camera_key(&site, "gate") == gate &&
              site_camera_key(&site, "yard") != yard && site.node_keys[1] == box,
          "cameras");
    CHECK(!strcmp(camera_named("yard")->wish, "box1") && camera_named("yard")->cost == 1.5,
          "it keeps its cost: %g", camera_named("yard")->cost);
    CHECK(site.placement == placement + 1, "%lld", (long long)site.placement);
    put("camera/gate", NULL);
    read_site();
    CHECK(site.n_cameras == 2 && !site_camera_key(&site, "gate") && site.placement == placement + 2,
          "a camera that left");
    put("plan", "{\"schema\":1,\"version\":3}");
    read_site();
    CHECK(site.plan->version == 3 && site.placement == placement + 3, "another plan");
    read_site();
    CHECK(site.placement == placement + 3, "nothing changed");
}

// A restored store may have another value at the same revision.
static void test_restored(void)
{
    begin();
    const int64_t was = site_camera_key(&site, "yard")->revision;
    const struct etcd_entry entry = {.key = "/framed/yard/camera/yard",
                                     .value = "{\"schema\":1,\"text\":\"another\"}",
                                     .length = strlen("{\"schema\":1,\"text\":\"another\"}"),
                                     .version = 1,
                                     .mod_revision = was};
    const struct etcd_answer answer = {.revision = was, .entries = &entry, .n = 1};
    CHECK(mirror_set(&mirror, &answer) == 0, "no memory");
    read_site();
    CHECK(site.n_cameras == 1 && !strcmp(site_camera_key(&site, "yard")->camera.text, "another"),
          "%s", site_camera_key(&site, "yard")->camera.text);
}

// A node's measurements stay known after its death, and so do generations of cameras after the plan
// is gone and the nodes have stopped them.
static void test_remembered(void)
{
    begin();
    put("node/box1", NULL);
    read_site();
    CHECK(camera_named("gate")->cost == 2.5 && camera_named("gate")->generation == 3, "%g, %u",
          camera_named("gate")->cost, camera_named("gate")->generation);
    put("plan", NULL);
    read_site();
    CHECK(!site.plan && camera_named("yard")->generation == 7, "%u",
          camera_named("yard")->generation);
    put_node("box2", "{\"camera\":\"yard\",\"generation\":6,\"cost\":0},"
                     "{\"camera\":\"gate\",\"generation\":4,\"cost\":3}");
    read_site();
    CHECK(camera_named("yard")->generation == 7 && camera_named("gate")->generation == 4 &&
              camera_named("gate")->cost == 3,
          "%u, %u", camera_named("yard")->generation, camera_named("gate")->generation);
    put("camera/gate", NULL);
    read_site();
    put_camera("gate", "");
    put_node("box2", "");
    read_site();
    CHECK(camera_named("gate")->cost == 0 && camera_named("gate")->generation == 0,
          "it is another camera");
}

// CPU time of this thread.
static double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static void put_busy_node(int i)
{
    char name[16], running[4096] = "";
    snprintf(name, sizeof name, "box%02d", i);
    for (int k = 0, at = 0; k < CAMERAS / NODES; k++)
        at += snprintf(running + at, sizeof running - (size_t)at,
                       "%s{\"camera\":\"cam%04d\",\"generation\":1,\"cost\":1}", k ? "," : "",
                       k * NODES + i);
    put_node(name, running);
}

static void test_large(void)
{
    char name[16];
    site_clear(&site);
    mirror_close(&mirror);
    CHECK(mirror_open(&mirror, "/framed/yard/") == 0, "no memory");
    for (int i = 0; i < CAMERAS; i++) {
        snprintf(name, sizeof name, "cam%04d", i);
        put_camera(name, "");
    }
    for (int i = 0; i < NODES; i++)
        put_busy_node(i);
    double began = now_ms(), took[2];
    read_site();
    took[0] = now_ms() - began;
    put_busy_node(7);
    began = now_ms();
    read_site();
    took[1] = now_ms() - began;
    printf("1,000 cameras on 20 nodes: %.2f ms; with one key that changed: %.2f ms\n", took[0],
           took[1]);
    CHECK(site.n_cameras == CAMERAS && camera_named("cam0999")->cost == 1, "%d", site.n_cameras);
    CHECK(took[1] < took[0] / 4, "%g and %g ms", took[0], took[1]);
}

int main(void)
{
    TEST(test_keys());
    TEST(test_names());
    TEST(test_shared());
    TEST(test_restored());
    TEST(test_remembered());
    TEST(test_large());
    site_clear(&site);
    mirror_close(&mirror);
    return test_end();
}
