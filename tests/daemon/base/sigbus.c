// A shared object that is cut short while its owner uses it: the owner survives, but any other
// SIGBUS is fatal.
#include "daemon/base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { PAGE = 4096, PAGES = 64 };

static uint8_t *map_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)PAGES * PAGE) == 0, "%s", path);
    uint8_t *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    memset(memory, 1, (size_t)PAGES * PAGE);
    return memory;
}

static void *write_all(void *opaque)
{
    memset(opaque, 2, (size_t)PAGES * PAGE);
    return NULL;
}

static void test_object(const char *path, bool is_unlinked)
{
    uint8_t *memory = map_file(path);
    pthread_t threads[4];
    CHECK(truncate(path, PAGE) == 0 && (!is_unlinked || unlink(path) == 0), "truncate");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, write_all, memory);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(memory[0] == 2 && memory[PAGES * PAGE - 1] == 2, "%d %d", memory[0],
          memory[PAGES * PAGE - 1]);
    munmap(memory, (size_t)PAGES * PAGE);
    unlink(path);
}

// SIGBUS for a file that is no shared object, or sent by a process.
static void test_others(const char *path, bool is_sent)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        uint8_t *memory = map_file(path);
        if (is_sent)
            raise(SIGBUS);
        else if (truncate(path, 0) == 0)
            memory[0] = 1;
        raise(SIGBUS);
        _exit(0);
    }
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", status);
    unlink(path);
}

int main(void)
{
    char shared[64], file[64];
    snprintf(shared, sizeof shared, "/dev/shm/framed-test-%d", (int)getpid());
    snprintf(file, sizeof file, "/tmp/framed-test-%d", (int)getpid());
    if (access("/dev/shm", W_OK) < 0) {
        SKIP("no /dev/shm");
        return test_end();
    }
    sigbus_catch();
    TEST(test_object(shared, false));
    TEST(test_object(shared, true));
    TEST(test_others(file, false));
    TEST(test_others(shared, true));
    return test_end();
}
