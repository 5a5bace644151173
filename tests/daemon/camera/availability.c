// Availability over hours, days, clock changes, and invalid files.
#include "daemon/camera/camera.h"

#include "tests/test.h"

static const int64_t SECOND = 1000000000, HOUR = 3600 * INT64_C(1000000000);
static const int64_t START = 490000 * 3600 * INT64_C(1000000000); // in 2025, at a full hour

static void run(struct availability *a, int64_t *now, int64_t seconds, bool up)
{
    for (int64_t i = 0; i < seconds; i++)
        availability_add(a, *now += SECOND, SECOND, up);
}

static void test_hours(void)
{
    struct availability a = {0};
    struct availability_share sum;
    int64_t now = START;
    availability_sum(&a, now, &sum);
    CHECK(sum.share == -1 && sum.known_s == 0 && sum.day[6] == -1, "share %g", sum.share);
    run(&a, &now, 3599, true);
    run(&a, &now, 1200, false);
    availability_sum(&a, now, &sum);
    CHECK(sum.known_s == 4799 && sum.share == 3599.0 / 4799, "%g of %jd s", sum.share,
          (intmax_t)sum.known_s);
    CHECK(sum.day[6] == sum.share && sum.day[5] == -1, "%g today, %g yesterday", sum.day[6],
          sum.day[5]);
}

// A day down, then eight days up: the first day is dropped hour by hour.
static void test_days(void)
{
    struct availability a = {0};
    struct availability_share sum;
    int64_t now = START;
    run(&a, &now, 86400, false);
    run(&a, &now, 6 * 86400, true);
    availability_sum(&a, now - 1, &sum);
    CHECK(sum.known_s == 7 * 86400 && sum.day[0] == 0 && sum.day[1] == 1, "%jd s, %g, %g",
          (intmax_t)sum.known_s, sum.day[0], sum.day[1]);
    run(&a, &now, 12 * 3600, true);
    availability_sum(&a, now - 1, &sum);
    CHECK(sum.day[0] == 0.5, "half of the first day is left: %g", sum.day[0]);
    run(&a, &now, 86400, true);
    availability_sum(&a, now - 1, &sum);
    CHECK(sum.share == 1 && sum.day[0] == 1, "%g", sum.share);
    now += 30 * 24 * HOUR; // framed did not run
    availability_sum(&a, now, &sum);
    CHECK(sum.share == -1, "%g", sum.share);
    run(&a, &now, 10, false);
    availability_sum(&a, now, &sum);
    CHECK(sum.share == 0 && sum.known_s == 10, "%g of %jd s", sum.share, (intmax_t)sum.known_s);
}

static void test_clocks(void)
{
    struct availability a = {0};
    struct availability_share sum;
    int64_t now = START, early = 0;
    run(&a, &now, 7200, true);
    run(&a, &early, 600, false); // in 1970, until the network is up
    availability_sum(&a, now, &sum);
    CHECK(sum.known_s == 7200 && sum.share == 1, "%g of %jd s", sum.share, (intmax_t)sum.known_s);
    int64_t back = now - HOUR;
    run(&a, &back, 3600, false);
    availability_sum(&a, now, &sum);
    CHECK(sum.known_s >= 7200 && sum.known_s <= 7202, "no hour is longer than an hour: %jd s",
          (intmax_t)sum.known_s);
    int64_t wrong = START - 400 * 24 * HOUR; // all before was by a wrong clock
    run(&a, &wrong, 3 * 3600, false);
    availability_sum(&a, wrong, &sum);
    CHECK(sum.share == 0 && sum.known_s > 7000, "%g of %jd s", sum.share, (intmax_t)sum.known_s);
    availability_add(&a, wrong, 2 * HOUR, true);
    availability_add(&a, wrong, -1, true);
    availability_add(&a, -1, SECOND, true);
    struct availability_share after;
    availability_sum(&a, wrong, &after);
    CHECK(after.known_s == sum.known_s, "times that cannot be: %jd s", (intmax_t)after.known_s);
}

static void test_set(void)
{
    struct availability a = {0}, b = {0};
    struct availability_share one, other;
    int64_t now = START;
    for (int i = 0; i < 3 * AVAILABILITY_HOURS; i++)
        run(&a, &now, 3600, i % 5 != 0);
    for (int64_t hour = a.hour - AVAILABILITY_HOURS + 1; hour <= a.hour; hour++)
        availability_set(&b, hour, *availability_hour(&a, hour));
    availability_sum(&a, now, &one);
    availability_sum(&b, now, &other);
    CHECK(one.share == other.share && one.known_s == other.known_s, "%g, %g", one.share,
          other.share);
    availability_set(&b, b.hour + 1, (struct availability_hour){2, 1});
    availability_set(&b, b.hour + 1, (struct availability_hour){1, 3600001});
    availability_set(&b, b.hour - 1, (struct availability_hour){1, 2});
    availability_set(&b, INT64_MAX, (struct availability_hour){1, 2});
    CHECK(b.hour == a.hour, "hours that cannot be");
    CHECK(!availability_hour(&b, b.hour + 1) && !availability_hour(&b, -1) &&
              !availability_hour(&b, b.hour - AVAILABILITY_HOURS),
          "hours outside");
}

int main(void)
{
    TEST(test_hours());
    TEST(test_days());
    TEST(test_clocks());
    TEST(test_set());
    return test_end();
}
