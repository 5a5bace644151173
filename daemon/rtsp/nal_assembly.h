// NAL units of H.264 and H.265, put into an assembly from fragments. A start code inside a payload,
// also across fragments, separates two units: it cannot occur in one.
#ifndef FRAMED_DAEMON_RTSP_NAL_ASSEMBLY_H
#define FRAMED_DAEMON_RTSP_NAL_ASSEMBLY_H

#include "daemon/rtsp/assembly.h"
#include "daemon/rtsp/parameter_sets.h"

struct nal_assembly;

struct nal_format {
    // What a unit is, by its first bytes: at least one, all of them or as many as tell it.
    enum assembly_piece (*tell)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
    // A unit is whole: tells the assembly what else it is.
    void (*finish)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
    // Takes a parameter set; false: it is none.
    bool (*learn)(struct nal_assembly *, const uint8_t *nal, size_t bytes);
};

struct nal_assembly {
    struct assembly *assembly;
    const struct nal_format *format;
    struct parameter_sets sets;
    // The unit that is open, in the assembly's open unit.
    bool open;
    bool left_out;        // its bytes are of no use
    bool told;            // format->tell was asked
    size_t start, header; // where its start code begins, and its header
    size_t scanned;       // no start code ends before here
};

// For each packet, ahead of its units: what the packets before left open is dropped where this
// packet cannot complete it.
void nal_assembly_packet(struct nal_assembly *, const struct rtp_packet *);
void nal_assembly_begin(struct nal_assembly *);
void nal_assembly_append(struct nal_assembly *, const uint8_t *data, size_t bytes);
void nal_assembly_end(struct nal_assembly *);
// A whole unit, of a payload or of an aggregation; it may begin with a start code.
void nal_assembly_put(struct nal_assembly *, const uint8_t *data, size_t bytes);
// A fragment came whose beginning is missing.
void nal_assembly_missing(struct nal_assembly *);
// Behind the units of a packet.
void nal_assembly_packet_end(struct nal_assembly *, const struct rtp_packet *);
void nal_assembly_flush(struct nal_assembly *); // the open unit will not be completed
// Parameter sets from elsewhere, with start codes.
void nal_assembly_head_start(struct nal_assembly *, const uint8_t *sets, size_t bytes);

#endif
