#include "daemon/output/consumer.h"

void reader_take(struct reader *reader, const struct slot_info *info)
{
    if (reader->begun)
        reader->lost += info->ordinal - reader->expected;
    reader->new_epoch = !reader->begun || reader->epoch != info->frame.epoch;
    reader->begun = true;
    reader->epoch = info->frame.epoch;
    reader->expected = info->ordinal + 1;
}
