// Lookups with name servers that do not answer: the number of threads that wait for them.
#include "daemon/rtsp/name_lookup.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/test.h"

enum { HOSTS = 100, THREADS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answers;
static int asked, waiting, most;

// Replaces the system's: digits are no names, and names are not answered until `answers`.
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    (void)host, (void)port, (void)ret;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    pthread_mutex_lock(&lock);
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

static void wait_until_asked(int n)
{
    pthread_mutex_lock(&lock);
    while (asked < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

// Returns -EAGAIN if no answer came within 20 s.
static int wait_for_answer(struct name_lookup *lookup)
{
    const struct addrinfo *addresses;
    char why[128];
    struct pollfd fd = {.fd = name_lookup_fd(lookup), .events = POLLIN};
    poll(&fd, 1, 20000);
    return name_lookup_read(lookup, &addresses, why, sizeof why);
}

static void test_threads_are_bounded(void)
{
    struct name_lookup *lookups[HOSTS];
    int answered = 0;
    for (int i = 0; i < HOSTS; i++) {
        char host[32];
        snprintf(host, sizeof host, "camera%d.example", i);
        CHECK(name_lookup_open(&lookups[i], host, 554) == 0, "%s", host);
    }
    wait_until_asked(THREADS_MAX);
    for (int i = 0; i < HOSTS; i += 2) { // abandoned, started or not
        name_lookup_close(lookups[i]);
        lookups[i] = NULL;
    }
    set_answers(true);
    for (int i = 1; i < HOSTS; i += 2)
        answered += wait_for_answer(lookups[i]) == -ENXIO;
    CHECK(answered == HOSTS / 2 && most == THREADS_MAX, "%d answered, %d at once", answered, most);
    CHECK(asked < HOSTS, "%d were looked up, though nobody waits for half of them", asked);
    for (int i = 1; i < HOSTS; i += 2)
        name_lookup_close(lookups[i]);
}

static void test_one_host_is_one_lookup(void)
{
    struct name_lookup *lookups[HOSTS];
    int answered = 0;
    set_answers(false);
    asked = 0;
    for (int i = 0; i < HOSTS; i++)
        CHECK(name_lookup_open(&lookups[i], "camera.example", 554) == 0, "%d", i);
    wait_until_asked(1);
    name_lookup_close(lookups[0]);
    set_answers(true);
    for (int i = 1; i < HOSTS; i++)
        answered += wait_for_answer(lookups[i]) == -ENXIO;
    CHECK(answered == HOSTS - 1 && asked == 1, "%d answered, %d asked", answered, asked);
    for (int i = 1; i < HOSTS; i++)
        name_lookup_close(lookups[i]);
}

// The owner closes what it got: a failed look-up must not be released twice.
static void test_without_descriptors(void)
{
    struct name_lookup *lookup = NULL;
    struct rlimit limit, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    const int rc = name_lookup_open(&lookup, "camera.example", 554);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    CHECK(rc == -EMFILE && !lookup, "%d, %p", rc, (void *)lookup);
}

int main(void)
{
    TEST(test_threads_are_bounded());
    TEST(test_one_host_is_one_lookup());
    TEST(test_without_descriptors());
    return test_end();
}
