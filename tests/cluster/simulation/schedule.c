#include "tests/cluster/simulation/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/documents.h"

struct schedule schedule;

const char *fault_name(enum fault fault)
{
    static const char *const names[] = {
        [FAULT_KILL] = "kill",
        [FAULT_STOP] = "stop",
        [FAULT_FREEZE] = "freeze",
        [FAULT_HANG_LOOP] = "hang loop",
        [FAULT_CUT] = "cut",
        [FAULT_DELAY] = "delay",
        [FAULT_SILENCE_WATCH] = "silence watch",
        [FAULT_SLOW_RELOADS] = "slow reloads",
        [FAULT_OWN_MISTAKE] = "own mistake",
        [FAULT_PASS_OVER_THREAD] = "pass over thread",
        [FAULT_CHANGE_CAMERA] = "change camera",
        [FAULT_ADD_CAMERA] = "add camera",
        [FAULT_REMOVE_CAMERA] = "remove camera",
        [FAULT_DRAIN] = "drain",
        [FAULT_REMOVE_KEY] = "remove key",
        [FAULT_REPLACE_PLAN] = "replace plan",
        [FAULT_START_SECOND] = "start second",
        [FAULT_ETCD_AWAY] = "etcd away",
        [FAULT_ETCD_SILENT] = "etcd silent",
        [FAULT_FILL_DISK] = "fill disk",
        [FAULT_COMPACT] = "compact",
        [FAULT_BACK_UP] = "back up",
        [FAULT_OTHER_USER] = "other user",
        [FAULT_LOSE_LEASES] = "lose leases",
    };
    return names[fault];
}

// --- the site

static struct process *process_of(int box)
{
    char name[16];
    snprintf(name, sizeof name, "box%d", box);
    for (int i = 0; i < PROCESSES_MAX; i++)
        if (process_is_alive(&world.processes[i]) && !world.processes[i].stopping &&
            strcmp(world.processes[i].name, name) == 0)
            return &world.processes[i];
    return NULL;
}

static void start_box(int box)
{
    static char label[] = "vlan";
    char name[16];
    struct cluster_config config = {.site = "yard",
                                    .lease = {schedule.lease_ns},
                                    .room = schedule.room[box],
                                    .alone = ALONE_STOP};
    config.labels.n = 1;
    snprintf(config.labels.list[0].name, sizeof config.labels.list[0].name, "%s", label);
    snprintf(config.labels.list[0].value, sizeof config.labels.list[0].value, "%s",
             schedule.labels[box]);
    if (schedule.kind == KIND_KEEP && box % 2)
        config.alone = ALONE_KEEP;
    snprintf(name, sizeof name, "box%d", box);
    struct process *p = process_start(name, &config);
    schedule.starts_ns[box] = p ? NS_NEVER : world.now_ns + NS_SECOND;
}

// Writes a camera's text, sometimes a bad one, sometimes with labels or a wish.
static void put_camera(int number, bool is_new)
{
    char key[STORE_KEY_SIZE], text[64];
    struct camera_document camera = {.text = text};
    snprintf(key, sizeof key, SITE_PREFIX "camera/cam%d", number);
    const unsigned bad = draw(10);
    snprintf(text, sizeof text, "cameras: {cam%d: %d} # bad box%u;", number, ++schedule.text,
             bad < 2 && schedule.kind != KIND_BOXES ? draw((unsigned)schedule.n_boxes) : 99);
    if (draw(8) == 0 && schedule.kind != KIND_BOXES) {
        camera.on.n = 1;
        strcpy(camera.on.list[0].key, "vlan");
        snprintf(camera.on.list[0].value, sizeof camera.on.list[0].value, "%c", 'a' + (int)draw(2));
    }
    if (!is_new && draw(3) == 0)
        snprintf(camera.wish, sizeof camera.wish, "box%u", draw((unsigned)schedule.n_boxes));
    char *json = camera_document_print(&camera);
    rules.wished[number] |= store_find(key) || strstr(text, "bad box99;") == NULL;
    store_put(key, json);
    free(json);
}

static void delete_key(const char *folder, const char *name)
{
    char key[STORE_KEY_SIZE];
    snprintf(key, sizeof key, SITE_PREFIX "%s%s", folder, name);
    store_put(key, NULL);
}

// --- events

static int64_t short_ns(void)
{
    return draw_ns(0, schedule.lease_ns * (draw(2) ? 3 : 1));
}

// Restarts the time that cameras are black at the latest event of a box.
void schedule_count_black(void)
{
    for (int i = 0; i < CAMERAS_MAX; i++)
        if (rules.counts_from_ns[i] != NS_NEVER)
            rules.counts_from_ns[i] = world.now_ns;
}

static void trouble_box(struct process *p, enum fault fault)
{
    const int box = box_number(p->name);
    const int64_t until_ns = world.now_ns + short_ns();
    switch (fault) {
    case FAULT_KILL:
        process_kill(p);
        schedule.starts_ns[box] = world.now_ns + draw_ns(0, schedule.lease_ns * 3 / 2);
        break;
    case FAULT_STOP:
        process_stop(p);
        schedule.starts_ns[box] = world.now_ns + draw_ns(NS_SECOND, schedule.lease_ns * 2);
        break;
    case FAULT_FREEZE:
        p->frozen_ns = until_ns;
        schedule_count_black();
        break;
    case FAULT_HANG_LOOP:
        p->hung_ns = until_ns;
        break;
    case FAULT_CUT:
        p->disturbance = (struct disturbance){
            .until_ns = until_ns, .loses_requests = draw(2), .loses_answers = draw(2)};
        break;
    case FAULT_DELAY:
        p->disturbance =
            (struct disturbance){.until_ns = until_ns, .delay_ns = draw_ns(0, schedule.lease_ns)};
        break;
    case FAULT_SILENCE_WATCH:
        p->silent_ns = world.now_ns + draw_ns(0, 50 * NS_SECOND);
        break;
    case FAULT_SLOW_RELOADS:
        p->slow_ns = until_ns;
        break;
    case FAULT_OWN_MISTAKE:
        p->mistake_ns = until_ns;
        rules.gives_away[box] = true;
        break;
    default:
        p->starving = 20 + (int)draw(200);
    }
    rules.touched[box] = true;
    trace("%s: fault %s", p->name, fault_name(fault));
}

static void put_plan_by_hand(void)
{
    static const char *const texts[] = {NULL, "{}", "{\"schema\":2,\"version\":99,\"cameras\":{}}"};
    rules_touch_all();
    store_put(SITE_PREFIX "plan", texts[draw(3)]);
}

static void trouble_operator(enum fault fault)
{
    const unsigned box = draw((unsigned)schedule.n_boxes);
    char name[16], key[STORE_KEY_SIZE];
    snprintf(name, sizeof name, "box%u", box);
    switch (fault) {
    case FAULT_CHANGE_CAMERA:
        put_camera((int)draw((unsigned)schedule.n_cameras), false);
        break;
    case FAULT_ADD_CAMERA:
        put_camera(schedule.n_cameras + (int)draw(3), true);
        break;
    case FAULT_REMOVE_CAMERA:
        snprintf(name, sizeof name, "cam%u", draw((unsigned)schedule.n_cameras));
        rules.wished[camera_number(name)] = true;
        delete_key("camera/", name);
        break;
    case FAULT_DRAIN:
        rules.touched[box] = rules.gives_away[box] = true;
        snprintf(key, sizeof key, SITE_PREFIX "drain/%s", name);
        store_put(key, store_find(key) ? NULL : "");
        break;
    case FAULT_REMOVE_KEY:
        rules.touched[box] = true;
        if (process_of((int)box))
            rules_send_astray(process_of((int)box));
        delete_key("node/", name);
        break;
    case FAULT_REPLACE_PLAN:
        put_plan_by_hand();
        break;
    case FAULT_START_SECOND:
        if (!process_of((int)box))
            return;
        start_box((int)box); // a second process with its name
        break;
    default:
        break;
    }
    trace("operator: fault %s", fault_name(fault));
}

static void trouble_etcd(enum fault fault)
{
    switch (fault) {
    case FAULT_ETCD_AWAY:
    case FAULT_ETCD_SILENT:
        world.etcd_away_ns = schedule.back_ns = world.now_ns + short_ns();
        world.etcd_silent = fault == FAULT_ETCD_SILENT;
        schedule.loses_leases = draw(3) == 0;
        schedule.restores = draw(3) == 0 && schedule.backup.revision > 0;
        if (schedule.loses_leases || schedule.restores) // both take time
            world.etcd_away_ns = schedule.back_ns += schedule.lease_ns;
        rules_touch_all();
        break;
    case FAULT_FILL_DISK:
        store.full = true;
        schedule.back_ns = world.now_ns + short_ns();
        rules_touch_all();
        break;
    case FAULT_COMPACT:
        store_compact();
        break;
    case FAULT_BACK_UP:
        store_save(&schedule.backup);
        break;
    case FAULT_OTHER_USER:
        store.now.revision += draw(3) + 1; // by another user of etcd
        break;
    default:
        for (int i = 0; i < PROCESSES_MAX; i++)
            rules_send_astray(&world.processes[i]);
        store_lose_leases();
        rules_touch_all();
    }
    trace("etcd: fault %s", fault_name(fault));
}

static void come_back(void)
{
    store.full = false;
    schedule.back_ns = NS_NEVER;
    if (world.etcd_away_ns == 0)
        return;
    world.etcd_away_ns = 0;
    if (schedule.restores)
        store_restore(&schedule.backup, world.now_ns);
    else
        store_prolong(world.now_ns);
    if (schedule.loses_leases)
        store_lose_leases();
    trace("etcd is back%s", schedule.restores ? ", from a backup" : "");
}

static void trouble(void)
{
    const enum fault fault =
        draw(schedule.kind == KIND_BOXES ? (unsigned)FAULT_HANG_LOOP : (unsigned)FAULTS);
    const unsigned first = schedule.kind == KIND_BOXES ? 1 : 0; // the first box has no faults
    struct process *p = process_of((int)(first + draw((unsigned)schedule.n_boxes - first)));
    schedule.faults[fault]++;
    if (fault < FAULT_CHANGE_CAMERA && p) {
        trouble_box(p, fault);
        schedule_count_black();
    } else if (fault >= FAULT_ETCD_AWAY) {
        trouble_etcd(fault);
    } else if (fault >= FAULT_CHANGE_CAMERA) {
        trouble_operator(fault);
    }
}

int64_t schedule_follow(void)
{
    int64_t next_ns = schedule.next_ns < schedule.back_ns ? schedule.next_ns : schedule.back_ns;
    rules_check();
    for (int i = 0; i < schedule.n_boxes; i++) {
        if (world.now_ns >= schedule.starts_ns[i] && process_of(i))
            schedule.starts_ns[i] = NS_NEVER; // a second process with its name started before
        if (world.now_ns >= schedule.starts_ns[i])
            start_box(i);
        if (schedule.starts_ns[i] < next_ns)
            next_ns = schedule.starts_ns[i];
    }
    if (world.now_ns >= schedule.back_ns)
        come_back();
    if (world.now_ns >= schedule.next_ns) {
        schedule.next_ns = world.now_ns + draw_ns(0, 6 * NS_SECOND);
        trouble();
    }
    return next_ns > world.now_ns ? next_ns : world.now_ns + NS_MS;
}

// --- its beginning and its end

void schedule_open(uint64_t seed)
{
    static const int64_t leases[] = {2, 3, 5, 8};
    world_open(seed);
    rules_open();
    struct schedule next = {
        .kind = draw(KINDS),
        .n_boxes = 2 + (int)draw(BOXES_MAX - 2),
        .n_cameras = 1 + (int)draw(8),
        .lease_ns = leases[draw(4)] * NS_SECOND,
        .next_ns = NS_NEVER,
        .back_ns = NS_NEVER,
    };
    memcpy(next.faults, schedule.faults, sizeof next.faults);
    schedule = next;
    for (int i = 0; i < schedule.n_boxes; i++) {
        schedule.labels[i][0] = (char)('a' + draw(2));
        schedule.room[i] = schedule.kind == KIND_BOXES || draw(2) ? 20 : 3 + (int)draw(6);
        schedule.starts_ns[i] = draw_ns(0, NS_SECOND);
    }
    for (int i = 0; i < schedule.n_cameras; i++)
        put_camera(i, true);
}

void schedule_end_faults(void)
{
    char key[STORE_KEY_SIZE];
    schedule.next_ns = NS_NEVER;
    if (schedule.back_ns != NS_NEVER) { // before leases expire
        schedule.loses_leases = schedule.restores = false;
        come_back();
    }
    for (int i = 0; i < PROCESSES_MAX; i++) {
        struct process *p = &world.processes[i];
        p->disturbance.until_ns = p->frozen_ns = p->hung_ns = p->mistake_ns = p->slow_ns = 0;
        p->silent_ns = 0;
        p->starving = 0;
    }
    for (int i = 0; i < schedule.n_boxes; i++) {
        struct process *other = NULL;
        snprintf(key, sizeof key, SITE_PREFIX "drain/box%d", i);
        if (store_find(key) && draw(2))
            store_put(key, NULL);
        for (int k = 0; k < PROCESSES_MAX; k++) {
            struct process *p = &world.processes[k];
            if (!process_is_alive(p) || p->stopping || box_number(p->name) != i)
                continue;
            if (other) {
                rules.touched[i] = true;
                process_kill(p);
            } else {
                other = p;
            }
        }
    }
    const struct store_key *plan = store_find(SITE_PREFIX "plan");
    if (plan && !rules.plan) // nobody can read it: the operator removes it
        store_put(SITE_PREFIX "plan", NULL);
    schedule_count_black();
    trace("no more faults");
}

void schedule_close(void)
{
    world_close();
    rules_close();
    store_free_state(&schedule.backup);
}
