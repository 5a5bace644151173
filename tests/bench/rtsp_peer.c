#include "tests/bench/rtsp_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"

enum { REPLY_MAX = 4096, SETS_MAX = 512 };
static const char SESSION[] = "5ca1ab1e";

// --- the description

static void encode_base64(const struct nal *nal, char to[SETS_MAX])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (size_t i = 0; i < nal->bytes && n + 5 < SETS_MAX; i += 3) {
        const size_t left = nal->bytes - i;
        const uint32_t bits = (uint32_t)nal->data[i] << 16 |
                              (left > 1 ? (uint32_t)nal->data[i + 1] << 8 : 0) |
                              (left > 2 ? nal->data[i + 2] : 0);
        to[n++] = digits[bits >> 18];
        to[n++] = digits[bits >> 12 & 63];
        to[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
        to[n++] = left > 2 ? digits[bits & 63] : '=';
    }
    to[n] = '\0';
}

static int describe(const struct clip_units *clip, char *to, size_t size)
{
    char vps[SETS_MAX], sps[SETS_MAX], pps[SETS_MAX], format[4 * SETS_MAX];
    const bool h264 = clip->codec == CLIP_H264;
    encode_base64(&clip->vps, vps);
    encode_base64(&clip->sps, sps);
    encode_base64(&clip->pps, pps);
    if (h264)
        snprintf(format, sizeof format, "packetization-mode=1;sprop-parameter-sets=%s,%s", sps,
                 pps);
    else
        snprintf(format, sizeof format, "sprop-vps=%s;sprop-sps=%s;sprop-pps=%s", vps, sps, pps);
    return snprintf(to, size,
                    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=camera\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
                    "a=control:*\r\na=range:npt=0-\r\nm=video 0 RTP/AVP 96\r\n"
                    "a=rtpmap:96 %s/90000\r\na=fmtp:96 %s\r\na=framerate:%g\r\n"
                    "a=control:track0\r\n",
                    h264 ? "H264" : "H265", format, (double)clip->rate_num / clip->rate_den);
}

// --- requests

struct rtsp_request {
    char method[24], url[256];
    char cseq[16];
    const char *text; // whole request, zero-terminated
    int camera;       // -1: not in the URL
};

// Returns the value of header `name` (given with its colon), or NULL.
static const char *header_value(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, "\r\n"); at; at = strstr(at + 2, "\r\n"))
        if (strncasecmp(at + 2, name, length) == 0)
            return at + 2 + length + strspn(at + 2 + length, " ");
    return NULL;
}

static int parse_request(const struct rtsp_peer *peer, const char *text,
                         struct rtsp_request *request)
{
    *request = (struct rtsp_request){.text = text, .camera = -1};
    if (sscanf(text, "%23s %255s", request->method, request->url) != 2)
        return -EBADMSG;
    const char *cseq = header_value(text, "CSeq:");
    snprintf(request->cseq, sizeof request->cseq, "%.*s", cseq ? (int)strcspn(cseq, "\r\n") : 1,
             cseq ? cseq : "0");
    const char *host = strstr(request->url, "//"), *path = host ? strchr(host + 2, '/') : NULL;
    if (path)
        sscanf(path, "/%d", &request->camera);
    if (request->camera >= peer->cameras->n)
        request->camera = -1;
    return 0;
}

static int answer(struct rtsp_peer *peer, const struct rtsp_request *request, const char *status,
                  const char *headers, const char *body)
{
    char reply[2 * REPLY_MAX];
    const int n = snprintf(reply, sizeof reply, "RTSP/1.0 %s\r\nCSeq: %s\r\n%s\r\n%s", status,
                           request->cseq, headers, body);
    return rtp_sender_reply(&peer->sender, reply, (size_t)n);
}

static int answer_describe(struct rtsp_peer *peer, const struct rtsp_request *request)
{
    char headers[512], body[REPLY_MAX];
    const int n = describe(peer->cameras->rtp->clip, body, sizeof body);
    snprintf(headers, sizeof headers,
             "Content-Base: %s/\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n",
             request->url, n);
    return answer(peer, request, "200 OK", headers, body);
}

static int answer_setup(struct rtsp_peer *peer, const struct rtsp_request *request)
{
    struct rtp_sender *sender = &peer->sender;
    const struct rtsp_cameras *cameras = peer->cameras;
    const char *transport = header_value(request->text, "Transport:");
    const char *ports = transport ? strstr(transport, "client_port=") : NULL;
    const char *channels = transport ? strstr(transport, "interleaved=") : NULL;
    char headers[256];
    int port = 0;
    if (request->camera < 0)
        return answer(peer, request, "404 Not Found", "", "");
    sender->record = &cameras->records[request->camera];
    sender->udp = transport && !strstr(transport, "RTP/AVP/TCP");
    if (sender->udp) {
        if (!ports || sscanf(ports, "client_port=%d", &port) != 1 || port <= 0 || port > 65534)
            return answer(peer, request, "461 Unsupported Transport", "", "");
        sender->rtp_fd = cameras->rtp_fd;
        sender->rtcp_fd = cameras->rtcp_fd;
        sender->rtp_to = sender->rtcp_to = peer->address;
        sender->rtp_to.sin_port = htons((uint16_t)port);
        sender->rtcp_to.sin_port = htons((uint16_t)(port + 1));
        snprintf(headers, sizeof headers,
                 "Transport: RTP/AVP;unicast;client_port=%d-%d;server_port=%d-%d\r\n"
                 "Session: %s;timeout=60\r\n",
                 port, port + 1, cameras->udp_port, cameras->udp_port + 1, SESSION);
    } else {
        if (!channels || sscanf(channels, "interleaved=%d", &sender->channel) != 1)
            sender->channel = 0;
        sender->channel &= 254;
        snprintf(headers, sizeof headers,
                 "Transport: RTP/AVP/TCP;unicast;interleaved=%d-%d\r\nSession: %s;timeout=60\r\n",
                 sender->channel, sender->channel + 1, SESSION);
    }
    return answer(peer, request, "200 OK", headers, "");
}

// Cameras send at different times, and spread cameras start at different places of the clip.
static int answer_play(struct rtsp_peer *peer, const struct rtsp_request *request)
{
    const struct rtsp_cameras *cameras = peer->cameras;
    const struct clip_units *clip = cameras->rtp->clip;
    struct rtp_sender *sender = &peer->sender;
    char headers[400];
    if (!sender->record)
        return answer(peer, request, "455 Method Not Valid in This State", "", "");
    const int camera = (int)(sender->record - cameras->records);
    if (!sender->playing) {
        rtp_sender_play(sender, cameras->spread ? clip->n * camera / cameras->n : 0,
                        clip_units_ns(clip, 1) * camera / cameras->n);
        atomic_store(&sender->record->accepted_ns, peer->accepted_ns);
    }
    snprintf(headers, sizeof headers,
             "Session: %s\r\nRange: npt=0.000-\r\nRTP-Info: url=%s/track0;seq=%u;rtptime=%u\r\n",
             SESSION, request->url, sender->sequence, rtp_sender_time(sender));
    return answer(peer, request, "200 OK", headers, "");
}

static int answer_request(struct rtsp_peer *peer, const char *text)
{
    static const char can[] = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN\r\n";
    struct rtsp_request request;
    char session[64];
    int rc = parse_request(peer, text, &request);
    if (rc < 0)
        return rc;
    snprintf(session, sizeof session, "Session: %s\r\n", SESSION);
    if (strcmp(request.method, "DESCRIBE") == 0)
        return request.camera < 0 ? answer(peer, &request, "404 Not Found", "", "")
                                  : answer_describe(peer, &request);
    if (strcmp(request.method, "SETUP") == 0)
        return answer_setup(peer, &request);
    if (strcmp(request.method, "PLAY") == 0)
        return answer_play(peer, &request);
    if (strcmp(request.method, "OPTIONS") == 0)
        return answer(peer, &request, "200 OK", can, "");
    if (strcmp(request.method, "TEARDOWN") == 0) {
        peer->over = true;
        peer->sender.playing = false;
    } else if (strcmp(request.method, "GET_PARAMETER") != 0) {
        return answer(peer, &request, "501 Not Implemented", "", "");
    }
    return answer(peer, &request, "200 OK", session, "");
}

// --- the connection

// Takes one message from the input: answers a request, drops a client's report. Returns 1 if it
// took one, 0 if none is complete, or a negative errno.
static int take_message(struct rtsp_peer *peer)
{
    char *end;
    size_t bytes;
    int rc = 0;
    if (peer->used >= 4 && peer->in[0] == '$') {
        bytes = 4 + ((size_t)(uint8_t)peer->in[2] << 8 | (uint8_t)peer->in[3]);
        if (bytes > peer->used)
            return bytes > sizeof peer->in ? -EMSGSIZE : 0;
    } else if (peer->used && peer->in[0] != '$' &&
               (end = memmem(peer->in, peer->used, "\r\n\r\n", 4)) != NULL) {
        end[2] = '\0';
        const char *length = header_value(peer->in, "Content-Length:");
        const unsigned long body = length ? strtoul(length, NULL, 10) : 0;
        bytes = (size_t)(end + 4 - peer->in);
        if (body > sizeof peer->in - bytes)
            return -EMSGSIZE;
        bytes += body;
        if (bytes > peer->used) {
            end[2] = '\r';
            return 0;
        }
        rc = answer_request(peer, peer->in);
    } else {
        return 0;
    }
    peer->used -= bytes;
    memmove(peer->in, peer->in + bytes, peer->used);
    return rc < 0 && rc != -EAGAIN ? rc : 1;
}

void rtsp_peer_open(struct rtsp_peer *peer, const struct rtsp_cameras *cameras, int fd,
                    const struct sockaddr_in *address)
{
    *peer = (struct rtsp_peer){
        .cameras = cameras,
        .fd = fd,
        .accepted_ns = monotonic_ns(),
        .address = *address,
        .sender = {
            .rtp = cameras->rtp, .fd = fd, .link = cameras->link, .withhold = cameras->withhold}};
}

void rtsp_peer_close(struct rtsp_peer *peer)
{
    close(peer->fd);
    peer->fd = -1;
}

int rtsp_peer_read(struct rtsp_peer *peer)
{
    const size_t room = sizeof peer->in - peer->used;
    const ssize_t n = room ? recv(peer->fd, peer->in + peer->used, room, MSG_DONTWAIT) : -1;
    if (n <= 0)
        return n == 0 ? -ECONNRESET : room ? -errno : -EMSGSIZE;
    peer->used += (size_t)n;
    int rc;
    while ((rc = take_message(peer)) > 0)
        if (peer->over)
            return -ECONNRESET;
    return rc;
}
