#include "daemon/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/url.h"
#include "daemon/base/log.h"

// --- the command line

int command_line_refuse(const char *command, const char *option, const char *what)
{
    char shown[256]; // a misplaced argument may be a URL
    fprintf(stderr, "%s: %s: %s (%s --help lists the options)\n", command,
            config_url_shown(option, shown, sizeof shown), what, command);
    return EXIT_USAGE;
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *opaque,
                      bool *help)
{
    int option, code = EXIT_OK;
    *help = false;
    opterr = 0; // we print errors ourselves, in one line; the leading colon reports a missing value
    while (code == EXIT_OK &&
           (option = getopt_long(argc, argv, line->letters, line->options, NULL)) != -1) {
        if (option == 'h') {
            if (line->usage)
                line->usage(stdout);
            *help = true;
            return EXIT_OK;
        }
        if (option == '?')
            code = command_line_refuse(line->command, argv[optind - 1], "bad option");
        else if (option == ':')
            code = command_line_refuse(line->command, argv[optind - 1], "wants a value");
        else
            code = line->take(opaque, option, optarg);
    }
    for (; code == EXIT_OK && optind != argc; optind++)
        code = line->take_argument
                   ? line->take_argument(opaque, argv[optind])
                   : command_line_refuse(line->command, argv[optind], "takes no further argument");
    return code;
}

int command_line_finish(const char *command, int code)
{
    const bool failed = ferror(stdout);
    if (fflush(stdout) == 0 && !failed)
        return code;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", command,
            strerror(errno ? errno : EIO));
    return code == EXIT_OK ? EXIT_RUNTIME : code;
}

// --- descriptors

enum { DESCRIPTORS_MAX = 1024 }; // higher numbers count as not inherited

static bool inherited[DESCRIPTORS_MAX]; // written before threads start

void descriptors_record(void)
{
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        inherited[fd] = flags >= 0 && (flags & O_ACCMODE) != O_WRONLY;
    }
}

// open() returns the lowest free number.
void descriptors_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0)
            return; // nowhere to report it
}

bool descriptors_inherited(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX && inherited[fd];
}

// --- process 1

// Closes the parent's copies, so that a pipe of the daemon ends with the daemon. Standard error
// stays open for the container's log.
static void close_descriptors(void)
{
    const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(none, STDIN_FILENO);
    dup2(none, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
}

// Reaps ended processes. Exits when the daemon has ended.
static void reap_processes(pid_t daemon)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == daemon)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// The terminal signals the daemon directly, so only signals from processes are forwarded.
static void serve_as_first(pid_t daemon, const sigset_t *all)
{
    close_descriptors();
    for (;;) {
        siginfo_t info;
        const int number = sigwaitinfo(all, &info);
        if (number == SIGCHLD)
            reap_processes(daemon);
        else if (number > 0 && info.si_code <= 0)
            kill(daemon, number);
    }
}

int first_process_leave(void)
{
    sigset_t all, before;
    if (getpid() != 1)
        return 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGCHLD, SIG_DFL); // an inherited SIG_IGN would reap the daemon unseen
    const pid_t daemon = fork();
    if (daemon > 0)
        serve_as_first(daemon, &all);
    const int rc = daemon < 0 ? -errno : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

// --- SIGABRT

static void aborted(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_pid == getpid())
        log_last("given up: a library had no memory, thread or watch left, or found itself broken");
    else
        log_last("given up: SIGABRT from another process, as from systemd's watchdog");
    _exit(EXIT_RUNTIME);
}

void sigabrt_catch(void)
{
    struct sigaction action = {.sa_sigaction = aborted, .sa_flags = SA_SIGINFO};
    sigaction(SIGABRT, &action, NULL);
}

// --- SIGBUS

// Lines of /proc/self/maps. A signal handler may not allocate, as libc's streams do.
struct maps {
    int fd;
    ssize_t n, at;
    char bytes[1024], line[512]; // longer lines are cut
};

static bool next_line(struct maps *maps)
{
    size_t length = 0;
    for (;;) {
        if (maps->at == maps->n) {
            maps->n = read(maps->fd, maps->bytes, sizeof maps->bytes);
            maps->at = 0;
            if (maps->n <= 0)
                return false;
        }
        const char c = maps->bytes[maps->at++];
        maps->line[length] = 0;
        if (c == '\n')
            return true;
        if (length < sizeof maps->line - 1)
            maps->line[length++] = c;
    }
}

// Replaces the pages from `begin` to the end of the mapping if its `line`, "START-END rw-s OFFSET
// DEVICE INODE   PATH", is of a shared object. Two threads may replace the same pages: each writes
// on from its own. Returns false for any other mapping.
static bool replace_mapping(const char *line, uintptr_t begin, uintptr_t end)
{
    const bool is_shared = strstr(line, " rw-s ") != NULL;
    if (!is_shared)
        return strchr(line, '/') == NULL; // another thread has replaced it
    return strstr(line, " /dev/shm/") &&
           mmap((void *)begin, end - begin, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool replace_at(uintptr_t address)
{
    struct maps maps = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool replaced = false, found = false;
    while (!found && maps.fd >= 0 && next_line(&maps)) {
        char *rest;
        const uintptr_t begin = strtoull(maps.line, &rest, 16);
        const uintptr_t end = strtoull(rest + (*rest == '-'), NULL, 16);
        found = begin <= address && address < end;
        if (found)
            replaced =
                replace_mapping(maps.line, address - address % (uintptr_t)getpagesize(), end);
    }
    if (maps.fd >= 0)
        close(maps.fd);
    return replaced;
}

// The access is retried on return.
static void access_failed(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int before = errno;
    if (info->si_code != BUS_ADRERR || !replace_at((uintptr_t)info->si_addr))
        signal(number, SIG_DFL);
    errno = before;
}

void sigbus_catch(void)
{
    struct sigaction action = {.sa_sigaction = access_failed, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

// --- state files

char *state_folder(void)
{
    const char *folders = getenv("STATE_DIRECTORY");
    const size_t length = folders ? strcspn(folders, ":") : 0;
    return length > 0 ? strndup(folders, length) : NULL;
}

int state_file_write(const char *path, const char *text, unsigned mode)
{
    char part[PATH_MAX];
    const size_t bytes = strlen(text);
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return -ENAMETOOLONG;
    unlink(part); // the folder may belong to another user, who may have put a link there
    const int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    errno = ENOSPC; // for a short write
    const bool written = write(fd, text, bytes) == (ssize_t)bytes;
    int rc = written && fchmod(fd, mode) == 0 && fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0)
        unlink(part);
    return rc;
}
