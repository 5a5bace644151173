// Media over UDP, unicast and multicast, and the return to TCP if UDP does not work.
#include "daemon/rtsp/carriage.h"

#include "tests/daemon/rtsp/scripted_camera.h"

static const char GROUP[] = "239.255.77.77";

static int bind_udp(const char *address, int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &at.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &(socklen_t){sizeof at}) < 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

static void send_to(int fd, const char *address, int port, const void *data, size_t n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    if (sendto(fd, data, n, 0, (struct sockaddr *)&to, sizeof to) != (ssize_t)n)
        perror(address);
}

static void send_picture_to(struct camera *c, int fd, const char *address, int port)
{
    uint8_t packet[64];
    c->timestamp += 3600;
    send_to(fd, address, port, packet, rtp_packet(c, packet, 0x65, true));
}

static int client_port(const struct camera *c)
{
    const char *port = strstr(find_request(c, "SETUP", 0), "client_port=");
    return port ? atoi(port + strlen("client_port=")) : 0;
}

static void after_play(struct camera *c, const char *request)
{
    if (!strncmp(request, "TEARDOWN ", 9))
        shutdown(c->fd, SHUT_WR);
    if (!strncmp(request, "PLAY ", 5) && count_requests(c, "SETUP") > 1)
        send_picture(c, 0);
}

// Opens a session over UDP whose camera has ports of its own; *setup is the reply to SETUP.
static void open_udp(struct camera *c, struct player *p, char setup[256], const char *format, int a,
                     int b)
{
    camera_open(c);
    char transport[128];
    snprintf(transport, sizeof transport, format, a, b);
    snprintf(setup, 256, OK SESSION "Transport: %s\r\n\r\n", transport);
    answer_with(c, "SETUP", setup);
    c->after = after_play;
    answer_plainly(c);
    p->config.transport = TRANSPORT_UDP;
    player_open(p, "rtsp://127.0.0.1:%d/a", c->port);
}

static void test_udp(void)
{
    struct camera c;
    struct player p = {0};
    char setup[256];
    uint8_t got[256];
    int rtp_port, rtcp_port, other_port, foreign_port;
    int rtp = bind_udp("127.0.0.1", &rtp_port), rtcp = bind_udp("127.0.0.1", &rtcp_port);
    int other = bind_udp("127.0.0.1", &other_port), foreign = bind_udp("127.0.0.2", &foreign_port);
    open_udp(&c, &p, setup, "RTP/AVP;unicast;server_port=%d-%d", rtp_port, rtcp_port);
    play_on(&c, &p, 150, 1);
    const int port = client_port(&c);
    CHECK(port > 0 && port % 2 == 0, "client port %d", port);
    CHECK(recv(rtp, got, sizeof got, 0) == 12 && got[0] == 0x80 && got[1] == 96, "no hole for RTP");
    CHECK(recv(rtcp, got, sizeof got, 0) == 8 && got[1] == 201, "no hole for RTCP");
    send_picture_to(&c, foreign, "127.0.0.1", port); // from another host
    play_on(&c, &p, 50, 1);
    CHECK(p.units == 0 && rtsp_session_statistics(p.session).packets == 0, "foreign");
    for (int i = 0; i < 3; i++)
        send_picture_to(&c, rtp, "127.0.0.1", port);
    play_on(&c, &p, 500, 3);
    send_picture_to(&c, other, "127.0.0.1", port); // from another port, once the first is known
    c.sequence--;
    send_picture_to(&c, rtp, "127.0.0.1", port);
    play_on(&c, &p, 500, 4);
    const struct rtp_statistics statistics = rtsp_session_statistics(p.session);
    CHECK(p.units == 4 && statistics.packets == 4 && statistics.lost == 0, "%d units, %d packets",
          p.units, (int)statistics.packets);
    CHECK(p.last.unit.timestamp == c.timestamp, "the last is of another port");
    CHECK(!strcmp(rtsp_session_transport(p.session), "udp"), "transport");
    p.skew_ns += S;
    play_on(&c, &p, 50, 99);
    CHECK(recv(rtcp, got, sizeof got, 0) > 8 && got[1] == 201, "no report");
    CHECK(c.n_frames == 0 && !p.memory.udp_fails && p.rc == 0, "%d", p.rc);
    uint8_t big[10016]; // some cameras send packets larger than an Ethernet frame
    c.timestamp += 3600;
    const size_t head = rtp_packet(&c, big, 0x65, true);
    memset(big + head, 0x55, sizeof big - head);
    send_to(rtp, "127.0.0.1", port, big, sizeof big);
    play_on(&c, &p, 300, 5);
    CHECK(p.units == 5 && p.last.unit.bytes >= 10000 && p.session->carriage.overruns[0] == 0,
          "%d units, %zu bytes", p.units, p.last.unit.bytes);
    player_close(&p);
    camera_close(&c);
    close(rtp), close(rtcp), close(other), close(foreign);
}

static void test_udp_is_silent(void)
{
    struct camera c;
    struct player p = {0};
    char setup[256];
    open_udp(&c, &p, setup, "RTP/AVP;unicast;server_port=%d-%d", 0, 1);
    play_on(&c, &p, 100, 1);
    p.skew_ns += 2700 * MS;
    play_on(&c, &p, 50, 1);
    CHECK(c.accepted == 1 && p.rc == 0, "gave up early");
    p.skew_ns += 300 * MS;
    play_on(&c, &p, 500, 1);
    CHECK(p.units == 1 && c.accepted == 2, "%d: %s", p.rc, p.session->why);
    CHECK(count_requests(&c, "TEARDOWN") == 1 && count_requests(&c, "DESCRIBE") == 2,
          "goodbye or description");
    CHECK(strstr(find_request(&c, "SETUP", 1), "interleaved=0-1"), "%s",
          find_request(&c, "SETUP", 1));
    CHECK(p.memory.udp_fails && !strcmp(rtsp_session_transport(p.session), "tcp"),
          "not remembered");
    player_close(&p);
    c.n_requests = 0;
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port); // the next session requests TCP at once
    play_on(&c, &p, 100, 1);
    CHECK(strstr(find_request(&c, "SETUP", 0), "interleaved=0-1"), "%s",
          find_request(&c, "SETUP", 0));
    player_close(&p);
    camera_close(&c);
}

// A slow camera, or one whose reports come, is not given up after 3 s.
static void test_udp_is_slow(void)
{
    static const struct {
        int64_t patience_ns;
        bool reports;
    } cases[] = {{0, true}, {30 * INT64_C(1000000000), false}};
    for (int i = 0; i < 2; i++) {
        struct camera c;
        struct player p = {.memory.patience_ns = cases[i].patience_ns};
        char setup[256];
        int rtp_port, rtcp_port;
        int rtp = bind_udp("127.0.0.1", &rtp_port), rtcp = bind_udp("127.0.0.1", &rtcp_port);
        open_udp(&c, &p, setup, "RTP/AVP;unicast;server_port=%d-%d", rtp_port, rtcp_port);
        play_on(&c, &p, 150, 1);
        const uint8_t report[28] = {0x80, 200, 0, 6, 1, 2, 3, 4};
        if (cases[i].reports)
            send_to(rtcp, "127.0.0.1", client_port(&c) + 1, report, sizeof report);
        play_on(&c, &p, 50, 1);
        p.skew_ns += 20 * S;
        play_on(&c, &p, 100, 1);
        send_picture_to(&c, rtp, "127.0.0.1", client_port(&c));
        play_on(&c, &p, 500, 1);
        CHECK(p.units == 1 && c.accepted == 1 && !p.memory.udp_fails, "case %d: %d units, %s", i,
              p.units, p.session->why);
        player_close(&p);
        camera_close(&c);
        close(rtp), close(rtcp);
    }
}

// After a camera has refused TCP in place of silent UDP, its next session stays on UDP.
static void test_tcp_is_refused(void)
{
    struct camera c;
    struct player p = {0};
    char setup[256];
    int rtp_port, rtcp_port;
    int rtp = bind_udp("127.0.0.1", &rtp_port), rtcp = bind_udp("127.0.0.1", &rtcp_port);
    open_udp(&c, &p, setup, "RTP/AVP;unicast;server_port=%d-%d", rtp_port, rtcp_port);
    c.n_answers = 0;
    answer_with(&c, "SETUP RTP/AVP/TCP", "RTSP/1.0 400 Bad Request\r\nCSeq: {cseq}\r\n\r\n");
    answer_with(&c, "SETUP", setup);
    answer_with(&c, "DESCRIBE", OK DESCRIBE);
    answer_with(&c, "PLAY", OK "\r\n");
    answer_with(&c, "OPTIONS", OK "\r\n");
    answer_with(&c, "TEARDOWN", OK "\r\n");
    c.after = NULL;
    play_on(&c, &p, 150, 1);
    p.skew_ns += 3 * S;
    play_on(&c, &p, 500, 1);
    CHECK(p.rc == -EPROTO && p.memory.tcp_fails, "%d: %s", p.rc, p.session->why);
    player_close(&p);
    c.n_requests = 0;
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 150, 1);
    p.skew_ns += 20 * S;
    play_on(&c, &p, 100, 1);
    send_picture_to(&c, rtp, "127.0.0.1", client_port(&c));
    play_on(&c, &p, 500, 1);
    CHECK(p.units == 1 && p.rc == 0, "%d: %s", p.rc, p.session->why);
    player_close(&p);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 150, 1);
    player_close(&p);
    CHECK(!p.memory.tcp_fails, "nothing came over UDP either");
    camera_close(&c);
    close(rtp), close(rtcp);
}

static void test_udp_is_refused(void)
{
    static const char *const replies[] = {
        "RTSP/1.0 461 Unsupported transport\r\nCSeq: {cseq}\r\n\r\n",
        OK SESSION TCP "\r\n", // TCP, though UDP was requested
    };
    for (int i = 0; i < 2; i++) {
        struct camera c;
        struct player p = {.config.transport = i ? TRANSPORT_UDP : TRANSPORT_MULTICAST};
        camera_open(&c);
        c.after = after_play;
        answer_with(&c, "SETUP", replies[i]);
        answer_with(&c, "TEARDOWN", ""); // it hangs up instead
        answer_plainly(&c);
        player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
        play_on(&c, &p, 500, 1);
        CHECK(p.units == 1 && c.accepted == 1 + i && count_requests(&c, "SETUP") == 2,
              "%d connections: %s", c.accepted, p.session->why);
        player_close(&p);
        camera_close(&c);
    }
}

static void test_multicast(void)
{
    struct camera c;
    struct player p = {.config.transport = TRANSPORT_MULTICAST};
    char setup[256];
    int port, other_port;
    const struct ip_mreqn lo = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = bind_udp("127.0.0.1", &port), other = bind_udp("127.0.0.2", &other_port);
    port = port / 2 * 2 % 20000 + 20000;
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo);
    setsockopt(other, IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof lo);
    camera_open(&c);
    snprintf(setup, sizeof setup,
             OK SESSION "Transport: RTP/AVP;multicast;destination=%s;port=%d-%d;ttl=1\r\n\r\n",
             GROUP, port, port + 1);
    answer_with(&c, "SETUP", setup);
    answer_plainly(&c);
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 100, 1);
    CHECK(strstr(find_request(&c, "SETUP", 0), "Transport: RTP/AVP;multicast\r\n"), "%s",
          find_request(&c, "SETUP", 0));
    send_picture_to(&c, other, GROUP, port); // the filter drops it
    play_on(&c, &p, 50, 1);
    CHECK(p.units == 0 && rtsp_session_statistics(p.session).packets == 0, "from another source");
    for (int i = 0; i < 3; i++)
        send_picture_to(&c, fd, GROUP, port);
    play_on(&c, &p, 500, 3);
    CHECK(p.units == 3 && !strcmp(rtsp_session_transport(p.session), "multicast"), "%d units: %s",
          p.units, p.session->why);
    player_close(&p);

    c.answers[0].given = false; // a camera that sends from an address other than its own
    player_open(&p, "rtsp://127.0.0.1:%d/a", c.port);
    play_on(&c, &p, 100, 1);
    p.skew_ns += S;
    play_on(&c, &p, 50, 1);
    for (int i = 0; i < 3; i++)
        send_picture_to(&c, other, GROUP, port);
    play_on(&c, &p, 500, 3);
    CHECK(p.units == 3, "%d units of another source", p.units);
    player_close(&p);
    camera_close(&c);
    close(fd), close(other);
}

static void test_transport_header(void)
{
    struct rtsp_transport t;
    rtsp_transport_parse(&t, " RTP/AVP;unicast;client_port=4-5; server_port = \"6970-6971\" ;"
                             "source=192.0.2.1;ssrc= d6d6627");
    CHECK(!t.tcp && !t.multicast && t.server_ports[0] == 6970 && t.server_ports[1] == 6971 &&
              !strcmp(t.source, "192.0.2.1") && t.ssrc == 0x0d6d6627 && t.channels[0] == -1,
          "unicast");
    rtsp_transport_parse(&t, "RTP/AVP;unicast;server_port=0-1;ssrc=3735928559,RTP/AVP/TCP");
    CHECK(t.server_ports[0] == 0 && t.server_ports[1] == 0 && t.ssrc == 3735928559 && !t.tcp,
          "no ports");
    rtsp_transport_parse(&t, "RTP/AVP;multicast;destination=239.1.1.1;port=5000;ttl=16");
    CHECK(t.multicast && !strcmp(t.destination, "239.1.1.1") && t.ports[0] == 5000 &&
              t.ports[1] == 5001 && t.ttl == 16,
          "multicast");
    rtsp_transport_parse(&t, "RTP/AVP;multicast;destination=ff15::1;source=[2001:db8::7]");
    CHECK(!strcmp(t.destination, "ff15::1") && !strcmp(t.source, "2001:db8::7"), "%s, %s",
          t.destination, t.source);
    rtsp_transport_parse(&t, "RTP/AVP;interleaved=255");
    CHECK(t.tcp && t.channels[0] == 255 && t.channels[1] == -1, "the last channel");
    rtsp_transport_parse(&t, "interleaved=-1;server_port=99999999999;ttl=256;=;;ssrc=12345678901");
    CHECK(!t.tcp && !t.server_ports[0] && !t.ttl && !t.ssrc, "nonsense");
    rtsp_transport_parse(&t, NULL);
    CHECK(!t.tcp && !t.multicast && t.channels[0] == -1, "none");
}

int main(void)
{
    TEST(test_udp());
    TEST(test_udp_is_silent());
    TEST(test_udp_is_slow());
    TEST(test_tcp_is_refused());
    TEST(test_udp_is_refused());
    TEST(test_multicast());
    TEST(test_transport_header());
    return test_end();
}
