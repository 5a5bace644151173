// Pauses after a wrong password: their length, the cameras that share them, persistence over a
// restart, and damaged files.
#include "daemon/source/login_pause.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/process.h"
#include "tests/test.h"

static const int64_t MS = 1000000, SECOND = 1000000000, MINUTE = 60000000000, START = 7200000000000,
                     REALTIME = 1795000000000000000;

static char folder[] = "/tmp/login_pause_XXXXXX", path[64], part[80];
static struct login_pause *pause_of;
static struct login camera;
static int64_t now;

static void open_at(const char *in, int64_t now_ns)
{
    login_pause_close(pause_of);
    now = now_ns;
    CHECK(login_pause_open(&pause_of, in, now, REALTIME + now - START) == 0, "open");
    login_pause_identify(pause_of, "rtsp://admin:wrong@192.168.1.2:554/1", &camera);
}

static void begin_new(const char *in)
{
    unlink(path);
    open_at(in, START);
}

static struct login login_of(const char *url)
{
    struct login login;
    login_pause_identify(pause_of, url, &login);
    return login;
}

static int64_t wait_of(const struct login *login)
{
    return login_pause_until(pause_of, login, now) - now;
}

static void refuse(const struct login *login)
{
    login_pause_refused(pause_of, login, false, now);
}

#define WAITS(login, ns)                                                                           \
    do {                                                                                           \
        const int64_t wait = wait_of(login);                                                       \
        CHECK(wait == (ns), "waits %.3f s, not %.3f", (double)wait / 1e9, (double)(ns) / 1e9);     \
    } while (0)

static void identifies_cameras(void)
{
    begin_new(NULL);
    CHECK(strcmp(camera.host, "192.168.1.2") == 0, "host %s", camera.host);
    struct login other = login_of("rtsps://admin:wrong@192.168.1.2/other");
    CHECK(other.credentials == camera.credentials, "the same");
    other = login_of("rtsp://admin:w%72ong@192.168.1.2/");
    CHECK(other.credentials == camera.credentials, "written otherwise");
    other = login_of("rtsp://admin:right@192.168.1.2/");
    CHECK(other.credentials != camera.credentials, "another password");
    other = login_of("rtsp://adminw:rong@192.168.1.2/");
    CHECK(other.credentials != camera.credentials, "cut elsewhere");
    other = login_of("rtsp://admin@GATE.local/");
    CHECK(strcmp(other.host, "gate.local") == 0, "lower case: %s", other.host);
    CHECK(!login_of("rtsp://192.168.1.2/").host[0], "no password");
    CHECK(!login_of("tcp://admin:wrong@192.168.1.2:5/").host[0], "no RTSP");
}

static void pauses_grow(void)
{
    begin_new(NULL);
    static const int64_t minutes[] = {10, 30, 60, 60, 60};
    for (size_t i = 0; i < sizeof minutes / sizeof minutes[0]; i++) {
        WAITS(&camera, 0);
        refuse(&camera);
        WAITS(&camera, minutes[i] * MINUTE);
        now += minutes[i] * MINUTE - 1;
        WAITS(&camera, 1);
        now++;
    }
    WAITS(&camera, 0);
    login_pause_accepted(pause_of, &camera, now);
    WAITS(&camera, 0);
    refuse(&camera);
    WAITS(&camera, 10 * MINUTE);
}

static void cameras_of_a_host_share_them(void)
{
    begin_new(NULL);
    const struct login second = login_of("rtsp://admin:wrong@192.168.1.2:555/2"),
                       good = login_of("rtsp://viewer:right@192.168.1.2/3"),
                       elsewhere = login_of("rtsp://admin:wrong@192.168.1.3/1");
    WAITS(&camera, 0);
    refuse(&camera);
    WAITS(&second, 10 * MINUTE);
    WAITS(&elsewhere, 0);
    WAITS(&good, 0); // another user
    login_pause_accepted(pause_of, &good, now);
    WAITS(&second, 10 * MINUTE);
    now += 10 * MINUTE;
    WAITS(&second, 0);
    WAITS(&camera, 100 * MS); // one of them tries
    refuse(&second);
    WAITS(&camera, 30 * MINUTE);
}

static void one_tries_at_a_time(void)
{
    begin_new(NULL);
    const struct login second = login_of("rtsp://admin:wrong@192.168.1.2:555/2");
    WAITS(&camera, 0);
    WAITS(&second, 100 * MS);
    now += 700 * MS;
    WAITS(&second, 50 * MS);
    now += 50 * MS; // the first had no answer
    WAITS(&second, 0);
    WAITS(&camera, 100 * MS);
    login_pause_accepted(pause_of, &second, now);
    WAITS(&camera, 0);
    WAITS(&second, 0); // all may, for a while
    const struct login other = login_of("rtsp://other:wrong@192.168.1.2/");
    WAITS(&other, 100 * MS);
    now += 9999 * MS;
    WAITS(&camera, 0);
    WAITS(&second, 0);
    now += 1000 * MS;
    WAITS(&camera, 0);
    WAITS(&second, 100 * MS);
    refuse(&camera); // another password by now
    WAITS(&second, 10 * MINUTE);
}

static void four_refusals_in_half_an_hour_are_all(void)
{
    begin_new(NULL);
    for (int i = 0; i < 4; i++) { // for anything that is written and reloaded
        char url[64];
        sprintf(url, "rtsp://admin:wrong%d@192.168.1.2/", i);
        const struct login login = login_of(url);
        WAITS(&login, 0);
        refuse(&login);
        WAITS(&login, (i < 3 ? 10 : 27) * MINUTE);
        login_pause_reload(pause_of);
        now += MINUTE;
    }
    WAITS(&camera, 26 * MINUTE);
    login_pause_reload(pause_of);
    WAITS(&camera, 26 * MINUTE);
    now += 26 * MINUTE;
    WAITS(&camera, 0);
}

static void reload_and_new_credentials_end_them(void)
{
    begin_new(NULL);
    refuse(&camera);
    now += 10 * MINUTE;
    refuse(&camera);
    WAITS(&camera, 30 * MINUTE);
    const struct login changed = login_of("rtsp://admin:right@192.168.1.2:554/1");
    WAITS(&changed, 0);
    refuse(&changed);
    WAITS(&changed, 10 * MINUTE);
    login_pause_reload(pause_of);
    WAITS(&changed, 0);
}

static void another_scheme_may_be_tried(void)
{
    begin_new(NULL);
    WAITS(&camera, 0);
    login_pause_refused(pause_of, &camera, true, now);
    WAITS(&camera, 0);
    refuse(&camera);
    WAITS(&camera, 10 * MINUTE);
    now += 10 * MINUTE;
    login_pause_refused(pause_of, &camera, true, now);
    refuse(&camera);
    login_pause_reload(pause_of);
    WAITS(&camera, 20 * MINUTE); // these were four
}

static void outlives_a_restart(void)
{
    begin_new(folder);
    refuse(&camera);
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600, "the file is ours alone");
    CHECK(access(part, F_OK) < 0, "nothing else is left");
    open_at(folder, START + 4 * MINUTE);
    WAITS(&camera, 6 * MINUTE);
    now += 6 * MINUTE;
    WAITS(&camera, 0);
    refuse(&camera);
    open_at(folder, now + 5 * SECOND);
    WAITS(&camera, 30 * MINUTE - 5 * SECOND);
    const struct login changed = login_of("rtsp://admin:right@192.168.1.2/");
    WAITS(&changed, 0);
    login_pause_accepted(pause_of, &camera, now); // the camera has this password now
    open_at(folder, now);
    WAITS(&camera, 0);

    refuse(&camera);
    login_pause_reload(pause_of);
    WAITS(&camera, 0);
    open_at(folder, now + SECOND);
    WAITS(&camera, 0);
}

static void keeps_no_password(void)
{
    begin_new(folder);
    refuse(&camera);
    char text[1024] = "";
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    CHECK(bytes > 0 && strstr(text, "192.168.1.2"), "the host: %s", text);
    CHECK(!strstr(text, "wrong") && !strstr(text, "admin"), "no secret: %s", text);
    const uint16_t before = camera.credentials;
    open_at(folder, now);
    CHECK(camera.credentials == before, "the same hash after a restart");
    int differ = 0;
    for (int i = 0; i < 4; i++) {
        begin_new(folder);
        differ += camera.credentials != before;
    }
    CHECK(differ > 0, "each file has a key of its own");
}

static void write_file(const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0, "write");
}

static const char HEAD[] = "framed login pauses 1\nkey 000102030405060708090a0b0c0d0e0f\n";

// Opens with these lines after a valid head; HASH is replaced by the camera's credentials.
static void open_with(const char *lines)
{
    char text[4096];
    int n = sprintf(text, "%s", HEAD);
    write_file(text, (size_t)n);
    open_at(folder, START);
    for (; *lines; lines++) {
        if (strncmp(lines, "HASH", 4) == 0) {
            n += sprintf(text + n, "%04x", camera.credentials);
            lines += 3;
        } else {
            text[n++] = *lines;
        }
    }
    write_file(text, (size_t)n);
    open_at(folder, START);
}

static void bears_a_damaged_file(void)
{
    open_with("host 192.168.1.2 1 1795000300 1794999700:HASH\n");
    WAITS(&camera, 300 * SECOND); // a valid one
    static const char *const bad[] = {
        "",
        "host\n",
        "host 192.168.1.2\n",
        "host 192.168.1.2 1 1795000300\n",
        "host 192.168.1.2 -1 1795000300 1794999700:HASH\n",
        "host 192.168.1.2 3 1795000300 1794999700:HASH\n",
        "host 192.168.1.2 1 x 1794999700:HASH\n",
        "host 192.168.1.2 1 -9223372036854775807 1794999700:HASH\n",
        "host 192.168.1.2 1 99999999999999999999999 1794999700:HASH\n",
        "host 192.168.1.2 1 1795000300 1794999700:HASH x\n",
        "host 192.168.1.2 1 1795000300 1:1 1:2 1:3 1:4 1794999700:HASH\n",
        "host 192.168.1.2 1 1795000300 1794999700HASH\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        open_with(bad[i]);
        WAITS(&camera, 0);
    }
    open_with(
        "host 192.168.1.2 1 1795000300 1794999700:zz\n\x01\xff\nhost 192.168.1.2 2 1795000060 "
        "1794999700:HASH\n");
    WAITS(&camera, MINUTE); // lines after a bad line count
    open_with("host 192.168.1.2 2 9000000000 9000000000:HASH\n");
    WAITS(&camera, 60 * MINUTE); // at most the longest pause
    open_with("host 192.168.1.2 0 0 9000000000:1 9000000000:1 9000000000:1 9000000000:1\n");
    WAITS(&camera, 30 * MINUTE);

    char later[] = "framed login pauses 2\nkey 000102030405060708090a0b0c0d0e0f\n"
                   "host 192.168.1.2 0 1795000300 1795000000:1 1795000000:2 1795000000:3 "
                   "1795000000:4\n";
    write_file(later, sizeof later - 1);
    open_at(folder, START);
    WAITS(&camera, 0);
    static char noise[65536];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
    write_file(noise, sizeof noise);
    open_at(folder, START);
    WAITS(&camera, 0);
    refuse(&camera);
    open_at(folder, START);
    WAITS(&camera, 10 * MINUTE); // rewritten
}

static void goes_on_without_a_file(void)
{
    begin_new("/nonexistent/folder");
    refuse(&camera); // logs a warning
    WAITS(&camera, 10 * MINUTE);
    begin_new(folder);
    CHECK(mkdir(part, 0700) == 0, "in the way of the file");
    refuse(&camera);
    CHECK(rmdir(part) == 0 && access(path, F_OK) < 0, "it was not written");
    WAITS(&camera, 10 * MINUTE); // the next call writes it
    open_at(folder, START);
    WAITS(&camera, 10 * MINUTE);
}

static void finds_the_state_folder(void)
{
    unsetenv("STATE_DIRECTORY");
    CHECK(!state_folder(), "none");
    setenv("STATE_DIRECTORY", "", 1);
    CHECK(!state_folder(), "an empty one");
    setenv("STATE_DIRECTORY", "/var/lib/framed:/var/lib/other", 1);
    char *first = state_folder();
    CHECK(first && strcmp(first, "/var/lib/framed") == 0, "the first of two");
    free(first);
    unsetenv("STATE_DIRECTORY");
}

static void many_hosts_are_bounded(void)
{
    begin_new(NULL);
    refuse(&camera);
    for (int i = 0; i < 5000; i++) {
        char url[64];
        sprintf(url, "rtsp://a:b@host%d/", i);
        const struct login login = login_of(url);
        wait_of(&login);
    }
    WAITS(&camera, 10 * MINUTE); // entries without refusals make room
}

static void *use_all(void *opaque)
{
    const char *url = opaque;
    struct login login;
    login_pause_identify(pause_of, url, &login);
    for (int i = 0; i < 50; i++) {
        login_pause_until(pause_of, &login, now + i);
        login_pause_refused(pause_of, &login, false, now + i);
        login_pause_accepted(pause_of, &login, now + i);
        login_pause_reload(pause_of);
    }
    return NULL;
}

static void threads_share_it(void)
{
    begin_new(folder);
    static char urls[4][40] = {"rtsp://a:b@one/", "rtsp://a:c@one/", "rtsp://a:b@two/",
                               "rtsp://a:b@three/"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_all, urls[i]) == 0, "thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) {
        const struct login login = login_of(urls[i]);
        now += SECOND;
        WAITS(&login, 0);
    }
}

int main(void)
{
    CHECK(mkdtemp(folder), "folder");
    snprintf(path, sizeof path, "%s/login-pauses", folder);
    snprintf(part, sizeof part, "%s.part", path);
    TEST(identifies_cameras());
    TEST(pauses_grow());
    TEST(cameras_of_a_host_share_them());
    TEST(one_tries_at_a_time());
    TEST(four_refusals_in_half_an_hour_are_all());
    TEST(reload_and_new_credentials_end_them());
    TEST(another_scheme_may_be_tried());
    TEST(outlives_a_restart());
    TEST(keeps_no_password());
    TEST(bears_a_damaged_file());
    TEST(goes_on_without_a_file());
    TEST(finds_the_state_folder());
    TEST(many_hosts_are_bounded());
    TEST(threads_share_it());
    login_pause_close(pause_of);
    unlink(path);
    rmdir(folder);
    return test_end();
}
