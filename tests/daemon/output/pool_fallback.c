// Results that were to be on the device and are on the host: once an output, the log says so and
// why.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

// Takes slots of growing size on a device, as one connection after another does.
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
    return test_end();
}
