// Results that should be on the device and are on the host: the log reports that and the reason,
// once per output.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/output/pool.h"
#include "tests/daemon/fake_driver.h"
#include "tests/test.h"

static const struct backend_driver plain = {.pin = fake_pin, .unpin = fake_unpin};

struct fixture {
    struct ledger ledger;
    struct pool *pool;
    struct consumer consumer;
    _Atomic bool stop;
    int terminal; // the real stderr
};

static void start(struct fixture *f, enum region_kind kind)
{
    struct pool_options options = {
        .n = 3, .items = 1, .name = "detector", .kind = kind, .overflow = OVERFLOW_DROP_OLDEST};
    char name[] = "/tmp/framed-fallback-XXXXXX";
    *f = (struct fixture){.terminal = dup(STDERR_FILENO)};
    CHECK(pool_open(&f->pool, &options) == 0, "open");
    pool_attach(f->pool, &f->consumer);
    int fd = mkstemp(name);
    unlink(name);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

// Takes slots of growing size on a device, as successive connections do.
static void use(struct fixture *f, const struct backend_driver *driver, bool on_device)
{
    for (size_t size = 100; size < 20000; size *= 10) {
        struct result *result;
        struct pool_request request = {
            .size = size, .items = 1, .ledger = &f->ledger, .stop = &f->stop};
        pool_add_backend(f->pool, driver, NULL);
        ledger_offer(&f->ledger);
        int rc = pool_claim(f->pool, &request, &result);
        CHECK(rc == 0 && (result->memory == MEMORY_CUDA) == on_device, "%zu bytes: %d", size, rc);
        pool_complete(f->pool, result, 0, 1, 0);
        pool_remove_backend(f->pool, NULL);
    }
}

static void end(struct fixture *f, const char *expected)
{
    char written[1000] = "";
    log_flush();
    ssize_t n = pread(STDERR_FILENO, written, sizeof written - 1, 0);
    dup2(f->terminal, STDERR_FILENO);
    close(f->terminal);
    CHECK(n >= 0 && strcmp(written, expected) == 0, "got:\n%swanted:\n%s", written, expected);
    pool_close(f->pool);
}

static int tries;

static int count_try(struct backend *backend, struct device_export *ret, enum export_kind kind,
                     size_t bytes)
{
    (void)backend, (void)ret, (void)kind, (void)bytes;
    tries++;
    return -ENOMEM;
}

// Unavailable memory is not requested again for every frame.
static void test_no_memory(void)
{
    struct fixture f;
    struct result *result;
    const struct backend_driver full = {
        .pin = fake_pin, .unpin = fake_unpin, .export_open = count_try};
    struct pool_request request = {
        .size = 8 << 20, .items = 1, .ledger = &f.ledger, .stop = &f.stop};
    struct rlimit limit, small = {1 << 20, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &limit);
    small.rlim_max = limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small); // no memory file may be so large
    start(&f, REGION_DEVICE);
    pool_add_backend(f.pool, &full, NULL);
    tries = 0;
    for (int i = 0; i < 20; i++)
        CHECK(pool_claim(f.pool, &request, &result) == -ENOMEM, "8 MiB of memory");
    CHECK(tries == 1, "%d tries at once", tries);
    usleep(1100000);
    CHECK(pool_claim(f.pool, &request, &result) == -ENOMEM && tries == 2, "%d tries", tries);
    setrlimit(RLIMIT_FSIZE, &limit);
    pool_remove_backend(f.pool, NULL);
    pool_add_backend(f.pool, &fake_driver, NULL); // another device: at once
    request.size = 100;
    ledger_offer(&f.ledger);
    CHECK(pool_claim(f.pool, &request, &result) == 0, "not tried after a change");
    pool_complete(f.pool, result, 0, 1, 0);
    pool_remove_backend(f.pool, NULL);
    end(&f, "warning output=detector memory: cuda: its slots are on the host: the device gives no "
            "memory: Cannot allocate memory\n");
}

int main(void)
{
    struct fixture f;
    log_open(LOG_LEVEL_INFO);
    start(&f, REGION_DEVICE);
    use(&f, &fake_driver, true);
    end(&f, "");

    start(&f, REGION_DEVICE);
    device_is_full = true;
    use(&f, &fake_driver, false);
    use(&f, &plain, false);
    device_is_full = false;
    use(&f, &fake_driver, true);
    device_is_full = true;
    use(&f, &fake_driver, false);
    end(&f, "warning output=detector memory: cuda: its slots are on the host: the device gives no "
            "memory: Cannot allocate memory\n");

    start(&f, REGION_DEVICE);
    use(&f, &plain, false);
    end(&f, "warning output=detector memory: cuda: its slots are on the host: the frames are not "
            "made on a GPU\n");

    start(&f, REGION_DEVICE_IPC);
    device_is_full = false;
    use(&f, &fake_driver, true);
    use(&f, &plain, false);
    end(&f,
        "warning output=detector memory: cuda-ipc: its slots are on the host: the frames are not "
        "made on a GPU\n");

    start(&f, REGION_SHARED);
    use(&f, &plain, false);
    end(&f, "");
    TEST(test_no_memory());
    return test_end();
}
