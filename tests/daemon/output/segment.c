// Files with a time in their path: their start, their names before and after, and leftovers of a
// killed process.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/daemon/output/recorded.h"

static const int64_t ms = 1000000, second = 1000000000;
static struct rig rig;

static void begin(const char *name, int64_t split_ns, int64_t split_bytes)
{
    rig_init(&rig, SINK_FILE, name);
    rig.config.sink.timed = true;
    rig.config.segment = (struct split){.ns = split_ns, .bytes = split_bytes};
}

static void record_at(int64_t seconds, int64_t milliseconds)
{
    rig.capture_ns = seconds * second + milliseconds * ms;
    rig_record(&rig);
}

static char *in_folder(const char *name)
{
    return rig_in_folder(&rig, name);
}

static void put(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(in_folder(name), "w");
    CHECK(file && fwrite(bytes, 1, size, file) == size, "%s", name);
    if (file)
        fclose(file);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

// Checks that the folder contains exactly these files, separated by blanks and in order.
static void expect_names(const char *expected)
{
    struct dirent **entries;
    char names[1024] = "";
    int n = scandir(rig.folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " " : "",
                     entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    CHECK(strcmp(names, expected) == 0, "%s: '%s' instead of '%s'", rig.folder, names, expected);
}

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static void test_times(void)
{
    begin("%Y%m%d-%H%M%S.framed", 600 * second, 0);
    rig_open(&rig);
    expect_names("");
    record_at(1700000007, 0); // 22:13:27
    expect_names("20231114-221327.framed.part");
    record_at(1700000399, 999); // 22:19:59.999
    expect_names("20231114-221327.framed.part");
    record_at(1700000400, 0);
    expect_names("20231114-221327.framed 20231114-222000.framed.part");
    record_at(1700000399, 990); // a little back: same file
    record_at(1700000401, 0);
    record_at(1700002300, 0); // 22:51:40
    record_at(1700000000, 0); // far back
    expect_frames(in_folder("20231114-221327.framed"), 2, 0);
    expect_frames(in_folder("20231114-222000.framed"), 3, 0);
    expect_frames(in_folder("20231114-225140.framed"), 1, 0);
    rig_stop(&rig, 1000);
    expect_names("20231114-221320.framed 20231114-221327.framed 20231114-222000.framed "
                 "20231114-225140.framed");
    CHECK(rig.ledger.emitted == 7 && ledger_lost(&rig.ledger) == 0, "lost");
    rig_remove(&rig);
}

// Days begin at midnight in the camera's zone, and a change of the clock begins a file.
static void test_zones(void)
{
    set_zone("Asia/Kathmandu"); // 5:45 ahead of UTC
    begin("%d-%H%M.framed", 3600 * second, 0);
    rig_open(&rig);
    record_at(1699985699, 0); // 23:59:59
    record_at(1699985700, 0);
    rig_stop(&rig, 1000);
    expect_names("14-2359.framed 15-0000.framed");
    rig_remove(&rig);

    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    begin("%d-%H%M.framed", 24 * 3600 * second, 0);
    rig_open(&rig);
    record_at(1698519600, 0); // 28th of October, 21:00 summer time
    record_at(1698530399, 0); // 23:59:59
    record_at(1698530400, 0); // the 29th
    record_at(1698541199, 0); // 2:59:59
    record_at(1698541200, 0); // 2:00:00 again
    record_at(1698620399, 0); // 23:59:59
    record_at(1698620400, 0);
    rig_stop(&rig, 1000);
    expect_names("28-2100.framed 29-0000.framed 29-0200.framed 30-0000.framed");
    expect_frames(in_folder("29-0200.framed"), 2, 0);
    rig_remove(&rig);
    set_zone("UTC");
}

static void test_sizes(void)
{
    const off_t record = (off_t)sizeof(struct framed_header) + LARGE;
    begin("%s.framed", 0, 3 * record + 1000);
    rig_open(&rig);
    rig_large(&rig);
    for (int i = 0; i < 7; i++)
        record_at(100 + i, 0);
    expect_names("100.framed 103.framed 106.framed.part");
    CHECK(size_of(in_folder("100.framed")) == 3 * record &&
              size_of(in_folder("103.framed")) == 3 * record,
          "%d", (int)size_of(in_folder("100.framed")));
    rig_stop(&rig, 1000);
    rig_remove(&rig);

    begin("%s.framed", 0, 1000); // less than a frame: each has a file
    rig_open(&rig);
    rig_large(&rig);
    record_at(1, 0);
    record_at(2, 0);
    rig_stop(&rig, 1000);
    expect_names("1.framed 2.framed");
    rig_remove(&rig);
}

// Without splitting, one file per run, except for changes that its protocol cannot represent.
static void test_protocols(void)
{
    static const struct {
        const char *path, *names;
        enum protocol protocol;
        int record, header;
    } cases[] = {
        {"a%s.y4m", "a1.y4m a3.y4m a4.y4m", PROTOCOL_Y4M, 6, 54},
        {"a%s.raw", "a1.raw a3.raw a4.raw", PROTOCOL_RAW, 0, 0},
        {"a%s.npy", "a1.npy a4.npy", PROTOCOL_NPY, 128, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char first[32], path[32];
        begin(strcpy(path, cases[i].path), 4 * second, 0);
        rig.config.protocol = cases[i].protocol;
        rig_open(&rig);
        record_at(1, 0);
        record_at(2, 0);
        rig.width = SMALL / 2;
        record_at(3, 0);
        record_at(4, 0);
        rig_stop(&rig, 1000);
        expect_names(cases[i].names);
        snprintf(first, sizeof first, "%.*s", (int)strcspn(cases[i].names, " "), cases[i].names);
        off_t frames = cases[i].record ? 2 * (SMALL + cases[i].record) : 2 * SMALL;
        if (cases[i].protocol != PROTOCOL_NPY)
            CHECK(size_of(in_folder(first)) == frames + cases[i].header, "%s: %d bytes, not %d",
                  first, (int)size_of(in_folder(first)), (int)frames + cases[i].header);
        else
            CHECK(size_of(in_folder(first)) > frames, "%s: %d bytes", first,
                  (int)size_of(in_folder(first)));
        rig_remove(&rig);
    }
}

static void test_no_overwriting(void)
{
    begin("%s.framed", second, 0);
    put_text("1.framed", "old");
    put_text("2.framed.part", "somebody's"); // no frames: not a leftover of framed
    rig_open(&rig);
    record_at(1, 0);
    expect_names("1.1.framed.part 1.framed 2.framed.part");
    record_at(2, 0);
    expect_names("1.1.framed 1.framed 2.1.framed.part 2.framed.part");
    record_at(3, 0);
    put_text("3.framed", "new"); // while 3.framed.part is written
    record_at(4, 0);
    rig_stop(&rig, 1000);
    expect_names("1.1.framed 1.framed 2.1.framed 2.framed.part 3.1.framed 3.framed 4.framed");
    CHECK(size_of(in_folder("1.framed")) == 3 && size_of(in_folder("3.framed")) == 3 &&
              size_of(in_folder("2.framed.part")) == 10,
          "overwritten");
    expect_frames(in_folder("3.1.framed"), 1, 0);
    rig_remove(&rig);
}

// A file is named after the first frame that it contains, not after one that failed to be written.
static void test_name_of_first_frame(void)
{
    struct rlimit limit, small;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){sizeof(struct framed_header), limit.rlim_max};
    begin("%s.framed", 0, 0);
    rig_open(&rig);
    setrlimit(RLIMIT_FSIZE, &small);
    record_at(1, 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(rig_lost(&rig, LOSS_SINK) == 1, "%d lost", (int)rig_lost(&rig, LOSS_SINK));
    expect_names("");
    usleep(1100000);
    record_at(9, 0);
    rig_stop(&rig, 1000);
    expect_names("9.framed");
    rig_remove(&rig);
}

// An empty file is removed; a file that was moved away is left alone.
static void test_moved_and_empty(void)
{
    begin("%s.framed", second, 0);
    rig_open(&rig);
    record_at(1, 0);
    CHECK(rename(in_folder("1.framed.part"), rig.path) == 0, "rename");
    record_at(1, 500);
    record_at(2, 0);
    CHECK(unlink(in_folder("2.framed.part")) == 0, "unlink");
    record_at(3, 0);
    rig_stop(&rig, 1000);
    expect_names("%s.framed 1.framed 3.framed");
    expect_frames(in_folder("1.framed"), 1, 0);
    rig_remove(&rig);

    begin("%s.framed", second, 0);
    rig_open(&rig);
    rig_stop(&rig, 1000);
    expect_names("");
    rig_remove(&rig);

    begin("none/%s.framed", second, 0);
    uv_loop_init(&rig.loop);
    CHECK(rig_try_open(&rig) == -ENOENT && strstr(rig.why, "No such file"), "%s", rig.why);
    uv_loop_close(&rig.loop);
    rmdir(rig.folder);
}

// --- leftovers

static size_t framed_bytes(char *to, int frames, size_t payload)
{
    size_t size = 0;
    for (int i = 0; i < frames; i++) {
        struct framed_header header = {.magic = "FRMD",
                                       .header_bytes = sizeof header,
                                       .payload_bytes = payload,
                                       .sequence = (uint64_t)i};
        memcpy(to + size, &header, sizeof header);
        size += sizeof header;
        for (size_t n = 0; n < payload; n++)
            to[size++] = (char)sample((uint64_t)i, n);
    }
    return size;
}

static void restart(enum protocol protocol)
{
    rig.config.protocol = protocol;
    rig_open(&rig);
    rig_stop(&rig, 1000);
}

// A file that ends at any byte is cut after its last whole frame.
static void test_tails(void)
{
    enum { PAYLOAD = 40, RECORD = (int)sizeof(struct framed_header) + PAYLOAD };
    char bytes[3 * RECORD];
    framed_bytes(bytes, 3, PAYLOAD);
    for (int size = 0; size <= 3 * RECORD; size += size % RECORD == RECORD - 1 ? 1 : 7) {
        begin("%s.framed", 0, 0);
        put("1.framed.part", bytes, (size_t)size);
        restart(PROTOCOL_FRAMED);
        expect_names(size < RECORD ? "" : "1.framed");
        if (size >= RECORD)
            CHECK(size_of(in_folder("1.framed")) == size / RECORD * RECORD, "%d of %d bytes",
                  (int)size_of(in_folder("1.framed")), size);
        rig_remove(&rig);
    }
}

static void test_tails_of(enum protocol protocol, const char *ending, const char *bytes,
                          size_t header, size_t record)
{
    char path[32], part[32], name[32];
    snprintf(path, sizeof path, "%%s.%s", ending);
    snprintf(part, sizeof part, "1.%s.part", ending);
    snprintf(name, sizeof name, "1.%s", ending);
    for (size_t size = header + 2 * record + 1; size-- > 0;) {
        begin(path, 0, 0);
        put(part, bytes, size);
        restart(protocol);
        off_t frames = size < header ? 0 : (off_t)((size - header) / record);
        off_t expected = frames ? (off_t)header + frames * (off_t)record : -1;
        CHECK(size_of(in_folder(name)) == expected && size_of(in_folder(part)) == -1,
              "%s: %d instead of %d, part %d", name, (int)size_of(in_folder(name)), (int)expected,
              (int)size_of(in_folder(part)));
        rig_remove(&rig);
    }
}

// Returns a sink's bytes for two small frames.
static size_t recorded_bytes(enum protocol protocol, char *bytes, size_t size)
{
    begin("%s.x", 0, 0);
    rig.config.protocol = protocol;
    rig.width = 6;
    rig.height = 3;
    rig_open(&rig);
    record_at(1, 0);
    record_at(1, 0);
    rig_stop(&rig, 1000);
    FILE *file = fopen(in_folder("1.x"), "r");
    CHECK(file, "1.x");
    size_t n = file ? fread(bytes, 1, size, file) : 0;
    if (file)
        fclose(file);
    rig_remove(&rig);
    return n;
}

static void test_other_tails(void)
{
    char bytes[1024];
    size_t n = recorded_bytes(PROTOCOL_Y4M, bytes, sizeof bytes), record = 6 + 6 * 3;
    test_tails_of(PROTOCOL_Y4M, "y4m", bytes, n - 2 * record, record);
    n = recorded_bytes(PROTOCOL_NPY, bytes, sizeof bytes);
    test_tails_of(PROTOCOL_NPY, "npy", bytes, 0, n / 2);
    memcpy(bytes, "YUV4MPEG2 W3 H3 F25:1 Ip A1:1 C420jpeg XCOLORRANGE=FULL\nFRAME\n", 63);
    test_tails_of(PROTOCOL_Y4M, "y4m", bytes, 56, 6 + 9 + 8);
    memcpy(bytes, "YUV4MPEG2 W3 H3 F25:1 Ip A1:1 C444 XCOLORRANGE=LIMITED\nFRAME\n", 62);
    test_tails_of(PROTOCOL_Y4M, "y4m", bytes, 55, 6 + 27);
    test_tails_of(PROTOCOL_RAW, "raw", bytes, 0, 1); // it has no frame boundaries
}

// Long files of lines are read only near their end.
static void test_lines(void)
{
    static const char line[] = "{\"camera\":\"gate\",\"output\":\"events\"}\n";
    enum { LINE = sizeof line - 1, LINES = 60000 };
    static char bytes[LINES * LINE];
    for (int i = 0; i < LINES; i++)
        memcpy(bytes + i * LINE, line, LINE);
    test_tails_of(PROTOCOL_LINES, "jsonl", bytes, 0, LINE);
    for (size_t size = sizeof bytes - 2 * LINE; size < sizeof bytes; size += 7) {
        begin("%s.jsonl", 0, 0);
        put("1.jsonl.part", bytes, size);
        restart(PROTOCOL_LINES);
        CHECK(size_of(in_folder("1.jsonl")) == (off_t)(size / LINE * LINE), "%d of %d bytes",
              (int)size_of(in_folder("1.jsonl")), (int)size);
        rig_remove(&rig);
    }
    memset(bytes + sizeof bytes / 4, 0, sizeof bytes - sizeof bytes / 4);
    begin("%s.jsonl", 0, 0);
    put("1.jsonl.part", bytes, sizeof bytes);
    restart(PROTOCOL_LINES);
    CHECK(size_of(in_folder("1.jsonl")) >= (off_t)sizeof bytes / 4, "lines before zeros are lost");
    rig_remove(&rig);
}

static void test_whose_leftovers(void)
{
    char bytes[2 * 300];
    size_t size = framed_bytes(bytes, 2, 10);
    begin("a-%H.framed", 0, 0);
    put("a-01.framed.part", bytes, size);
    put("a-01.framed", bytes, size); // the name is taken: gets a number
    put("a-02.7.framed.part", bytes, size - 1);
    put("a-3.framed.part", bytes, size);  // not of this pattern
    put("b-01.framed.part", bytes, size); // nor are these
    put("a-04.framed.part~", bytes, size);
    put_text("a-05.framed.part", "FRMX"); // no frames
    put("a-06.framed.part", bytes, size); // written by somebody else
    put("a-08.framed.part", "FRM", 3);    // cut within its first word
    CHECK(mkdir(in_folder("a-07.framed.part"), 0700) == 0, "mkdir");
    int fd = open(in_folder("a-06.framed.part"), O_RDONLY | O_CLOEXEC);
    CHECK(flock(fd, LOCK_EX) == 0, "flock");
    restart(PROTOCOL_FRAMED);
    expect_names("a-01.1.framed a-01.framed a-02.7.framed a-04.framed.part~ a-05.framed.part "
                 "a-06.framed.part a-07.framed.part a-3.framed.part b-01.framed.part");
    CHECK(size_of(in_folder("a-02.7.framed")) == (off_t)size / 2, "%d",
          (int)size_of(in_folder("a-02.7.framed")));
    close(fd);
    rig_remove(&rig);
}

// A writing child is killed at any moment: a file with its final name is whole, one other may be
// cut, and the next start makes that whole too.
static void test_kill(int kilobytes)
{
    begin("%s.framed", second, 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        rig.config.overflow = OVERFLOW_WAIT;
        rig_large(&rig);
        rig_open(&rig);
        for (int i = 0; i < 1 << 16; i++) {
            rig.capture_ns = i * (second / 4);
            rig_feed(&rig);
            uv_async_send(&rig.ready);
        }
        _exit(0);
    }
    char last[32];
    snprintf(last, sizeof last, "%d.framed.part", 2 + kilobytes % 5);
    for (int i = 0; i < 20000 && size_of(in_folder(last)) < kilobytes * 1024; i++)
        usleep(200);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    int whole = 0, parts = 0, frames = 0;
    for (int round = 0; round < 2; round++) {
        struct dirent **entries;
        int n = scandir(rig.folder, &entries, NULL, alphasort);
        frames = 0;
        for (int i = 0; i < n; i++) {
            uint64_t lost;
            bool cut = false, part = strstr(entries[i]->d_name, ".part");
            if (strstr(entries[i]->d_name, ".framed")) {
                int found = frames_in(in_folder(entries[i]->d_name), &lost, &cut);
                CHECK(found >= 0 && (part || (found > 0 && !cut)), "%s: %d frames, cut %d",
                      entries[i]->d_name, found, cut);
                frames += found;
            }
            parts += part;
            free(entries[i]);
        }
        free(entries);
        if (round == 0) {
            CHECK(parts <= 1 && frames >= 8, "%d parts, %d frames", parts, frames);
            whole = frames;
            parts = 0;
            restart(PROTOCOL_FRAMED);
        }
    }
    CHECK(parts == 0 && frames == whole, "%d parts, %d of %d frames", parts, frames, whole);
    rig_remove(&rig);
}

// Each runs in its own process, which has no other thread when it forks.
static void test_kills(void)
{
    for (int i = 0; i < 8; i++) {
        int status = 0;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            test_kill(150 * i);
            _exit(test_failed != 0);
        }
        waitpid(child, &status, 0);
        CHECK(status == 0, "killed at %d KiB", 150 * i);
    }
}

int main(void)
{
    log_open(LOG_LEVEL_ERROR);
    set_zone("UTC");
    TEST(test_kills()); // first: it forks
    TEST(test_times());
    TEST(test_zones());
    TEST(test_sizes());
    TEST(test_protocols());
    TEST(test_no_overwriting());
    TEST(test_name_of_first_frame());
    TEST(test_moved_and_empty());
    TEST(test_tails());
    TEST(test_other_tails());
    TEST(test_lines());
    TEST(test_whose_leftovers());
    return test_end();
}
