// Handmade H.264 units, their packets, and checks of the resulting pictures.
#ifndef FRAMED_TESTS_DAEMON_RTSP_H264_PACKETS_H
#define FRAMED_TESTS_DAEMON_RTSP_H264_PACKETS_H

#include "daemon/bitstream/nal.h"
#include "tests/daemon/rtsp/packets.h"

enum { INTERVAL = 3600 };

// Makes a header, then bytes without a start code.

static uint8_t made[16][4096];

static inline const uint8_t *nal_of(int place, int type, int ref_idc, int first, size_t bytes)
{
    uint8_t *nal = made[place];
    nal[0] = (uint8_t)(ref_idc << 5 | type);
    nal[1] = first ? 0x88 : 0x40; // first_mb 0 or 1, slice_type 0 or more
    for (size_t i = 2; i < bytes; i++)
        nal[i] = (uint8_t)(0x11 + (i * 7 + (size_t)place) % 200);
    return nal;
}

static inline void send_unit(int type, int first, bool marker)
{
    net_send(nal_of(0, type, 1, first, 40), 40, marker);
}

static inline void send_slice(int first, bool marker)
{
    send_unit(1, first, marker);
}

static inline void next_stamp(void)
{
    net.timestamp += INTERVAL;
}

// Returns the types of a picture's units, in hexadecimal, with 'm' if first_mb is not 0.
static inline const char *units_of(const struct got *got)
{
    static char text[256];
    size_t at = 0;
    struct nal_reader reader = {.data = got->unit.data, .size = got->unit.bytes};
    struct nal nal;
    text[0] = '\0';
    while (nal_next(&reader, &nal) && at < sizeof text - 8) {
        const int type = nal.data[0] & 31;
        const bool more = (type == 1 || type == 5) && nal.size > 1 && !(nal.data[1] & 0x80);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d%s", at ? " " : "", type,
                               more ? "m" : "");
    }
    return text;
}

#define CHECK_UNITS(i, expected)                                                                   \
    CHECK((i) < net.n && strcmp(units_of(&net.got[i]), expected) == 0, "picture %d: %s, not %s",   \
          i, (i) < net.n ? units_of(&net.got[i]) : "none", expected)

static inline void check_flags(int i, bool damaged, bool reference_lost, uint32_t lost)
{
    if (i >= net.n) {
        CHECK(false, "no picture %d", i);
        return;
    }
    const struct access_unit *u = &net.got[i].unit;
    CHECK(u->damaged == damaged && u->reference_lost == reference_lost && u->lost == lost,
          "picture %d: damaged %d, reference lost %d, %u lost", i, u->damaged, u->reference_lost,
          u->lost);
}

static inline void send_fragment(int flags, int type, size_t bytes, bool marker)
{
    uint8_t payload[2048] = {0x7c, (uint8_t)(flags | type)};
    memcpy(payload + 2, nal_of(2, 1, 3, type == 5, bytes + 1) + 1, bytes);
    net_send(payload, bytes + 2, marker);
}

#endif
