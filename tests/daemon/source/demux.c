#include "daemon/source/demux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libavformat/avformat.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/clock.h"
#include "tests/daemon/clips.h"

static _Atomic bool stop;
static char why[256];

static struct duration ms(int n)
{
    return (struct duration){n * INT64_C(1000000)};
}

static struct camera_config camera(const char *url)
{
    return (struct camera_config){
        .name = "gate",
        .url = (char *)url,
        .connect_timeout = ms(5000),
        .media_timeout = ms(2000),
        .close_timeout = ms(500),
    };
}

static struct demux *open_ok(const struct camera_config *config)
{
    struct demux *demux = NULL;
    int rc = demux_open(&demux, config, NULL, &stop, NULL, why, sizeof(why));
    CHECK(rc == 0, "%s: %s (%s)", config->url, strerror(-rc), why);
    return rc == 0 ? demux : NULL;
}

static void open_fails(const struct camera_config *config, int error, const char *says)
{
    struct demux *demux;
    int rc = demux_open(&demux, config, NULL, &stop, NULL, why, sizeof(why));
    CHECK(rc == -error, "%s: %s (%s)", config->url, strerror(-rc), why);
    CHECK(strstr(why, says) && !strstr(why, "geheim"), "%s", why);
    if (rc == 0)
        demux_close(demux);
}

// Reads to the end. Returns the number of packets; *last is the pts of the latest picture.
static int read_all(struct demux *demux, int64_t *last)
{
    struct packet packet;
    int n = 0, rc;
    *last = INT64_MIN;
    while ((rc = demux_read(demux, &packet)) == 0) {
        n++;
        *last = packet.pts_ns > *last ? packet.pts_ns : *last;
        CHECK(packet.av->size > 0 && !packet.capture_clock, "%d", packet.av->size);
    }
    CHECK(rc == -ENODATA, "%s", strerror(-rc));
    return n;
}

static void test_file(const char *file, const char *describes, int64_t last_pts)
{
    struct camera_config config = camera(file);
    struct demux *demux = open_ok(&config);
    int64_t last;
    if (!demux)
        return;
    CHECK(demux->rate_num == 25 * demux->rate_den && demux->rate_den > 0, "%s: %d/%d fps", file,
          demux->rate_num, demux->rate_den);
    char description[DEMUX_DESCRIPTION_MAX];
    CHECK(!strcmp(demux_describe(demux, description), describes), "%s", description);
    CHECK(!demux_is_live(file), "%s", file);
    for (int pass = 0; pass < 3; pass++) {
        int n = read_all(demux, &last);
        CHECK(n == 40, "%s, pass %d: %d packets", file, pass, n);
        CHECK(last_pts < 0 || last == last_pts, "%s: last pts %lld", file, (long long)last);
        int rc = demux_rewind(demux);
        CHECK(rc == 0, "%s: %s", file, strerror(-rc));
    }
    demux_close(demux);
}

static void test_files(void)
{
    clips_make("320x180", 40, "-c:v libx264 -bf 2 -g 12", "b.mp4");
    clips_run(FFMPEG "-i b.mp4 -c copy -bsf:v h264_mp4toannexb -f h264 b.h264");
    clips_run(FFMPEG "-i b.mp4 -f lavfi -i sine -shortest -c:v copy -map 1:a -map 0:v b.mkv");
    clips_make("320x180", 40, "-c:v mpeg2video", "b.ts");
    clips_make("64x48", 40, "-c:v rawvideo -pix_fmt bgra", "b.nut");
    test_file("b.mp4", "h264 320x180 25 fps from a file", 1560000000);
    test_file("file:b.mp4", "h264 320x180 25 fps from a file", 1560000000);
    test_file("b.h264", "h264 320x180 25 fps from a file", -1);
    test_file("b.mkv", "h264 320x180 25 fps from a file", -1);
    test_file("b.ts", "mpeg2video 320x180 25 fps from a file", -1);
    test_file("b.nut", "rawvideo 64x48 25 fps from a file", 1560000000);
}

static void test_refusals(void)
{
    struct demuxer_option bad = {.name = "frobnicate", .value = "7"};
    struct demuxer_option size = {.name = "video_size", .value = "64x48"};
    struct camera_config config = camera("b.mp4");
    config.options = (struct demuxer_options){&bad, 1};
    open_fails(&config, EINVAL, "\"frobnicate\"");
    config = camera("b.mp4");
    config.demuxer = "nosuch";
    open_fails(&config, EINVAL, "\"nosuch\"");
    config = camera("missing.mp4");
    open_fails(&config, ENOENT, "missing.mp4");
    config = camera("gopher://u:geheim@h/");
    open_fails(&config, EPROTONOSUPPORT, "no input that framed takes");
    clips_run(FFMPEG "-f lavfi -i sine -t 1 tone.wav");
    config = camera("tone.wav");
    open_fails(&config, EINVAL, "no video track");
    config = camera("frames.raw");
    clips_run("head -c 122880 /dev/urandom > frames.raw"); // ten pictures of 64x48 bgra
    config.demuxer = "rawvideo";
    config.options = (struct demuxer_options){&size, 1};
    demux_close(open_ok(&config)); // read as yuv420p: the option itself is known
}

// A file that is a playlist must not make us use the network.
static void test_playlist(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(name);
    struct demux *demux;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(bind(listener, (void *)&name, sizeof(name)) == 0 && listen(listener, 1) == 0, "%s",
          strerror(errno));
    getsockname(listener, (void *)&name, &length);
    clips_run("printf '#EXTM3U\\n#EXT-X-TARGETDURATION:1\\n#EXTINF:1,\\n"
              "http://127.0.0.1:%d/a.ts\\n#EXT-X-ENDLIST\\n' > list.m3u8",
              ntohs(name.sin_port));
    struct camera_config config = camera("list.m3u8");
    config.connect_timeout = ms(500);
    int rc = demux_open(&demux, &config, NULL, &stop, NULL, why, sizeof(why));
    CHECK(rc < 0, "%s", why);
    CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN, "it connected");
    close(listener);
}

// --- servers on loopback, each in a thread

struct server {
    pthread_t thread;
    int listener;
    char url[128];
    const unsigned char *bytes; // the bytes that it sends
    size_t size;
    const char *reply; // to each RTSP request; NULL: sends bytes
    bool hang;         // stays connected and silent until the client leaves
};

static void answer(int client, const char *reply)
{
    char request[2048], text[512];
    ssize_t n;
    while ((n = read(client, request, sizeof(request) - 1)) > 0) {
        request[n] = 0;
        const char *sequence = strcasestr(request, "CSeq:");
        snprintf(text, sizeof(text), reply, sequence ? atoi(sequence + 5) : 0);
        if (write(client, text, strlen(text)) < 0)
            break;
    }
}

static void *serve(void *opaque)
{
    struct server *server = opaque;
    int client = accept(server->listener, NULL, NULL);
    if (server->reply)
        answer(client, server->reply);
    for (size_t at = 0; at < server->size;) {
        ssize_t n = write(client, server->bytes + at, server->size - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    char byte;
    while (server->hang && read(client, &byte, 1) > 0)
        ;
    close(client);
    return NULL;
}

static void server_start(struct server *server, const char *scheme)
{
    if (!strcmp(scheme, "unix")) {
        struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "feed.sock"};
        server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
        unlink(name.sun_path);
        CHECK(bind(server->listener, (void *)&name, sizeof(name)) == 0, "%s", strerror(errno));
        snprintf(server->url, sizeof(server->url), "unix:feed.sock");
    } else {
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t length = sizeof(name);
        server->listener = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(bind(server->listener, (void *)&name, sizeof(name)) == 0, "%s", strerror(errno));
        getsockname(server->listener, (void *)&name, &length);
        snprintf(server->url, sizeof(server->url), "%s://%s127.0.0.1:%d%s", scheme,
                 !strcmp(scheme, "rtsp") ? "viewer:geheim@" : "", ntohs(name.sin_port),
                 !strcmp(scheme, "rtsp") ? "/stream1" : "");
    }
    listen(server->listener, 1);
    pthread_create(&server->thread, NULL, serve, server);
}

static void server_join(struct server *server)
{
    pthread_join(server->thread, NULL);
    close(server->listener);
}

static void test_rtsp_refused(void)
{
    struct server server = {
        .reply = "RTSP/1.0 401 Unauthorized\r\nCSeq: %d\r\n"
                 "WWW-Authenticate: Basic realm=\"camera\"\r\n\r\n",
    };
    server_start(&server, "rtsp");
    struct camera_config config = camera(server.url);
    open_fails(&config, EACCES, "refused the user name or password");
    server_join(&server);
    open_fails(&config, ECONNREFUSED, "rtsp://127.0.0.1"); // nobody listens there any more
}

// --- streams

static int picture_size;

static void read_stream(const struct camera_config *config, int frames, bool live)
{
    struct packet packet;
    struct demux *demux = open_ok(config);
    int n = 0, rc = -EIO;
    if (!demux)
        return;
    CHECK(demux_is_live(config->url) == live, "%s", config->url);
    while ((rc = demux_read(demux, &packet)) == 0) {
        CHECK(packet.pts_ns == n * INT64_C(40000000), "%d: %lld", n, (long long)packet.pts_ns);
        CHECK(packet.av->size == picture_size, "%d", packet.av->size);
        n++;
    }
    CHECK(rc == -ENODATA && n == frames, "%s: %d packets, then %s", config->url, n, strerror(-rc));
    demux_close(demux);
}

// Writes the clip to the descriptor, or to the fifo if it is -1.
static void *feed(void *descriptor)
{
    size_t size;
    unsigned char *bytes = clips_read("b.nut", &size);
    int fd = *(int *)descriptor >= 0 ? *(int *)descriptor : open("fifo", O_WRONLY);
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, bytes + at, size - at);
        if (n <= 0)
            break; // the reader misses it
        at += (size_t)n;
    }
    close(fd);
    free(bytes);
    return NULL;
}

static void feed_pipes(void)
{
    pthread_t writer;
    char url[32];
    int ends[2], none = -1;
    CHECK(mkfifo("fifo", 0600) == 0, "%s", strerror(errno));
    pthread_create(&writer, NULL, feed, &none);
    struct camera_config config = camera("fifo");
    read_stream(&config, 40, true);
    pthread_join(writer, NULL);
    CHECK(pipe(ends) == 0, "%s", strerror(errno));
    pthread_create(&writer, NULL, feed, &ends[1]);
    snprintf(url, sizeof(url), "pipe:%d", ends[0]);
    config = camera(url);
    read_stream(&config, 40, false);
    pthread_join(writer, NULL);
    close(ends[0]);
}

static void test_streams(void)
{
    static struct demuxer_option raw[] = {{.name = "video_size", .value = "64x48"},
                                          {.name = "pixel_format", .value = "bgra"},
                                          {.name = "framerate", .value = "25"}};
    struct server server = {0};
    struct camera_config config;
    picture_size = 64 * 48 * 4;
    server.bytes = clips_read("b.nut", &server.size);
    for (int i = 0; i < 2; i++) {
        server_start(&server, i ? "unix" : "tcp");
        config = camera(server.url);
        read_stream(&config, 40, true);
        server_join(&server);
    }
    free((void *)server.bytes);
    server.bytes = clips_read("frames.raw", &server.size);
    server_start(&server, "tcp");
    config = camera(server.url);
    config.demuxer = "rawvideo";
    config.options = (struct demuxer_options){raw, 3};
    read_stream(&config, 10, true);
    server_join(&server);
    free((void *)server.bytes);
    feed_pipes();
}

// --- deadlines and *stop

static void *stop_soon(void *unused)
{
    (void)unused;
    usleep(200000);
    atomic_store(&stop, true);
    return NULL;
}

// Checks that opening `url` ends with `error` between `least` and `most` milliseconds.
static void open_ends(const char *url, int error, int least, int most)
{
    struct camera_config config = camera(url);
    struct demux *demux;
    pthread_t stopper;
    config.connect_timeout = ms(400);
    bool stopping = error == ECANCELED;
    int64_t began = monotonic_ns();
    if (stopping)
        pthread_create(&stopper, NULL, stop_soon, NULL);
    int rc = demux_open(&demux, &config, NULL, &stop, NULL, why, sizeof(why));
    int64_t took = (monotonic_ns() - began) / 1000000;
    if (stopping)
        pthread_join(stopper, NULL);
    atomic_store(&stop, false);
    CHECK(rc == -error, "%s: %s (%s)", url, strerror(-rc), why);
    CHECK(took >= least && took <= most, "%s: %lld ms", url, (long long)took);
}

static void test_silence(void)
{
    static const char *const schemes[] = {"rtsp", "tcp", "unix"};
    static const int errors[] = {ETIMEDOUT, ECANCELED};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            struct server server = {.hang = true};
            server_start(&server, schemes[i]);
            open_ends(server.url, errors[j], j ? 200 : 400, j ? 500 : 700);
            server_join(&server);
        }
    }
    open_ends("fifo", ETIMEDOUT, 400, 700);
    open_ends("fifo", ECANCELED, 200, 500);
}

// A stopping camera starts nothing: a name lookup may take longer than the stop.
static void test_stopped_before(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(name);
    char url[64];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(bind(listener, (void *)&name, sizeof(name)) == 0 && listen(listener, 1) == 0, "%s",
          strerror(errno));
    getsockname(listener, (void *)&name, &length);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", ntohs(name.sin_port));
    struct camera_config config = camera(url);
    atomic_store(&stop, true);
    open_fails(&config, ECANCELED, "stopped");
    atomic_store(&stop, false);
    CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN, "it connected");
    close(listener);
}

// A stream falls silent after its last packet: read ends by its deadline or *stop, and close is
// immediate.
static void test_silence_later(const char *scheme)
{
    struct server server = {.hang = true};
    struct packet packet;
    pthread_t stopper;
    int n = 0, rc;
    server.bytes = clips_read("b.nut", &server.size);
    server_start(&server, scheme);
    struct camera_config config = camera(server.url);
    config.media_timeout = ms(300);
    struct demux *demux = open_ok(&config);
    if (!demux)
        return;
    while ((rc = demux_read(demux, &packet)) == 0)
        n++;
    CHECK(rc == -ETIMEDOUT && n >= 39, "%d packets, then %s", n, strerror(-rc));
    int64_t began = monotonic_ns();
    CHECK(demux_read(demux, &packet) == -ETIMEDOUT, "again");
    CHECK(monotonic_ns() - began > 290000000 && monotonic_ns() - began < 600000000, "deadline");
    pthread_create(&stopper, NULL, stop_soon, NULL);
    began = monotonic_ns();
    while ((rc = demux_read(demux, &packet)) == -ETIMEDOUT)
        ;
    CHECK(rc == -ECANCELED, "%s", strerror(-rc));
    demux_close(demux);
    CHECK(monotonic_ns() - began < 500000000, "%lld ns", (long long)(monotonic_ns() - began));
    pthread_join(stopper, NULL);
    atomic_store(&stop, false);
    server_join(&server);
    free((void *)server.bytes);
}

static void test_pace(void)
{
    struct camera_config config = camera("b.mp4");
    struct packet packet;
    pthread_t stopper;
    int rc = 0;
    config.pace = PACE_REALTIME;
    struct demux *demux = open_ok(&config);
    if (!demux)
        return;
    int64_t began = monotonic_ns();
    for (int i = 0; i < 11 && rc == 0; i++)
        rc = demux_read(demux, &packet);
    int64_t took = packet.received_ns - began;
    CHECK(took > 390000000 && took < 600000000, "ten intervals of 40 ms took %lld ns",
          (long long)took);
    pthread_create(&stopper, NULL, stop_soon, NULL);
    while ((rc = demux_read(demux, &packet)) == 0)
        ;
    pthread_join(stopper, NULL);
    atomic_store(&stop, false);
    CHECK(rc == -ECANCELED, "%s", strerror(-rc));
    demux_close(demux);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    av_log_set_level(AV_LOG_QUIET);
    clips_open();
    TEST(test_files());
    TEST(test_refusals());
    TEST(test_playlist());
    TEST(test_rtsp_refused());
    TEST(test_streams());
    TEST(test_silence());
    TEST(test_stopped_before());
    TEST(test_silence_later("tcp"));
    TEST(test_silence_later("unix"));
    TEST(test_pace());
    clips_close();
    return test_end();
}
