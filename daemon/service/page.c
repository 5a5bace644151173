#include "daemon/service/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20 }; // of a file in the folder

// The files of daemon/service/page: label, name and type. make compresses each into NAME.gz, and
// hashes it into NAME.tag, a header's value.
#define FILES(FILE)                                                                                \
    FILE(index, "index.html", "text/html; charset=utf-8")                                          \
    FILE(icon, "icon.svg", "image/svg+xml")                                                        \
    FILE(style, "style.css", "text/css; charset=utf-8")                                            \
    FILE(api, "api.js", "text/javascript; charset=utf-8")                                          \
    FILE(app, "app.js", "text/javascript; charset=utf-8")                                          \
    FILE(camera, "camera.js", "text/javascript; charset=utf-8")                                    \
    FILE(chart, "chart.js", "text/javascript; charset=utf-8")                                      \
    FILE(cluster, "cluster.js", "text/javascript; charset=utf-8")                                  \
    FILE(code, "code.js", "text/javascript; charset=utf-8")                                        \
    FILE(commands, "commands.js", "text/javascript; charset=utf-8")                                \
    FILE(config, "config.js", "text/javascript; charset=utf-8")                                    \
    FILE(dom, "dom.js", "text/javascript; charset=utf-8")                                          \
    FILE(events, "events.js", "text/javascript; charset=utf-8")                                    \
    FILE(history, "history.js", "text/javascript; charset=utf-8")                                  \
    FILE(overview, "overview.js", "text/javascript; charset=utf-8")                                \
    FILE(picture, "picture.js", "text/javascript; charset=utf-8")                                  \
    FILE(status, "status.js", "text/javascript; charset=utf-8")                                    \
    FILE(view, "view.js", "text/javascript; charset=utf-8")                                        \
    FILE(wizard, "wizard.js", "text/javascript; charset=utf-8")                                    \
    FILE(words, "words.js", "text/javascript; charset=utf-8")

#define EMBED(label, name, type)                                                                   \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden page_" #label "\n.global page_" #label "\npage_" #label ":\n"                 \
            ".incbin \"" name ".gz\"\n"                                                            \
            ".hidden page_" #label "_tag\n.global page_" #label "_tag\npage_" #label "_tag:\n"     \
            ".incbin \"" name ".tag\"\n.byte 0\n"                                                  \
            ".popsection\n");                                                                      \
    extern const char page_##label[], page_##label##_tag[];
FILES(EMBED)

#define ROW(label, name, type) {name, type, page_##label, page_##label##_tag},
static const struct {
    const char *name, *type;
    const char *body, *tag; // the body ends where its tag begins
} files[] = {FILES(ROW)};

static int find_file(const char *name)
{
    const int n = sizeof files / sizeof files[0];
    int i = 0;
    while (i < n && strcmp(files[i].name, name) != 0)
        i++;
    return i < n ? i : -1;
}

// Returns 0 or a negative errno. Blocks the loop: for development only.
static int read_file(const char *folder, const char *name, struct http_page *page)
{
    char *path = NULL;
    FILE *file = asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : fopen(path, "r");
    int rc = file ? 0 : -errno;
    page->body = file ? malloc(FILE_BYTES_MAX) : NULL;
    if (page->body)
        page->size = fread(page->body, 1, FILE_BYTES_MAX, file);
    if (file)
        fclose(file);
    free(path);
    return rc;
}

void page_serve(void *opaque, struct http_exchange *exchange)
{
    const char *part = http_part(exchange, 0), *folder = getenv("FRAMED_WEB");
    const char *name = part && *part ? part : "index.html";
    const int i = find_file(name);
    (void)opaque;
    if (i < 0) {
        http_refuse(exchange, 404, "no such page");
        return;
    }
    struct http_page page = {
        .status = 200,
        .type = files[i].type,
        .body = (char *)files[i].body, // never written to
        .size = (size_t)(files[i].tag - files[i].body),
        .constant = true,
        .gzipped = true,
        .etag = files[i].tag,
    };
    if (folder && *folder) {
        page = (struct http_page){.status = 200, .type = files[i].type};
        int rc = read_file(folder, name, &page);
        if (rc < 0) {
            http_refuse(exchange, 404, "%s/%s: %s", folder, name, strerror(-rc));
            return;
        }
    }
    http_answer(exchange, &page);
}
