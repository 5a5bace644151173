#include "daemon/cli/support_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/expand.h"

enum { COMMAND_BYTES_MAX = 16 << 20, LINE_BYTES = 64 << 10 };

int support_bundle_open(struct support_bundle *bundle, const char *name)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    *bundle = (struct support_bundle){0};
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

// Prints the text without the secrets of the configuration.
static void print_hidden(const struct support_bundle *bundle, FILE *to, const char *text)
{
    static char line[LINE_BYTES], hidden[LINE_BYTES];
    while (*text) {
        const size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        for (int i = 0; i < bundle->n_secrets; i++) {
            secrets_hide(bundle->secrets[i], hidden, sizeof hidden, line);
            memcpy(line, hidden, sizeof line);
        }
        fputs(expand_hide(hidden, sizeof hidden, line, true), to);
        text += n;
        if (*text)
            putc(*text++, to);
    }
}

int support_bundle_put(const struct support_bundle *bundle, const char *file, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", bundle->folder, bundle->name, file);
    FILE *to = fopen(path, "wex");
    int rc = to ? 0 : -errno;
    if (to)
        print_hidden(bundle, to, text);
    if (to && fclose(to) != 0)
        rc = -errno;
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
        rc = -EIO; // tar has printed the reason
    if (!to_output && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (!to_output && rc < 0)
        unlink(path);
    return rc;
}

int support_bundle_learn(struct support_bundle *bundle, const struct config *config)
{
    int rc = 0;
    bundle->secrets = calloc((size_t)config->n_cameras + 1, sizeof(struct secrets *));
    for (int i = 0; rc == 0 && i < config->n_cameras; i++) {
        rc = bundle->secrets ? secrets_open(&bundle->secrets[i], &config->cameras[i]) : -ENOMEM;
        bundle->n_secrets += rc == 0;
    }
    return bundle->secrets ? rc : -ENOMEM;
}

// Removes its files and the two folders.
void support_bundle_close(struct support_bundle *bundle)
{
    char path[PATH_MAX];
    for (int i = 0; i < bundle->n_secrets; i++)
        secrets_close(bundle->secrets[i]);
    free(bundle->secrets);
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
