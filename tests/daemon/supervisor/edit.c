// Changes of cameras as files: the text written, the time of the switch, leftovers of an
// interrupted change, and changes that are refused in the running configuration.
#include "daemon/supervisor/edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "daemon/service/routes.h"

#include "tests/test.h"

#define OUTPUTS "\"outputs\": {\"o\": {\"sink\": \"tcp:0\"}}"
#define CAMERA  "{\"url\": \"x\", " OUTPUTS "}"

static char folder[64], file[80];
static char why[256];

static void write_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

static bool is_there(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/framed.d/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct edit *open_edit(enum edit_kind kind, const char *camera, const char *json)
{
    struct edit *edit = NULL;
    CHECK(edit_open(&edit, kind, camera, file, json) == 0, "%s", camera);
    return edit;
}

static struct config *load(void)
{
    struct config *config = NULL;
    CHECK(config_load(&config, file, stderr) == 0, "%s", file);
    return config;
}

// Checks the change with edit_check, then makes it.
static int change(enum edit_kind kind, const char *camera)
{
    struct config *config = load();
    struct edit *edit = open_edit(kind, camera, CAMERA);
    const int rc = edit_check(edit, config, why, sizeof why);
    if (rc == 0) {
        CHECK(edit_write(edit, why, sizeof why) == 0, "%s", why);
        CHECK(edit_commit(edit, why, sizeof why) == 0, "%s", why);
        edit_sync(edit);
    }
    edit_close(edit);
    config_free(config);
    return rc;
}

static void test_changes(void)
{
    write_file("framed.yaml", "cameras:\n  m: {url: x, outputs: {o: {sink: 'tcp:0'}}}\n");
    CHECK(change(EDIT_PUT, "gate") == 0 && is_there("api-gate.yaml"), "%s", why);
    CHECK(change(EDIT_PUT, "gate") == 0, "again: %s", why);
    CHECK(change(EDIT_PAUSE, "gate") == 0 && is_there("paused-gate.yaml"), "%s", why);
    CHECK(change(EDIT_PAUSE, "gate") == -EALREADY, "%s", why);
    CHECK(change(EDIT_RESUME, "gate") == 0 && !is_there("paused-gate.yaml"), "%s", why);
    CHECK(change(EDIT_RESUME, "gate") == -EALREADY, "%s", why);
    CHECK(change(EDIT_PAUSE, "m") == 0, "of a camera in another file: %s", why);
    CHECK(change(EDIT_PUT, "m") == -EEXIST && strstr(why, "framed.yaml:2:3,"), "%s", why);
    CHECK(change(EDIT_DELETE, "m") == -EEXIST && strstr(why, "framed.yaml:2:3,"), "%s", why);
    CHECK(change(EDIT_RESUME, "m") == 0, "%s", why);
    for (enum edit_kind kind = EDIT_DELETE; kind <= EDIT_RESUME; kind++)
        CHECK(change(kind, "door") == -ENOENT && !strcmp(why, "there is no camera door"), "%s",
              why);
    CHECK(change(EDIT_PAUSE, "gate") == 0 && change(EDIT_DELETE, "gate") == 0, "%s", why);
    CHECK(!is_there("api-gate.yaml") && !is_there("paused-gate.yaml"), "both files go");
    write_file("framed.d/paused-gate.yaml", "paused: gate\n");
    CHECK(change(EDIT_PUT, "gate") == 0 && !is_there("paused-gate.yaml"),
          "a new camera is not paused by what another has left");
    write_file("framed.d/mine.yaml", "\npaused: [gate]\n");
    CHECK(change(EDIT_RESUME, "gate") == -EEXIST && strstr(why, "framed.d/mine.yaml:2:9,"), "%s",
          why);
    char command[160];
    snprintf(command, sizeof command, "rm -r %s/framed.d", folder);
    CHECK(system(command) == 0, "%s", command);
}

static void test_steps(void)
{
    struct stat st;
    char path[160];
    write_file("framed.yaml", "http_write: true\n");
    struct edit *edit = open_edit(EDIT_PUT, "gate", CAMERA);
    CHECK(edit_write(edit, why, sizeof why) == 0 && !is_there("api-gate.yaml"), "%s", why);
    CHECK(is_there(".api-gate.yaml"), "the draft");
    edit_abandon(edit);
    CHECK(!is_there(".api-gate.yaml"), "abandoned");
    CHECK(edit_write(edit, why, sizeof why) == 0, "%s", why);
    write_file("framed.d/.mine.yaml", "");
    edit_clean(file);
    CHECK(!is_there(".api-gate.yaml") && is_there(".mine.yaml"), "cleaned, and nobody else's");
    CHECK(edit_commit(edit, why, sizeof why) == -ENOENT, "%s", why);
    CHECK(edit_write(edit, why, sizeof why) == 0 && edit_commit(edit, why, sizeof why) == 0, "%s",
          why);
    snprintf(path, sizeof path, "%s/framed.d/api-gate.yaml", folder);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "%o", st.st_mode);
    edit_close(edit);
    char command[256];
    snprintf(command, sizeof command, "rm -r %s/framed.d && touch %s/framed.d", folder, folder);
    CHECK(system(command) == 0, "%s", command);
    edit = open_edit(EDIT_PAUSE, "gate", NULL);
    CHECK(edit_write(edit, why, sizeof why) == -ENOTDIR && strstr(why, "Not a directory"), "%s",
          why);
    edit_close(edit);
}

static void test_names(void)
{
    static const char *const wrong[] = {"", "a.b", "../a", "a/b", "123456789012345678901234", "ä"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(edit_name_wrong(wrong[i]), "'%s'", wrong[i]);
    CHECK(!edit_name_wrong("Gate_1-2") && !edit_name_wrong("12345678901234567890123"), "good ones");
}

static void test_bodies(void)
{
    static const struct {
        const char *body, *yaml;
    } cases[] = {
        {"{\"a\": \"\\ud83d\\ude00\\u00e4\\/\"}", "{\"a\": \"\\U0001f600\\u00e4\\/\"}"},
        {"{\"a\": \"\\\\ud83d\\\\ude00\"}", "{\"a\": \"\\\\ud83d\\\\ude00\"}"}, // not an escape
        {"{\n}", "{\n}"},
        {"{}}", NULL},
        {"[]", NULL},
        {"{\"a\": 1, \"\\u0061\": 2}", NULL},
        {"{\"a\": \"\\ud83d\"}", NULL},
        {"{\"a\": \"\\u0000\"}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *yaml = NULL;
        const char *body = cases[i].body;
        const int rc = camera_body_yaml(&yaml, body, strlen(body), true, why, sizeof why);
        CHECK((rc == 0) == (cases[i].yaml != NULL), "%s: %d %s", body, rc, why);
        CHECK(rc < 0 || !strcmp(yaml, cases[i].yaml), "%s: %s", body, yaml);
        free(yaml);
    }
    static const char dollars[] = "{\"a\": \"$\\u0024{X}\\\\u0024\"}";
    char *literal = NULL, *expands = NULL;
    CHECK(camera_body_yaml(&literal, dollars, strlen(dollars), false, why, sizeof why) == 0 &&
              !strcmp(literal, "{\"a\": \"$$$${X}\\\\u0024\"}"),
          "%s", literal);
    CHECK(camera_body_yaml(&expands, dollars, strlen(dollars), true, why, sizeof why) == 0 &&
              !strcmp(expands, dollars),
          "%s", expands);
    free(literal);
    free(expands);
}

int main(void)
{
    strcpy(folder, "/tmp/framed-edit-XXXXXX");
    CHECK(mkdtemp(folder), "%s", folder);
    snprintf(file, sizeof file, "%s/framed.yaml", folder);
    TEST(test_names());
    TEST(test_bodies());
    TEST(test_changes());
    TEST(test_steps());
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s", command);
    return test_end();
}
