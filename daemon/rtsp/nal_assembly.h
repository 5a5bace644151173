// Assembles NAL units of H.264 and H.265 from fragments. A start code inside a payload, also across
// fragments, separates two units: it cannot occur inside a unit.
#ifndef FRAMED_DAEMON_RTSP_NAL_ASSEMBLY_H
#define FRAMED_DAEMON_RTSP_NAL_ASSEMBLY_H

#include "daemon/rtsp/depacketizer.h"

enum { PARAMETER_SETS_BYTES = 16384, PARAMETER_SETS_MAX = 64 };

// The newest parameter set of each kind and id of a stream, with start codes. Empty when zeroed.
struct parameter_sets {
    uint8_t data[PARAMETER_SETS_BYTES];
    size_t bytes;
    int n;
    struct parameter_set {
        int rank; // lower ranks come first: a VPS, an SPS, a PPS
        uint32_t id;
        size_t bytes; // with its start code
    } set[PARAMETER_SETS_MAX];
};

// Adds a NAL unit, or replaces the one with its rank and id. Leaves it out if there is no room: the
// stream contains it anyway.
void parameter_sets_put(struct parameter_sets *, int rank, uint32_t id, const uint8_t *nal,
                        size_t bytes);

struct nal_assembly;

struct nal_format {
    // Classifies a unit by its first bytes: at least one, and all of them or enough to decide.
    enum assembly_piece (*tell)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
    // Reports a complete unit's slice, parameter set or recovery point to the assembly.
    void (*finish)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
    // Stores a parameter set; returns false for other units.
    bool (*learn)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
};

struct nal_assembly {
    struct assembly *assembly;
    const struct nal_format *format;
    struct parameter_sets sets;
    // The open NAL unit, inside the assembly's open unit.
    bool open;
    bool left_out;        // its bytes are dropped
    bool told;            // it is classified or left out
    size_t start, header; // offsets of its start code and its header
    size_t scanned;       // start codes are searched from here on
};

// Call for each packet, before its units. Drops a unit that earlier packets left open if this
// packet cannot complete it.
void nal_assembly_packet(struct nal_assembly *, const struct rtp_packet *);
void nal_assembly_begin(struct nal_assembly *);
void nal_assembly_append(struct nal_assembly *, const uint8_t *data, size_t bytes);
void nal_assembly_end(struct nal_assembly *);
// Adds a complete unit of a payload or an aggregation; it may begin with a start code.
void nal_assembly_put(struct nal_assembly *, const uint8_t *data, size_t bytes);
// Reports a fragment without its beginning, or a truncated aggregation.
void nal_assembly_missing(struct nal_assembly *);
// Call for each packet, after its units.
void nal_assembly_packet_end(struct nal_assembly *, const struct rtp_packet *);
void nal_assembly_flush(struct nal_assembly *); // drops the open unit: no packet follows
// Stores parameter sets from elsewhere, with start codes.
void nal_assembly_head_start(struct nal_assembly *, const uint8_t *sets, size_t bytes);

#endif
