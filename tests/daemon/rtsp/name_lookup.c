// Lookups with name servers that do not answer: the number of threads that wait for them.
#include "daemon/rtsp/connection.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/test.h"

enum { HOSTS = 100, THREADS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answers;
static int begun, asked, waiting, most;

// Replaces the system's: digits are no names, and names are not answered until `answers`.
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    (void)host, (void)port, (void)ret;
    pthread_mutex_lock(&lock);
    if (hints->ai_flags & AI_NUMERICHOST) {
        begun++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        return EAI_NONAME;
    }
    asked++;
    waiting++;
    most = waiting > most ? waiting : most;
    pthread_cond_broadcast(&changed);
    while (!answers)
        pthread_cond_wait(&changed, &lock);
    waiting--;
    pthread_mutex_unlock(&lock);
    return EAI_AGAIN;
}

static void set_answers(bool value)
{
    pthread_mutex_lock(&lock);
    answers = value;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_until(const int *count, int n)
{
    pthread_mutex_lock(&lock);
    while (*count < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static struct caller {
    pthread_t thread;
    char host[32];
    _Atomic bool stop;
    int rc;
} callers[HOSTS];

static void *call(void *opaque)
{
    struct caller *c = opaque;
    static _Thread_local struct rtsp_connection connection;
    unsigned address = 0;
    char why[128];
    c->rc = rtsp_connection_open(
        &connection,
        &(struct rtsp_server){.host = c->host,
                              .port = 554,
                              .address = &address,
                              .stop = &c->stop,
                              .until_ns = monotonic_ns() + 20 * INT64_C(1000000000)},
        why, sizeof why);
    return NULL;
}

// Starts to look up names by all callers, and waits until they have begun.
static void start_callers(bool same_name)
{
    set_answers(false);
    begun = asked = 0;
    for (int i = 0; i < HOSTS; i++) {
        callers[i].stop = false;
        snprintf(callers[i].host, sizeof callers[i].host, "camera%d.example", same_name ? 0 : i);
        pthread_create(&callers[i].thread, NULL, call, &callers[i]);
    }
    wait_until(&begun, HOSTS);
}

// Returns how many of the callers from the first one on, in steps, got that result.
static int join_callers(int first, int step, int rc)
{
    int count = 0;
    for (int i = first; i < HOSTS; i += step) {
        pthread_join(callers[i].thread, NULL);
        count += callers[i].rc == rc;
    }
    return count;
}

static void test_threads_are_bounded(void)
{
    start_callers(false);
    wait_until(&asked, THREADS_MAX);
    const int64_t begun_ns = monotonic_ns();
    for (int i = 0; i < HOSTS; i += 2) // their look-ups have begun or not
        callers[i].stop = true;
    const int stopped = join_callers(0, 2, -ECANCELED);
    const int ms = (int)((monotonic_ns() - begun_ns) / 1000000);
    CHECK(stopped == HOSTS / 2 && ms < 2000, "%d stopped, in %d ms", stopped, ms);
    set_answers(true);
    const int answered = join_callers(1, 2, -ENXIO);
    CHECK(answered == HOSTS / 2 && most == THREADS_MAX, "%d answered, %d at once", answered, most);
    CHECK(asked < HOSTS, "%d were looked up, though nobody waits for half of them", asked);
}

static void test_one_host_is_one_lookup(void)
{
    start_callers(true);
    wait_until(&asked, 1);
    usleep(200000); // all have joined
    callers[0].stop = true;
    pthread_join(callers[0].thread, NULL);
    set_answers(true);
    const int answered = join_callers(1, 1, -ENXIO);
    CHECK(answered == HOSTS - 1 && asked == 1, "%d answered, %d asked", answered, asked);
}

int main(void)
{
    TEST(test_threads_are_bounded());
    TEST(test_one_host_is_one_lookup());
    return test_end();
}
