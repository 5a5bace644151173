// File sinks: no file is overwritten, files contain whole frames after any failure, and common
// programs read them.
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "daemon/output/segment.h"
#include "tests/daemon/output/recorded.h"

static struct rig rig;

static void start(const char *name, enum protocol protocol, enum overflow overflow)
{
    rig_init(&rig, SINK_FILE, name);
    rig.config.protocol = protocol;
    rig.config.overflow = overflow;
    rig_open(&rig);
}

static char *in_folder(const char *name)
{
    return rig_in_folder(&rig, name);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0, "%s", path);
    if (file)
        fclose(file);
}

static bool holds(const char *path, const char *text)
{
    char bytes[64] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

static void *feed(void *opaque)
{
    for (int i = 0; i < *(int *)opaque; i++)
        if (rig_feed(&rig) == 0)
            uv_async_send(&rig.ready);
    return NULL;
}

// With `wait`, all frames are written, as fast as the disk takes them.
static void test_nothing_is_lost(void)
{
    int frames = 100;
    char copy[128];
    pthread_t camera;
    uint64_t lost = 0;
    bool cut;
    start("gate.framed", PROTOCOL_FRAMED, OVERFLOW_WAIT);
    rig_large(&rig);
    pthread_create(&camera, NULL, feed, &frames);
    pthread_join(camera, NULL);
    snprintf(copy, sizeof copy, "%s.copy", rig.folder);
    CHECK(link(rig.path, copy) == 0, "link");
    rig_close(&rig, 10000);
    CHECK(rig.ledger.emitted == (uint64_t)frames, "%d emitted", (int)rig.ledger.emitted);
    CHECK(frames_in(copy, &lost, &cut) == frames && !cut && lost == 0, "lost %d", (int)lost);
    unlink(copy);
}

static void test_nothing_is_overwritten(void)
{
    rig_init(&rig, SINK_FILE, "gate.framed");
    put(rig.path, "old");
    put(in_folder("gate.1.framed"), "older");
    rig_open(&rig);
    rig_record(&rig);
    CHECK(holds(in_folder("gate.1.framed"), "older"), "gate.1 changed");
    CHECK(holds(in_folder("gate.2.framed"), "old"), "the file was not kept as gate.2");
    expect_frames(rig.path, 1, 0);
    rig_close(&rig, 1000);

    rig_init(&rig, SINK_FILE, "gate.framed");
    put(rig.path, "of another process");
    int fd = open(rig.path, O_RDONLY | O_CLOEXEC);
    CHECK(flock(fd, LOCK_EX) == 0, "flock");
    uv_loop_init(&rig.loop);
    CHECK(rig_try_open(&rig) == -EBUSY && strstr(rig.why, "being written"), "%s", rig.why);
    uv_loop_close(&rig.loop);
    close(fd);
    CHECK(holds(rig.path, "of another process"), "the file was moved");
    unlink(rig.path);
    rmdir(rig.folder);

    rig_init(&rig, SINK_FILE, ".hidden"); // a dot that begins no extension
    put(rig.path, "old");
    rig_open(&rig);
    CHECK(holds(in_folder(".hidden.1"), "old"), "not kept as .hidden.1");
    CHECK(size_of(rig.path) == 0, "no file at the start");
    char path[128];
    strcpy(path, rig.path);
    rig_close(&rig, 1000);
    CHECK(access(path, F_OK) < 0, "an empty file is left");

    rig_init(&rig, SINK_FILE, "fifo");
    CHECK(mkfifo(rig.path, 0600) == 0, "mkfifo");
    uv_loop_init(&rig.loop);
    CHECK(rig_try_open(&rig) == -EEXIST && strstr(rig.why, "not a file"), "%s", rig.why);
    uv_loop_close(&rig.loop);
    CHECK(access(rig.path, F_OK) == 0, "the fifo was moved");
    unlink(rig.path);
    rmdir(rig.folder);
}

static void test_mode_and_group(void)
{
    struct stat st = {0};
    struct group *group = geteuid() == 0 ? getgrgid(1) : getgrgid(getegid());
    gid_t gid = group->gr_gid;
    rig_init(&rig, SINK_FILE, "gate.framed");
    rig.config.mode.mode = 0775;
    rig.config.group = group->gr_name;
    rig.config.group_id = gid;
    rig.config.has_group_id = true;
    umask(077);
    rig_open(&rig);
    umask(022);
    CHECK(stat(rig.path, &st) == 0 && (st.st_mode & 07777) == 0664, "mode %o", st.st_mode);
    CHECK(st.st_gid == gid, "group %d", (int)st.st_gid);
    rig_close(&rig, 1000);
}

// y4m cannot change its size: the next size gets a new file at the path.
static void test_geometry_starts_a_file(void)
{
    start("gate.y4m", PROTOCOL_Y4M, OVERFLOW_DROP_OLDEST);
    rig_record(&rig);
    rig_record(&rig);
    off_t first = size_of(rig.path);
    rig.width = SMALL / 2;
    rig_record(&rig);
    CHECK(size_of(in_folder("gate.1.y4m")) == first && first > 2 * SMALL, "%d bytes", (int)first);
    CHECK(size_of(rig.path) == first - (2 * SMALL + 6) + SMALL / 2, "%d", (int)size_of(rig.path));
    rig_record(&rig);
    CHECK(access(in_folder("gate.2.y4m"), F_OK) < 0, "a file for each frame");
    rig_close(&rig, 1000);
}

// A picture that changes its size with each frame does not fill the folder with files.
static void test_changes_are_bounded(void)
{
    start("gate.y4m", PROTOCOL_Y4M, OVERFLOW_DROP_OLDEST);
    for (int i = 0; i < 100; i++) {
        rig.width = i % 2 ? SMALL / 2 : SMALL;
        rig_record(&rig);
    }
    CHECK(access(in_folder("gate.30.y4m"), F_OK) == 0, "%d changes", SEGMENT_CHANGES);
    CHECK(access(in_folder("gate.40.y4m"), F_OK) < 0, "a file for each change");
    CHECK(size_of(rig.path) > SMALL, "frames of the last size go on");
    rig_close(&rig, 1000);
}

// After the file is moved or deleted, a new one appears at the path.
static void test_moved_away(void)
{
    start("gate.framed", PROTOCOL_FRAMED, OVERFLOW_DROP_OLDEST);
    rig_record(&rig);
    CHECK(rename(rig.path, in_folder("moved")) == 0, "rename");
    rig_record(&rig);
    rig_record(&rig);
    expect_frames(rig.path, 2, 0);
    expect_frames(in_folder("moved"), 1, 0);
    rig_close(&rig, 1000);
}

static void test_folder_is_gone(void)
{
    char moved[128];
    start("gate.framed", PROTOCOL_FRAMED, OVERFLOW_DROP_OLDEST);
    rig_record(&rig);
    snprintf(moved, sizeof moved, "%s.moved", rig.folder);
    CHECK(rename(rig.folder, moved) == 0, "rename");
    rig_record(&rig);
    rig_record(&rig);
    CHECK(rig_lost(&rig, LOSS_SINK) == 2, "%d lost", (int)rig_lost(&rig, LOSS_SINK));
    CHECK(rename(moved, rig.folder) == 0, "rename back");
    rig_record(&rig);
    CHECK(rig_lost(&rig, LOSS_SINK) == 3, "tried again at once");
    usleep(1100000);
    rig_record(&rig);
    expect_frames(rig.path, 1, 3);
    expect_frames(in_folder("gate.1.framed"), 1, 0);
    rig_close(&rig, 1000);
}

// A file that may not grow, by the limit of the process or of the file system: frames continue in
// another file, and none is lost.
static void test_file_is_full(void)
{
    const off_t whole = (off_t)sizeof(struct framed_header) + LARGE;
    struct rlimit limit, small;
    start("gate.framed", PROTOCOL_FRAMED, OVERFLOW_DROP_OLDEST);
    rig_large(&rig);
    rig_record(&rig);
    rig_record(&rig);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){(rlim_t)(whole * 2 + whole / 2), limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    rig_record(&rig);
    expect_frames(in_folder("gate.1.framed"), 2, 0);
    expect_frames(rig.path, 1, 0);
    small.rlim_cur = (rlim_t)(whole / 2); // less than a frame: nothing helps
    setrlimit(RLIMIT_FSIZE, &small);
    rig_record(&rig);
    rig_record(&rig);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(rig_lost(&rig, LOSS_SINK) == 2, "%d lost", (int)rig_lost(&rig, LOSS_SINK));
    usleep(1100000);
    rig_record(&rig);
    expect_frames(rig.path, 1, 2);
    expect_frames(in_folder("gate.2.framed"), 1, 0);
    rig_close(&rig, 1000);
    CHECK(rig.ledger.emitted == 4, "%d emitted", (int)rig.ledger.emitted);
}

// A writing child is killed at any moment: the file has whole frames, and at most one cut frame.
static void test_kill(void)
{
    rig_init(&rig, SINK_FILE, "gate.framed");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        rig.config.overflow = OVERFLOW_WAIT;
        rig_large(&rig);
        rig_open(&rig);
        int forever = 1 << 20;
        feed(&forever);
        _exit(0);
    }
    for (int i = 0; i < 10000 && size_of(rig.path) < 20 * LARGE; i++)
        usleep(500);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    uint64_t lost = 0;
    bool cut;
    int frames = frames_in(rig.path, &lost, &cut);
    CHECK(frames >= 19, "%d frames are readable", frames);
    unlink(rig.path);
    rmdir(rig.folder);
}

static void test_max_age(void)
{
    rig_init(&rig, SINK_FILE, "gate.framed");
    rig.config.max_age.ns = 300 * 1000000;
    rig_open(&rig);
    rig_feed(&rig);
    usleep(400000);
    rig_record(&rig);
    CHECK(rig_lost(&rig, LOSS_LATE) == 1 && rig_emitted(&rig) == 1, "%d late",
          (int)rig_lost(&rig, LOSS_LATE));
    rig_close(&rig, 1000);
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    TEST(test_kill()); // first: it forks, and this process has no other thread yet
    TEST(test_nothing_is_lost());
    TEST(test_nothing_is_overwritten());
    TEST(test_mode_and_group());
    TEST(test_geometry_starts_a_file());
    TEST(test_changes_are_bounded());
    TEST(test_moved_away());
    TEST(test_folder_is_gone());
    TEST(test_file_is_full());
    TEST(test_max_age());
    return test_end();
}
