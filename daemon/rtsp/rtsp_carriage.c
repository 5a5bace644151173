#include "daemon/rtsp/rtsp_carriage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rtsp/rtcp.h"
#include "daemon/rtsp/rtsp_transport.h"
#include "daemon/rtsp/sdp.h"

int rtsp_carriage_ask(struct rtsp_carriage *c, enum transport transport,
                      const struct rtsp_connection *connection, char *header, size_t size)
{
    int rc = 0, port = 0;
    *c = (struct rtsp_carriage){.transport = transport, .channels = {0, 1}};
    switch (transport) {
    case TRANSPORT_TCP:
        snprintf(header, size, "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n");
        break;
    case TRANSPORT_UDP:
        if ((rc = rtp_sockets_open(&c->sockets, rtsp_connection_fd(connection))) == 0)
            port = rtp_sockets_port(c->sockets);
        snprintf(header, size, "Transport: RTP/AVP;unicast;client_port=%d-%d\r\n", port, port + 1);
        break;
    case TRANSPORT_MULTICAST:
        snprintf(header, size, "Transport: RTP/AVP;multicast\r\n");
        break;
    }
    return rc;
}

static int join_multicast(struct rtsp_carriage *c, const struct rtsp_transport *answer,
                          const struct sdp_media *media, const struct rtsp_connection *connection)
{
    const char *group = *answer->destination ? answer->destination : media->address;
    int ports[2] = {answer->ports[0], answer->ports[1]};
    if (!ports[0] && media->port) {
        ports[0] = media->port;
        ports[1] = media->port + 1;
    }
    rtsp_carriage_close(c);
    c->transport = TRANSPORT_MULTICAST;
    return rtp_sockets_join(&c->sockets, rtsp_connection_fd(connection), group, ports,
                            answer->ttl ? answer->ttl : media->ttl, answer->source);
}

int rtsp_carriage_answer(struct rtsp_carriage *c, const char *header, const struct sdp_media *media,
                         const struct rtsp_connection *connection)
{
    struct rtsp_transport answer;
    rtsp_transport_parse(&answer, header);
    c->ssrc = answer.ssrc;
    if (c->transport == TRANSPORT_TCP) {
        if (answer.channels[0] >= 0)
            memcpy(c->channels, answer.channels, sizeof c->channels);
        return 0;
    }
    if (answer.tcp)
        return -EXDEV;
    if (answer.multicast || c->transport == TRANSPORT_MULTICAST)
        return join_multicast(c, &answer, media, connection);
    rtp_sockets_set_peer(c->sockets, answer.server_ports, answer.source);
    return 0;
}

// Sends an empty RTP packet and an empty report, which cameras ignore.
void rtsp_carriage_punch(struct rtsp_carriage *c, int payload_type, uint32_t ssrc)
{
    const uint8_t id[4] = {(uint8_t)(ssrc >> 24), (uint8_t)(ssrc >> 16), (uint8_t)(ssrc >> 8),
                           (uint8_t)ssrc};
    uint8_t rtp[12] = {0x80, (uint8_t)payload_type}, report[8] = {0x80, 201, 0, 1};
    if (c->transport != TRANSPORT_UDP)
        return;
    memcpy(rtp + 8, id, sizeof id);
    memcpy(report + 4, id, sizeof id);
    rtp_sockets_send(c->sockets, false, rtp, sizeof rtp);
    rtp_sockets_send(c->sockets, true, report, sizeof report);
}

int rtsp_carriage_send(struct rtsp_carriage *c, struct rtsp_connection *connection,
                       const uint8_t *data, size_t bytes)
{
    uint8_t frame[4 + RTCP_REPORT_MAX] = {'$', (uint8_t)c->channels[1], (uint8_t)(bytes >> 8),
                                          (uint8_t)bytes};
    if (c->transport != TRANSPORT_TCP) {
        rtp_sockets_send(c->sockets, true, data, bytes);
        return 0;
    }
    if (rtsp_connection_is_sending(connection))
        return 0;
    memcpy(frame + 4, data, bytes);
    return rtsp_connection_write(connection, frame, 4 + bytes);
}

void rtsp_carriage_close(struct rtsp_carriage *c)
{
    rtp_sockets_close(c->sockets);
    c->sockets = NULL;
}
