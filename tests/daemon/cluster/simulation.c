// Random faults and changes of boxes, their network, etcd and their operator: the rules of
// tests/cluster/simulation/rules.h hold at each moment, and in the end all is well again.
//     SEED=N of the first schedule, CASES=N schedules, TRACE=1 prints what happens
#include <stdlib.h>

#include "tests/cluster/simulation/schedule.h"

#include "tests/test.h"

#ifdef __SANITIZE_ADDRESS__
enum { CASES = 150 };
#else
enum { CASES = 500 };
#endif

static long long all_requests, all_plans, all_moves, all_rebalanced, most_requests;
static long long all_pictures, longest_black_ms, virtual_s;

static void finish(void)
{
    const int64_t bound_ns = 3 * schedule.lease_ns + 15 * NS_SECOND;
    schedule_end_faults();
    world_run(world.now_ns + bound_ns, schedule_follow);
    const char *why = world.broken ? NULL : rules_unsettled();
    if (why)
        break_rule("all is well again once faults end", "%s", why);
    const int rebalanced = rules.rebalanced, plans = rules.plans;
    const int64_t requests = world.requests, from_ns = world.now_ns;
    world_run(world.now_ns + 12 * NS_SECOND, schedule_follow);
    if (world.broken)
        return;
    const double seconds = (double)(world.now_ns - from_ns) / (double)NS_SECOND;
    const double rate = (double)(world.requests - requests) / seconds / schedule.n_boxes;
    if (rules.plans - plans != rules.rebalanced - rebalanced)
        break_rule("the plan comes to rest", "%d plans", rules.plans - plans);
    if (rate > 10 * (double)NS_SECOND / (double)schedule.lease_ns + 1) // plus keepalives
        break_rule("etcd is left in peace", "%g requests of a box in a second", rate);
}

static void count(void)
{
    all_requests += world.requests;
    all_plans += rules.plans;
    all_moves += rules.moves;
    all_rebalanced += rules.rebalanced;
    all_pictures += rules.pictures;
    virtual_s += world.now_ns / NS_SECOND;
    if (rules.most_requests > most_requests)
        most_requests = rules.most_requests;
    if (rules.longest_black_ns / NS_MS > longest_black_ms)
        longest_black_ms = rules.longest_black_ns / NS_MS;
}

static bool run_schedule(uint64_t seed)
{
    schedule_open(seed);
    world_run(draw_ns(2 * NS_SECOND, 12 * NS_SECOND), schedule_follow);
    schedule.next_ns = world.now_ns;
    if (schedule.kind == KIND_BOXES && rules.plan && !rules_unsettled()) {
        rules.etcd_is_well = true;
        for (int i = 0; i < rules.plan->n; i++)
            if (*rules.plan->entries[i].node)
                rules.counts_from_ns[camera_number(rules.plan->entries[i].camera)] = world.now_ns;
    }
    world_run(world.now_ns + draw_ns(5 * NS_SECOND, 60 * NS_SECOND), schedule_follow);
    if (!world.broken)
        finish();
    count();
    CHECK(!world.broken, "%s: %s, at %.3f s: kind %d: SEED=%llu CASES=1", world.broken, world.why,
          (double)world.now_ns / (double)NS_SECOND, (int)schedule.kind, (unsigned long long)seed);
    const bool good = !world.broken;
    schedule_close();
    return good;
}

static void test_schedules(void)
{
    const char *seed = getenv("SEED"), *cases = getenv("CASES");
    const uint64_t first = seed && *seed ? strtoull(seed, NULL, 0) : 1;
    const long n = cases ? atol(cases) : CASES;
    int failed = 0;
    for (long i = 0; i < n && failed < 10; i++)
        failed += !run_schedule(first + (uint64_t)i);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP("it does not know coroutines");
    return test_end();
#endif
    TEST(test_schedules());
    printf("%lld s: %lld requests, at most %lld in a second; %lld plans, %lld moves, %lld to "
           "balance; %lld pictures, none for %lld ms at most\nfaults:",
           virtual_s, all_requests, most_requests, all_plans, all_moves, all_rebalanced,
           all_pictures, longest_black_ms);
    for (enum fault fault = 0; fault < FAULTS; fault++)
        printf(" %s %lld%s", fault_name(fault), schedule.faults[fault],
               fault + 1 < FAULTS ? "," : "");
    putchar('\n');
    return test_end();
}
