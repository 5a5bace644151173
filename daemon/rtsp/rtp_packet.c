#include "daemon/rtsp/rtp_packet.h"

#include <errno.h>

#include "daemon/base/number.h"

enum { HEADER = 12 };

bool rtp_is_rtcp(const uint8_t *data, size_t bytes)
{
    return bytes >= 4 && data[0] >> 6 == 2 && data[1] >= 200 && data[1] <= 204;
}

int rtp_parse(struct rtp_packet *ret, const uint8_t *data, size_t bytes)
{
    if (bytes < HEADER || data[0] >> 6 != 2)
        return -EBADMSG;
    size_t at = HEADER + 4 * (size_t)(data[0] & 15); // after the contributing sources
    struct rtp_packet packet = {.marker = data[1] >> 7,
                                .payload_type = data[1] & 127,
                                .sequence = big_endian_read(data + 2, 2),
                                .timestamp = big_endian_read(data + 4, 4),
                                .ssrc = big_endian_read(data + 8, 4)};
    if (data[0] & 0x10) {
        if (bytes < at + 4)
            return -EBADMSG;
        packet.extension_profile = big_endian_read(data + at, 2);
        packet.extension_bytes = 4 * big_endian_read(data + at + 2, 2);
        packet.extension = data + at + 4;
        at += 4 + packet.extension_bytes;
    }
    if (bytes < at)
        return -EBADMSG;
    packet.payload = data + at;
    packet.bytes = bytes - at;
    if (data[0] & 0x20 && packet.bytes > 0 && data[bytes - 1] <= packet.bytes)
        packet.bytes -= data[bytes - 1];
    *ret = packet;
    return 0;
}
