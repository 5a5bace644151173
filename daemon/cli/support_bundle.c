#include "daemon/cli/support_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_BYTES_MAX = 16 << 20 };

int support_bundle_open(struct support_bundle *bundle, const struct support_secrets *secrets,
                        const char *name)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    *bundle = (struct support_bundle){.secrets = secrets};
    if (!parent || strlen(parent) > sizeof bundle->folder - 32)
        parent = "/tmp";
    snprintf(bundle->folder, sizeof bundle->folder, "%s/framed-support.XXXXXX", parent);
    snprintf(bundle->name, sizeof bundle->name, "%s", name);
    if (!mkdtemp(bundle->folder)) {
        bundle->folder[0] = 0;
        return -errno;
    }
    snprintf(path, sizeof path, "%s/%s", bundle->folder, bundle->name);
    return mkdir(path, 0700) < 0 ? -errno : 0;
}

int support_bundle_put(const struct support_bundle *bundle, const char *file, const char *text)
{
    char path[PATH_MAX];
    char *hidden = support_secrets_hide(bundle->secrets, text);
    if (!hidden)
        return -ENOMEM;
    snprintf(path, sizeof path, "%s/%s/%s", bundle->folder, bundle->name, file);
    FILE *to = fopen(path, "wex");
    int rc = to ? 0 : -errno;
    if (to)
        fputs(hidden, to);
    if (to && fclose(to) != 0)
        rc = -errno;
    free(hidden);
    return rc;
}

int support_bundle_run(const struct support_bundle *bundle, const char *file, const char *command)
{
    char line[512];
    char *text = malloc(COMMAND_BYTES_MAX + 1);
    if (!text)
        return -ENOMEM;
    snprintf(line, sizeof line, "{ timeout 15 %s; } 2>&1 </dev/null", command);
    FILE *from = popen(line, "re");
    size_t n = from ? fread(text, 1, COMMAND_BYTES_MAX, from) : 0;
    if (from)
        pclose(from);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : '?';
    text[n] = 0;
    const int rc = support_bundle_put(bundle, file, text);
    free(text);
    return rc;
}

int support_bundle_pack(const struct support_bundle *bundle, const char *path)
{
    char *const argv[] = {"tar",  "--owner=0", "--group=0",          "-C", (char *)bundle->folder,
                          "-czf", "-",         (char *)bundle->name, NULL};
    extern char **environ;
    posix_spawn_file_actions_t actions;
    const bool to_output = strcmp(path, "-") == 0;
    const int fd = to_output
                       ? STDOUT_FILENO
                       : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int status = 0;
    pid_t pid;
    if (fd < 0)
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
    int rc = -posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (rc == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            rc = -errno;
    if (rc == 0 && status != 0)
        rc = -EIO; // tar has said why
    if (!to_output && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (!to_output && rc < 0)
        unlink(path);
    return rc;
}

// Its files, and the two folders.
void support_bundle_close(struct support_bundle *bundle)
{
    char path[PATH_MAX];
    if (!bundle->folder[0])
        return;
    snprintf(path, sizeof path, "%s/%s", bundle->folder, bundle->name);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
    rmdir(bundle->folder);
}
