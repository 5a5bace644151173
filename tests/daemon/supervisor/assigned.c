// Cameras assigned by a cluster: the texts that are read beside the files, the cameras of a
// configuration that come from them, and the effect of edits.
#include "daemon/supervisor/edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/load.h"

#include "tests/test.h"

#define OUTPUTS "outputs: {o: {sink: 'tcp:0'}}"

static char folder[64], file[80];
static _Atomic int64_t fences[2] = {1, 2};

static struct edit *open_edit(enum edit_kind kind, const char *camera, const char *text)
{
    struct edit *edit = NULL;
    CHECK(edit_open(&edit, kind, camera, file, text) == 0, "%s", camera);
    return edit;
}

// `url` is of the camera in its text.
static struct edit *assign(const char *camera, const char *url, uint32_t generation)
{
    char text[256];
    snprintf(text, sizeof text, "cameras: {%s: {url: %s, " OUTPUTS "}}\n", camera, url);
    struct edit *edit = open_edit(EDIT_ASSIGN, camera, text);
    edit->generation = generation;
    edit->fence_ns = &fences[generation % 2];
    return edit;
}

// Commits the edit, and closes it.
static void commit(struct assigned *assigned, struct edit *edit)
{
    CHECK(assigned_prepare(assigned, 1) == 0, "no memory");
    assigned_commit(assigned, &edit, 1);
    edit_close(edit);
}

// Loads as a reload does, with the edits. Returns assigned_mark's result.
static int load(struct assigned *assigned, struct edit *const edits[], int n, struct config **ret,
                char **errors)
{
    struct file_changes changes;
    size_t size;
    FILE *stream = open_memstream(errors, &size);
    CHECK(assigned_changes(assigned, edits, n, &changes) == 0, "no memory");
    CHECK(config_load_with(ret, file, &(struct config_load_options){.changes = &changes}, stream) ==
              0,
          "%s", file);
    const int mistakes = *ret ? assigned_mark(assigned, edits, n, *ret, stream) : -1;
    free((void *)changes.list);
    fclose(stream);
    return mistakes;
}

static const struct camera_config *find(const struct config *config, const char *camera)
{
    for (int i = 0; i < config->n_cameras; i++)
        if (strcmp(config->cameras[i].name, camera) == 0)
            return &config->cameras[i];
    return NULL;
}

// Checks that the configuration with the edits has the camera with this URL, generation and fence;
// `url` NULL: that it has no such camera.
static void check(struct assigned *assigned, struct edit *const edits[], int n, const char *camera,
                  const char *url, uint32_t generation)
{
    struct config *config = NULL;
    char *errors;
    CHECK(load(assigned, edits, n, &config, &errors) == 0, "%s", errors);
    const struct camera_config *found = config ? find(config, camera) : NULL;
    CHECK(!found == !url, "%s", camera);
    if (found && url) {
        CHECK(strcmp(found->url, url) == 0, "%s: %s", camera, found->url);
        CHECK(found->generation == generation, "%s: %u", camera, found->generation);
        CHECK(found->fence_ns == (generation ? &fences[generation % 2] : NULL), "%s", camera);
    }
    free(errors);
    config_free(config);
}

// A pending edit shows only in the configuration that includes it.
static void test_assign(void)
{
    struct assigned assigned = {0};
    struct edit *edit = assign("gate", "one", 3);
    check(&assigned, NULL, 0, "gate", NULL, 0);
    check(&assigned, &edit, 1, "gate", "one", 3);
    check(&assigned, &edit, 1, "own", "x", 0);
    check(&assigned, NULL, 0, "gate", NULL, 0);
    commit(&assigned, edit);
    check(&assigned, NULL, 0, "gate", "one", 3);
    check(&assigned, NULL, 0, "own", "x", 0);
    edit = assign("gate", "two", 4);
    check(&assigned, &edit, 1, "gate", "two", 4);
    check(&assigned, NULL, 0, "gate", "one", 3);
    commit(&assigned, edit);
    check(&assigned, NULL, 0, "gate", "two", 4);
    CHECK(assigned.n == 1, "%d", assigned.n);
    assigned_free(&assigned);
}

static void test_unassign(void)
{
    struct assigned assigned = {0};
    commit(&assigned, assign("gate", "one", 1));
    commit(&assigned, assign("yard", "two", 2));
    commit(&assigned, assign("hall", "three", 3));
    struct edit *edit = open_edit(EDIT_UNASSIGN, "gate", NULL);
    check(&assigned, &edit, 1, "gate", NULL, 0);
    check(&assigned, &edit, 1, "yard", "two", 2);
    check(&assigned, NULL, 0, "gate", "one", 1);
    commit(&assigned, edit);
    check(&assigned, NULL, 0, "gate", NULL, 0);
    check(&assigned, NULL, 0, "yard", "two", 2);
    check(&assigned, NULL, 0, "hall", "three", 3);
    commit(&assigned, open_edit(EDIT_UNASSIGN, "gate", NULL)); // not one of its cameras
    CHECK(assigned.n == 2, "%d", assigned.n);
    assigned_free(&assigned);
}

// Edits of other cameras, by the cluster or in files, leave it unchanged.
static void test_several(void)
{
    struct assigned assigned = {0};
    commit(&assigned, assign("gate", "one", 1));
    struct edit *edits[] = {
        assign("yard", "two", 2),
        open_edit(EDIT_PUT, "hall",
                  "{\"url\": \"three\", \"outputs\": {\"o\": {\"sink\": \"tcp:0\"}}}"),
        open_edit(EDIT_UNASSIGN, "gate", NULL),
    };
    check(&assigned, edits, 2, "gate", "one", 1);
    check(&assigned, edits, 2, "yard", "two", 2);
    check(&assigned, edits, 2, "hall", "three", 0);
    check(&assigned, edits, 3, "gate", NULL, 0);
    CHECK(assigned_prepare(&assigned, 3) == 0, "no memory");
    assigned_commit(&assigned, edits, 3);
    CHECK(edit_path(edits[1]) && assigned.n == 1, "%d", assigned.n);
    check(&assigned, NULL, 0, "yard", "two", 2);
    check(&assigned, NULL, 0, "hall", NULL, 0); // it is in a file, if it was written
    for (int i = 0; i < 3; i++)
        edit_close(edits[i]);
    assigned_free(&assigned);
}

// A text without its camera is refused with its place; the texts beside it are not.
static void test_other_text(void)
{
    struct assigned assigned = {0};
    struct config *config = NULL;
    struct file_changes changes;
    char *errors;
    size_t size;
    FILE *stream = open_memstream(&errors, &size);
    struct edit *edits[] = {
        assign("gate", "one", 1),
        open_edit(EDIT_ASSIGN, "yard", "cameras: {hall: {url: x, " OUTPUTS "}}\n"),
        open_edit(EDIT_ASSIGN, "own",
                  "cameras: {door: {url: x, " OUTPUTS "}}\n"), // own is in a file
    };
    CHECK(assigned_changes(&assigned, edits, 3, &changes) == 0, "no memory");
    CHECK(config_load_with(&config, file, &(struct config_load_options){.changes = &changes},
                           stream) == 2,
          "texts of other cameras are taken");
    fclose(stream);
    free((void *)changes.list);
    CHECK(!strstr(errors, "gate") && strstr(errors, "cluster-yard.yaml:1:11: cameras.hall: ") &&
              strstr(errors, "cluster-own.yaml:1:11: cameras.door: "),
          "%s", errors);
    free(errors);
    config_free(config);
    for (int i = 0; i < 3; i++)
        edit_close(edits[i]);
    assigned_free(&assigned);
}

int main(void)
{
    strcpy(folder, "/tmp/framed-assigned-XXXXXX");
    CHECK(mkdtemp(folder), "%s", folder);
    snprintf(file, sizeof file, "%s/framed.yaml", folder);
    FILE *f = fopen(file, "w");
    CHECK(f && fputs("cameras: {own: {url: x, " OUTPUTS "}}\n", f) >= 0 && fclose(f) == 0, "%s",
          file);
    TEST(test_assign());
    TEST(test_unassign());
    TEST(test_several());
    TEST(test_other_text());
    CHECK(unlink(file) == 0 && rmdir(folder) == 0, "%s", folder);
    return test_end();
}
