#include "daemon/decode/slice_check.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/bitstream/hevc_headers.h"
#include "daemon/bitstream/nal.h"
#include "daemon/decode/hevc_slice.h"

enum {
    // Pictures of a kind in a row: then they are not believed to have errors.
    FAILED_MAX = 8,
    FAILED_AFTER_GOOD_MAX = 100,
    NO_SETS = HEVC_SLICE_I + 1, // a kind of picture: cannot be read by its parameter sets
    HVCC_ARRAYS = 22,           // where a HEVCDecoderConfigurationRecord has numOfArrays
};

struct slice_check {
    struct hevc_parameter_sets sets;
    struct hevc_slice slice;
    int length_bytes;
    uint8_t *rbsp;
    size_t room;
    bool lacks_profile;
    // Pictures by enum hevc_slice_type of their last slice, or NO_SETS:
    int failed[NO_SETS + 1]; // in a row
    bool good[NO_SETS + 1];  // there was one; at NO_SETS: of any type
    // Of the picture at hand:
    int next; // CTB in tile scan, with which the next slice segment begins
    int kind; // as the index of `failed`
    enum slice_check_result result;
};

// Returns the unit's bytes as the standard counts them, or NULL without memory. Zeros may follow
// its stop bit.
static const uint8_t *rbsp_of(struct slice_check *check, const struct nal *unit, size_t *size)
{
    if (unit->size > check->room) {
        free(check->rbsp);
        check->room = 2 * unit->size;
        check->rbsp = malloc(check->room);
    }
    if (!check->rbsp) {
        check->room = 0;
        return NULL;
    }
    *size = nal_rbsp(unit, check->rbsp, unit->size);
    while (*size > 0 && check->rbsp[*size - 1] == 0)
        --*size;
    return check->rbsp;
}

static enum slice_check_result check_segment(struct slice_check *check, int type,
                                             const uint8_t *rbsp, size_t size)
{
    struct hevc_slice *slice = &check->slice;
    int first;
    int rc = hevc_slice_header_read(&slice->header, &check->sets, type, rbsp, size);
    check->lacks_profile |= rc == -ENOTSUP;
    const bool has_sets = rc != -ENOTSUP && rc != -ENOENT;
    check->kind = has_sets ? (int)slice->header.type : NO_SETS;
    if (!has_sets && !check->good[NO_SETS])
        return SLICES_UNKNOWN; // else they were there, and noise has taken their place
    if (rc < 0)
        return SLICES_WRONG;
    if (slice->header.dependent && check->next == 0)
        return SLICES_WRONG;
    rc = hevc_slice_parse(slice, rbsp, size, &first);
    if (rc < 0 || first != check->next)
        return SLICES_WRONG;
    check->next = rc;
    return SLICES_GOOD;
}

static void take_unit(struct slice_check *check, const struct nal *unit)
{
    const int type = hevc_unit_type(unit);
    const bool is_slice = (type >= 0 && type <= HEVC_UNIT_RASL_R) ||
                          (type >= HEVC_UNIT_BLA_W_LP && type <= HEVC_UNIT_CRA);
    size_t size;
    if (!is_slice && type != HEVC_UNIT_SPS && type != HEVC_UNIT_PPS)
        return;
    const uint8_t *rbsp = rbsp_of(check, unit, &size);
    if (!rbsp)
        return;
    if (!is_slice)
        hevc_parameter_sets_take(&check->sets, type, rbsp, size);
    else if (check->result != SLICES_WRONG)
        check->result = check_segment(check, type, rbsp, size);
}

static void take_units(struct slice_check *check, const uint8_t *data, size_t size,
                       int length_bytes)
{
    struct nal_reader reader = {.data = data, .size = size, .length_bytes = length_bytes};
    struct nal unit;
    while (nal_next(&reader, &unit))
        take_unit(check, &unit);
}

// The arrays of parameter sets in a record: type, count, and units that their lengths precede.
static void take_record(struct slice_check *check, const uint8_t *data, size_t size)
{
    size_t at = HVCC_ARRAYS + 1;
    for (int arrays = data[HVCC_ARRAYS]; arrays > 0 && size - at >= 3; arrays--) {
        int units = data[at + 1] << 8 | data[at + 2];
        for (at += 3; units > 0 && size - at >= 2; units--) {
            const size_t length = (size_t)(data[at] << 8 | data[at + 1]);
            at += 2;
            if (length > size - at)
                return;
            take_unit(check, &(struct nal){data + at, length});
            at += length;
        }
    }
}

struct slice_check *slice_check_open(void)
{
    return calloc(1, sizeof(struct slice_check));
}

void slice_check_extradata(struct slice_check *check, const uint8_t *extradata, size_t size)
{
    check->length_bytes = hevc_length_bytes(extradata, size);
    if (check->length_bytes > 0)
        take_record(check, extradata, size);
    else if (extradata)
        take_units(check, extradata, size, 0);
}

void slice_check_close(struct slice_check *check)
{
    if (!check)
        return;
    free(check->rbsp);
    free(check);
}

enum slice_check_result slice_check_packet(struct slice_check *check, const uint8_t *data,
                                           size_t size)
{
    check->next = 0;
    check->result = SLICES_UNKNOWN;
    take_units(check, data, size, check->length_bytes);
    if (check->result == SLICES_UNKNOWN)
        return SLICES_UNKNOWN;
    const struct hevc_slice_header *header = &check->slice.header;
    if (check->result == SLICES_GOOD &&
        check->next != header->sps->ctb_columns * header->sps->ctb_rows)
        check->result = SLICES_WRONG;
    int *failed = &check->failed[check->kind];
    bool *good = &check->good[check->kind];
    if (check->result == SLICES_GOOD) {
        *failed = check->failed[NO_SETS] = 0;
        *good = check->good[NO_SETS] = true;
    } else if (*failed == (*good ? FAILED_AFTER_GOOD_MAX : FAILED_MAX)) {
        return SLICES_UNKNOWN;
    } else {
        ++*failed;
    }
    return check->result;
}

bool slice_check_lacks_profile(const struct slice_check *check)
{
    return check->lacks_profile;
}
