#include "daemon/source/demux.h"

#include "tests/test.h"

static const int64_t MS = 1000000, START = 1700000000 * INT64_C(1000000000);

// Pictures every 40 ms, with the report in the packet `lag` before; from the hundredth on, the
// sender's clock is 3 ms ahead of its timestamps.
static void test_sender(int lag)
{
    struct sender_clock clock = {0};
    for (int i = 0; i < 200; i++) {
        int64_t pts = i * 40 * MS, of = i + lag;
        int64_t report = i < 5 ? INT64_MIN : START + of * 40 * MS + (of >= 100 ? 3 * MS : 0);
        int64_t expected = i < 5 ? INT64_MIN : START + pts + (i >= 100 ? 3 * MS : 0);
        int64_t got = sender_clock_read(&clock, report, START, pts);
        CHECK(got == expected, "lag %d, packet %d: off by %lld", lag, i,
              (long long)(got - expected));
    }
    // After a packet without a time, the next one's is unknown, unless it was predicted.
    int64_t last = sender_clock_read(&clock, INT64_MIN, START, 8000 * MS);
    CHECK((last == INT64_MIN) == (lag == 0), "lag %d", lag);
    CHECK(sender_clock_read(&clock, INT64_MIN, START, 8040 * MS) == INT64_MIN, "lag %d", lag);
}

int main(void)
{
    TEST(test_sender(0));
    TEST(test_sender(1));
    return test_end();
}
