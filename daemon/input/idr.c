#include "daemon/input/idr.h"

enum { NAL_SLICE_FIRST = 1, NAL_IDR = 5 }; // types of NAL units; between them parts of slices

int idr_length_bytes(const uint8_t *extradata, size_t size)
{
    return extradata && size > 4 && extradata[0] == 1 ? (extradata[4] & 3) + 1 : 0;
}

// The unit's type behind the next start code, from *at on; -1: there is none.
static int next_started(const uint8_t *data, size_t size, size_t *at)
{
    for (size_t i = *at; i + 3 < size; i++) {
        if (data[i] == 0 && data[i + 1] == 0 && data[i + 2] == 1) {
            *at = i + 3;
            return data[i + 3] & 31;
        }
    }
    return -1;
}

static int next_measured(const uint8_t *data, size_t size, size_t *at, int length_bytes)
{
    size_t length = 0;
    if (size - *at <= (size_t)length_bytes)
        return -1;
    for (int i = 0; i < length_bytes; i++)
        length = length << 8 | data[(*at)++];
    int type = data[*at] & 31;
    *at += length < size - *at ? length : size - *at;
    return type;
}

bool idr_begins(const uint8_t *data, size_t size, int length_bytes)
{
    size_t at = 0;
    int type;
    do
        type = length_bytes ? next_measured(data, size, &at, length_bytes)
                            : next_started(data, size, &at);
    while (type == 0 || type > NAL_IDR);
    return type == NAL_IDR;
}
