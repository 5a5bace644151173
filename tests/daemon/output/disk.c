// File sinks on a disk that fails at each of their calls, once and permanently. The files contain
// exactly the frames that the ledger counts as emitted, whole, and frames continue when the disk
// works again.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>

#include "tests/daemon/output/recorded.h"
#include "tests/faults/disk.h"

static const int64_t second = 1000000000;
static struct rig rig;

static void begin(const char *name, bool timed)
{
    rig_init(&rig, SINK_FILE, name);
    rig.config.sink.timed = timed;
    rig.config.segment.ns = timed ? 2 * second : 0;
    rig.capture_ns = 100 * second;
    rig_open(&rig);
}

// Records frames one second apart: every second one begins a file, if files are timed.
static void record(int frames)
{
    for (int i = 0; i < frames; i++) {
        rig_record(&rig);
        rig.capture_ns += second;
    }
}

struct recorded {
    int parts, cut, empty; // unfinished files; files that end within a frame; empty files
    int frames;
};

static struct recorded look(void)
{
    struct recorded seen = {0};
    char path[400];
    DIR *folder = opendir(rig.folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint64_t lost;
        bool cut = false;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", rig.folder, entry->d_name);
        int frames = frames_in(path, &lost, &cut);
        CHECK(frames >= 0, "%s: something else than frames", path);
        seen.cut += cut;
        seen.empty += frames == 0 && !cut;
        seen.parts += (frames > 0 || cut) && strstr(entry->d_name, ".part");
        seen.frames += frames;
    }
    closedir(folder);
    return seen;
}

// Counts the log's lines with a text while `call` runs.
static int lines_of(void call(void), const char *text)
{
    char name[] = "/tmp/framed-log.XXXXXX", line[512];
    int lines = 0, log = mkstemp(name), saved = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(log, STDERR_FILENO);
    call();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    FILE *file = fopen(name, "r");
    while (file && fgets(line, sizeof line, file)) {
        lines += strstr(line, text) != NULL;
        if (!strstr(line, "output=detector"))
            fputs(line, stderr); // a failed check
    }
    fclose(file);
    close(log);
    close(saved);
    unlink(name);
    return lines;
}

// --- a full disk

static void fill_and_make_room(void)
{
    const struct disk_fault full = {rig.folder, 1, INT_MAX, ENOSPC};
    struct timespec pause = {.tv_nsec = 20000000};
    disk_break(&full);
    for (int i = 0; i < 110; i++) {
        record(1);
        nanosleep(&pause, NULL);
    }
    CHECK(rig_lost(&rig, LOSS_SINK) == 110, "%d lost", (int)rig_lost(&rig, LOSS_SINK));
    disk_break(NULL);
    int64_t start = monotonic_ns();
    uint64_t before = rig_emitted(&rig);
    while (rig_emitted(&rig) == before && monotonic_ns() - start < 10 * second) {
        record(1);
        nanosleep(&pause, NULL);
    }
    int64_t took = monotonic_ns() - start;
    CHECK(took < 5 * second, "goes on after %d ms", (int)(took / 1000000));
    printf("a frame is written %d ms after there is room\n", (int)(took / 1000000));
    record(2);
}

static void test_full(bool timed)
{
    begin(timed ? "%s.framed" : "gate.framed", timed);
    record(3);
    int lines = lines_of(fill_and_make_room, "No space left on device: frames are lost");
    CHECK(lines == 1, "said %d times", lines);
    rig_stop(&rig, 1000);
    struct recorded seen = look();
    CHECK(seen.frames == (int)rig.ledger.emitted && seen.frames >= 6, "%d frames", seen.frames);
    // A part that could not be cut back on the failing disk is cut off at the next start.
    CHECK(seen.cut <= 1 && seen.parts == seen.cut * timed, "%d cut, %d parts", seen.cut,
          seen.parts);
    rig_remove(&rig);
}

// Stopping does not wait for room.
static void test_end_while_full(bool timed)
{
    begin(timed ? "%s.framed" : "gate.framed", timed);
    record(3);
    const struct disk_fault full = {rig.folder, 1, INT_MAX, ENOSPC};
    disk_break(&full);
    for (int i = 0; i < 5; i++)
        rig_frame(&rig);
    int64_t start = monotonic_ns();
    rig_stop(&rig, 500);
    CHECK(monotonic_ns() - start < second, "took %d ms", (int)((monotonic_ns() - start) / 1000000));
    disk_break(NULL);
    struct recorded seen = look();
    CHECK(seen.frames == 3 && (int)rig.ledger.emitted == 3, "%d frames", seen.frames);
    rig_remove(&rig);
}

static void do_nothing(struct rig *unused)
{
    (void)unused;
}

// Stopping does not wait for the next attempt, but makes it.
static void test_last_attempt(void)
{
    begin("gate.framed", false);
    const struct disk_fault full = {rig.folder, 1, INT_MAX, ENOSPC};
    disk_break(&full);
    record(1);
    on_loop(&rig, do_nothing); // it has counted that frame, and drops the other ready ones
    disk_break(NULL);
    rig_feed(&rig);
    rig_stop(&rig, 500);
    CHECK(rig.ledger.emitted == 1 && look().frames == 1, "%d emitted", (int)rig.ledger.emitted);
    rig_remove(&rig);
}

// --- each call

// The next start finishes files of an earlier run.
static void start_again(void)
{
    struct rig before = rig;
    rig = (struct rig){.width = SMALL, .height = 1, .config = before.config};
    memcpy(rig.folder, before.folder, sizeof rig.folder);
    memcpy(rig.path, before.path, sizeof rig.path);
    rig.config.sink.path = rig.path;
    rig_open(&rig);
    rig_stop(&rig, 1000);
}

// Runs once with failing calls `first` to `last`. Returns the number of calls.
static int run_broken(bool timed, int first, int last, int error)
{
    begin(timed ? "%s.framed" : "gate.framed", timed);
    record(2);
    const struct disk_fault broken = {rig.folder, first, last, error};
    disk_break(&broken);
    record(3);
    rig.width = SMALL / 2;
    record(1);
    usleep(1100000);
    record(2);
    int calls = disk_calls();
    uint64_t before = rig_emitted(&rig);
    disk_break(NULL);
    usleep(2000000);
    record(3);
    CHECK(rig_emitted(&rig) == before + 3, "does not go on");
    CHECK(rig_lost(&rig, LOSS_SINK) + rig_emitted(&rig) == 11, "another loss");
    rig_stop(&rig, 1000);
    struct recorded seen = look();
    CHECK(seen.frames == (int)rig.ledger.emitted, "%d frames in files, %d emitted", seen.frames,
          (int)rig.ledger.emitted);
    CHECK(seen.cut == 0 || last == INT_MAX, "%d cut", seen.cut);
    CHECK(seen.parts == seen.cut * timed, "%d parts, %d cut", seen.parts, seen.cut);
    start_again();
    struct recorded again = look();
    CHECK(again.frames == seen.frames, "%d frames of %d", again.frames, seen.frames);
    CHECK(!timed || again.parts + again.cut + again.empty == 0, "%d parts, %d cut, %d empty",
          again.parts, again.cut, again.empty);
    rig_remove(&rig);
    return calls;
}

// Returns the status of a run in a process of its own.
static int wait_for(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static pid_t start_run(bool timed, int first, int last, int error)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int calls = run_broken(timed, first, last, error);
        if (test_failed)
            fprintf(stderr, "timed %d: call %d%s fails by %s\n", timed, first,
                    first == last ? "" : " and all after it", strerror(error));
        _exit(test_failed ? 0 : calls);
    }
    return child;
}

static void test_calls(bool timed)
{
    enum { AT_ONCE = 72 }; // a run mostly waits
    static const int errors[] = {ENOSPC, EIO, EACCES};
    int calls = wait_for(start_run(timed, 0, 0, 0)), red = 0;
    pid_t runs[AT_ONCE] = {0};
    CHECK(calls > 8 && calls < 100, "%d calls", calls);
    for (int i = 0; i < 6 * calls; i++) { // each error once and permanently
        int n = i / 6 + 1;
        pid_t *run = &runs[i % AT_ONCE];
        red += *run && wait_for(*run) <= 0;
        *run = start_run(timed, n, i % 6 < 3 ? n : INT_MAX, errors[i % 3]);
    }
    for (int i = 0; i < AT_ONCE; i++)
        red += runs[i] && wait_for(runs[i]) <= 0;
    CHECK(red == 0, "%d of %d runs are red", red, 6 * calls);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    log_open(LOG_LEVEL_ERROR);
    TEST(test_calls(false)); // first: it forks, and this process has no other thread yet
    TEST(test_calls(true));
    TEST(test_full(false));
    TEST(test_full(true));
    test_end_while_full(false);
    test_end_while_full(true);
    TEST(test_last_attempt());
    return test_end();
}
