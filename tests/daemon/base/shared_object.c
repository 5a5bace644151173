// Names of POSIX shared memory objects: taken, kept, handed from one memory to the next, freed, and
// distinguished from other programs' names.
#include "daemon/base/region.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { BYTES = 100000, WHOLE_BYTES = 25 * 4096 };

static char name[40], path[64], why[256];

static int take(struct shared_object *object, int mode)
{
    shared_object_init(object);
    return shared_object_open(object, name, mode, (gid_t)-1, why, sizeof why);
}

// Maps the memory as programs that write to it do.
static uint8_t *map_as_triton(void)
{
    const int fd = shm_open(name, O_RDWR, 0);
    if (fd < 0)
        return NULL;
    void *memory = mmap(NULL, WHOLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static void test_open(void)
{
    struct shared_object object, other;
    struct stat st;
    CHECK(shared_object_check(name, why, sizeof why) == 0, "%s", why);
    CHECK(take(&object, 0640) == 0, "%s", why);
    CHECK(stat(path, &st) == 0 && st.st_size == 0, "%s", strerror(errno));
    CHECK((st.st_mode & 0777) == 0640 && st.st_gid == getegid(), "%o", st.st_mode);
    CHECK(shared_object_check(name, why, sizeof why) == -EADDRINUSE, "in use");
    CHECK(take(&other, 0640) == -EADDRINUSE && strstr(why, "another program has"), "%s", why);
    CHECK(!shared_object_is_lost(&object) && shared_object_is_lost(&other), "which one has it");
    shared_object_close(&other);
    CHECK(access(path, F_OK) == 0, "another one has removed it");
    shared_object_close(&object);
    CHECK(access(path, F_OK) < 0, "it is still there");
    shared_object_close(&object);
}

static void test_memory(void)
{
    struct shared_object object;
    struct region first = {0}, second = {0};
    CHECK(take(&object, 0600) == 0, "%s", why);
    CHECK(region_open_named(&first, BYTES, &object) == 0 && first.bytes == WHOLE_BYTES, "open");
    uint8_t *theirs = map_as_triton();
    CHECK(theirs && theirs[0] == 0 && theirs[WHOLE_BYTES - 1] == 0, "not zeroed");
    first.base[5000] = 42;
    CHECK(theirs[5000] == 42, "another memory");
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, first.fd, 0) == MAP_FAILED,
          "clients of the ring could write");
    CHECK(fcntl(first.fd, F_GETFD) & FD_CLOEXEC, "it passes exec");
    CHECK(region_open_named(&second, BYTES, &object) == 0, "again");
    uint8_t *newer = map_as_triton();
    second.base[5000] = 43;
    first.base[5000] = 44;
    CHECK(newer[5000] == 43 && theirs[5000] == 44, "%d %d", newer[5000], theirs[5000]);
    region_close(&first);
    CHECK(theirs[5000] == 44 && !shared_object_is_lost(&object), "a mapping ends with the region");
    shared_object_close(&object);
    CHECK(region_open_named(&first, BYTES, &object) == -ESHUTDOWN, "the name is given up");
    second.base[5000] = 45;
    CHECK(newer[5000] == 45 && access(path, F_OK) < 0, "the memory ends with its name");
    region_close(&second);
    munmap(theirs, WHOLE_BYTES);
    munmap(newer, WHOLE_BYTES);
}

// A killed daemon's name goes to the next one, even if others still map its memory.
static void test_killed(void)
{
    struct shared_object object;
    int pipe_fd[2];
    char byte;
    CHECK(pipe(pipe_fd) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
        struct region region = {0};
        const bool good =
            take(&object, 0600) == 0 && region_open_named(&region, BYTES, &object) == 0;
        region.base[7] = 7;
        if (good && write(pipe_fd[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK(read(pipe_fd[0], &byte, 1) == 1, "the other daemon");
    uint8_t *theirs = map_as_triton();
    const int kept = open(path, O_RDONLY);
    CHECK(take(&object, 0600) == -EADDRINUSE, "taken from a daemon that lives");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(access(path, F_OK) == 0, "it left nothing");
    CHECK(shared_object_check(name, why, sizeof why) == 0, "%s", why);
    CHECK(take(&object, 0600) == 0, "%s", why);
    CHECK(theirs[7] == 7 && !shared_object_is_lost(&object), "its memory: %d", theirs[7]);
    shared_object_close(&object);
    munmap(theirs, WHOLE_BYTES);
    close(kept);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

// Files of other programs stay.
static void test_foreign(void)
{
    struct shared_object object;
    close(open(path, O_CREAT | O_RDWR, 0600));
    CHECK(shared_object_check(name, why, sizeof why) == -EEXIST, "%s", why);
    CHECK(take(&object, 0600) == -EEXIST && strstr(why, "exists and is not framed's"), "%s", why);
    shared_object_close(&object);
    CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0, "%s", strerror(errno));
    CHECK(take(&object, 0600) == -EEXIST, "a link: %s", why);
    CHECK(unlink(path) == 0 && mkfifo(path, 01600) == 0, "%s", strerror(errno));
    CHECK(take(&object, 0600) == -EEXIST, "a fifo: %s", why);
    CHECK(unlink(path) == 0, "%s", strerror(errno));
}

// The file is removed, cut short or replaced.
static void test_lost(void)
{
    struct shared_object object;
    struct region region = {0};
    CHECK(take(&object, 0600) == 0 && region_open_named(&region, BYTES, &object) == 0, "%s", why);
    CHECK(truncate(path, BYTES - 1) == 0 && shared_object_is_lost(&object), "cut short");
    CHECK(shared_object_open(&object, name, 0600, (gid_t)-1, why, sizeof why) == 0, "%s", why);
    CHECK(!shared_object_is_lost(&object), "lost again");
    CHECK(unlink(path) == 0 && shared_object_is_lost(&object), "removed");
    CHECK(shared_object_open(&object, name, 0600, (gid_t)-1, why, sizeof why) == 0, "%s", why);
    CHECK(access(path, F_OK) == 0 && !shared_object_is_lost(&object), "not there");
    CHECK(unlink(path) == 0, "%s", strerror(errno));
    close(open(path, O_CREAT | O_RDWR, 0600));
    CHECK(shared_object_is_lost(&object), "replaced");
    struct region other = {0};
    CHECK(region_open_named(&other, BYTES, &object) == -EEXIST && !other.base, "taken back");
    shared_object_close(&object);
    CHECK(unlink(path) == 0, "closing has removed what is not ours");
    region_close(&region);
}

// A name under which no file can be made.
static void test_failure(void)
{
    struct shared_object object;
    struct region region = {0};
    CHECK(take(&object, 0600) == 0, "%s", why);
    CHECK(region_open_named(&region, (size_t)1 << 46, &object) < 0 && !region.base, "too large");
    CHECK(!shared_object_is_lost(&object), "the name went with the memory");
    shared_object_close(&object);
}

int main(void)
{
    snprintf(name, sizeof name, "/framed-test-%d", (int)getpid());
    snprintf(path, sizeof path, "/dev/shm%s", name);
    if (access("/dev/shm", W_OK) < 0) {
        SKIP("no /dev/shm");
        return test_end();
    }
    TEST(test_open());
    TEST(test_memory());
    TEST(test_killed());
    TEST(test_foreign());
    TEST(test_lost());
    TEST(test_failure());
    return test_end();
}
