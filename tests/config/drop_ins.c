// Drop-in files: what they add to a configuration, their order, and mistakes. Each mistake names
// its own file, line and column, however broken the other files are.
#include "config/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/schema.h"
#include "tests/test.h"

#define CAMERA "{url: x, outputs: {o: {sink: 'tcp:0'}}}"

// A folder with framed.yaml and framed.d/.
struct box {
    char folder[64], main[80], drop_ins[80];
    char *printed; // messages of the last load
    size_t size;
    struct config *config;
};

static void box_write(const struct box *box, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", box->folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

static void box_open(struct box *box, const char *text)
{
    *box = (struct box){.folder = "/tmp/framed-drop-ins-XXXXXX"};
    CHECK(mkdtemp(box->folder), "%s", box->folder);
    snprintf(box->main, sizeof box->main, "%s/framed.yaml", box->folder);
    snprintf(box->drop_ins, sizeof box->drop_ins, "%s/framed.d", box->folder);
    mkdir(box->drop_ins, 0700);
    box_write(box, "framed.yaml", text);
}

static int box_load(struct box *box, const struct config_load_options *options)
{
    free(box->printed);
    config_free(box->config);
    box->config = NULL;
    FILE *errors = open_memstream(&box->printed, &box->size);
    int status = config_load_with(&box->config, box->main, options, errors);
    fclose(errors);
    return status;
}

static int box_read(struct box *box)
{
    return box_load(box, &(struct config_load_options){0});
}

static void box_close(struct box *box)
{
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", box->folder);
    CHECK(system(command) == 0, "%s", command);
    free(box->printed);
    config_free(box->config);
}

// Checks the printed lines; each begins with the folder's path.
static void box_expect(const struct box *box, const char *const lines[], int n)
{
    const char *line = box->printed;
    for (int i = 0; i < n; i++) {
        size_t length = strlen(box->folder);
        const bool same = !strncmp(line, box->folder, length) &&
                          !strncmp(line + length, lines[i], strlen(lines[i]));
        CHECK(same, "'%s' and not '%s'", lines[i], line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    CHECK(!*line, "more: '%s'", line);
}

static void test_merged(void)
{
    struct box box;
    box_open(&box, "defaults: {slots: 9}\ncameras: {m: " CAMERA "}\n");
    box_write(&box, "framed.d/20-b.yaml", "cameras: {b: " CAMERA ", c: " CAMERA "}\n");
    box_write(&box, "framed.d/10-z.yaml",
              "cameras: {z: " CAMERA "}\nbatches: {all: {cameras: '*', sink: 'tcp:0'}}\n");
    box_write(&box, "framed.d/30-nothing.yaml", "# a comment\n");
    box_write(&box, "framed.d/.hidden.yaml", "a broken: [file\n");
    box_write(&box, "framed.d/40.yaml.new", "a broken: [file\n");
    CHECK(box_read(&box) == 0, "%s", box.printed);
    const struct config *config = box.config;
    CHECK(config && config->n_cameras == 4, "%d", config ? config->n_cameras : -1);
    static const char *const names[] = {"m", "z", "b", "c"};
    static const int files[] = {0, 1, 2, 2};
    for (int i = 0; config && i < config->n_cameras; i++) {
        const struct camera_config *camera = &config->cameras[i];
        CHECK(!strcmp(camera->name, names[i]) && camera->place.file == files[i], "%s of file %d",
              camera->name, camera->place.file);
        CHECK(camera->outputs[0].slots == 9, "defaults hold in drop-in files too: %d",
              camera->outputs[0].slots);
        CHECK(camera->n_outputs == 2, "the batch of a drop-in file has cameras of all files");
    }
    const char *path = config ? config_files_path(&config->files, config->cameras[2].place) : "";
    CHECK(strstr(path, "/framed.d/20-b.yaml"), "%s", path);
    box_close(&box);
}

static void test_mistakes(void)
{
    const char *const lines[] = {
        "/framed.yaml:2:20: cameras.m.fps: 'fast' ",
        "/framed.d/1.yaml:1:5: yaml: mapping values are",
        "/framed.d/2.yaml:3:3: cameras.m: has a name that is already given in ",
        "/framed.d/2.yaml:4:12: cameras.n.fps: 'slow' ",
        "/framed.d/2.yaml:6:1: log: cannot be set in a drop-in file (batches, cameras or paused)",
        "/framed.d/2.yaml:7:1: camera: unknown key (did you mean cameras?)",
        "/framed.d/3.yaml:1:1: yaml: cannot be read: it is not a file",
        geteuid() == 0 ? "/framed.d/4.yaml:1:1: yaml: cannot be read: it is a link, which root"
                       : "/framed.d/4.yaml:1:1: yaml: cannot be read: No such file or directory",
        "/framed.d/5.yaml:1:1: yaml: is not a mapping (key: value)",
    };
    struct box box;
    char path[160];
    box_open(&box, "cameras:\n  m: {url: x, fps: fast, outputs: {o: {sink: 'tcp:0'}}}\n");
    box_write(&box, "framed.d/1.yaml", "a: b: [\n");
    box_write(&box, "framed.d/2.yaml",
              "# the second\ncameras:\n  m: " CAMERA
              "\n  n: {fps: slow, url: x, outputs: {o: {sink: "
              "'tcp:0'}}}\n\nlog: {level: debug}\ncamera: 1\n");
    snprintf(path, sizeof path, "%s/3.yaml", box.drop_ins);
    CHECK(mkfifo(path, 0600) == 0, "a pipe whose writer never comes");
    snprintf(path, sizeof path, "%s/4.yaml", box.drop_ins);
    CHECK(symlink("/nowhere", path) == 0, "a link to nothing");
    box_write(&box, "framed.d/5.yaml", "[gate]\n");
    const int n = sizeof lines / sizeof *lines;
    CHECK(box_read(&box) == n, "%s", box.printed);
    box_expect(&box, lines, n);
    CHECK(strstr(box.printed, "framed.yaml:2:3 (each name once)"), "both places: %s", box.printed);
    box_close(&box);
}

// The owner of the folder cannot make root print a file that only root may read.
static void test_files_of_others(void)
{
    enum { OWNER = 31871, STRANGER = 31872 };
    const char *const lines[] = {
        "/framed.d/1.yaml:1:1: yaml: cannot be read: it is a link, which root does not follow here",
        "/framed.d/2.yaml:1:1: yaml: cannot be read: it belongs to another user",
        "/framed.d/3.yaml:1:1: yaml: cannot be read: it belongs to another user",
    };
    struct box box;
    char path[160], secret[160];
    box_open(&box, "cameras: {m: " CAMERA "}\n");
    if (geteuid() != 0) {
        SKIP("only root owns files of others");
        box_close(&box);
        return;
    }
    box_write(&box, "secret", "root:$6$Zorngiebel\n");
    snprintf(secret, sizeof secret, "%s/secret", box.folder);
    snprintf(path, sizeof path, "%s/1.yaml", box.drop_ins);
    CHECK(symlink(secret, path) == 0, "a link");
    snprintf(path, sizeof path, "%s/2.yaml", box.drop_ins);
    CHECK(link(secret, path) == 0, "a second name");
    box_write(&box, "framed.d/3.yaml", "root:$6$Zorngiebel\n");
    snprintf(path, sizeof path, "%s/3.yaml", box.drop_ins);
    CHECK(chown(path, STRANGER, STRANGER) == 0, "a stranger's file");
    box_write(&box, "framed.d/4.yaml", "cameras: {own: " CAMERA "}\n");
    snprintf(path, sizeof path, "%s/4.yaml", box.drop_ins);
    CHECK(chown(path, OWNER, OWNER) == 0, "the owner's file");
    box_write(&box, "framed.d/5.yaml", "cameras: {root: " CAMERA "}\n");
    CHECK(chown(box.drop_ins, OWNER, OWNER) == 0, "a folder of another user");
    CHECK(box_read(&box) == 3, "%s", box.printed);
    box_expect(&box, lines, 3);
    CHECK(!strstr(box.printed, "Zorn") && !strstr(box.printed, "$6$"), "%s", box.printed);
    box_close(&box);
}

static void test_folder(void)
{
    struct box box;
    box_open(&box, "log: {level: info}\n");
    CHECK(box_read(&box) == 1 && strstr(box.printed, "framed.yaml:1:1: cameras: is missing"), "%s",
          box.printed);
    box_write(&box, "framed.d/a.yaml", "cameras: {a: " CAMERA "}\n");
    CHECK(box_read(&box) == 0, "cameras of a drop-in file will do: %s", box.printed);
    const struct config_load_options only = {.only = "control"};
    box_write(&box, "framed.d/a.yaml", "cameras: [\n");
    CHECK(box_load(&box, &only) == 0, "who asks for one key reads no drop-in file: %s",
          box.printed);
    CHECK(box_read(&box) == 1, "a broken file alone is one mistake: %s", box.printed);
    char command[200];
    snprintf(command, sizeof command, "rm -r %s && touch %s", box.drop_ins, box.drop_ins);
    CHECK(system(command) == 0, "%s", command);
    CHECK(box_read(&box) > 0 && strstr(box.printed, "framed.d cannot be read: Not a directory"),
          "%s", box.printed);
    box_close(&box);
}

// A text assigned by a cluster contains its own camera only; references in it are not looked up.
static void test_assigned(void)
{
    static const struct {
        const char *text, *wrong; // NULL: no mistake
    } cases[] = {
        {"defaults: none\ncameras: {a: " CAMERA "}", NULL},
        {"cameras: {a: {url: 'rtsp://h/$${X}', outputs: {o: {sink: 'tcp:0'}}}}", NULL},
        {"cameras: {a: {url: 'rtsp://h/${ZORN}', outputs: {o: {sink: 'tcp:0'}}}}",
         "cameras.a.url: has a ${...}, which is not looked up"},
        {"cameras: {a: {url: x, fps: '${ZORN:-3}', outputs: {o: {sink: 'tcp:0'}}}}",
         "cameras.a.fps: has a ${...}"},
        {"cameras: {a: " CAMERA ", b: " CAMERA "}", "cameras.b: is another camera than the"},
        {"cameras: {a: " CAMERA "}\npaused: m", "paused: cannot be set by a cluster"},
        {"cameras: {a: " CAMERA "}\nbatches: {b: {cameras: m, sink: 'tcp:0'}}",
         "batches: cannot be set by a cluster"},
    };
    struct box box;
    char path[160];
    setenv("ZORN", "Zorngiebel", 1);
    box_open(&box, "cameras: {m: " CAMERA "}\n");
    snprintf(path, sizeof path, "%s/cluster-a.yaml", box.drop_ins);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct file_change list[] = {{.path = path, .text = cases[i].text, .assigned = "a"}};
        const struct file_changes changes = {list, 1};
        const int n = box_load(&box, &(struct config_load_options){.changes = &changes});
        CHECK(cases[i].wrong ? n == 1 && strstr(box.printed, cases[i].wrong) : n == 0, "%s: %d %s",
              cases[i].text, n, box.printed);
    }
    box_close(&box);
}

// A closed load only checks: references count as set, and no file is opened.
static void test_closed(void)
{
    struct box box;
    const struct config_load_options closed = {.closed = true};
    setenv("ZORN", "Zorngiebel", 1);
    box_open(&box, "http_token: '${NOWHERE_SET}'\n"
                   "cameras: {m: {url: '${NOWHERE_SET}', fps: '${NOWHERE_SET:-x}', outputs: {o: "
                   "{size: '${ZORN}', lut: /etc/passwd, roi: '${ZORN}', sink: 'tcp:0'}}}}\n");
    const int n = box_load(&box, &closed);
    CHECK(n <= 1 && !strstr(box.printed, "Zorn") && !strstr(box.printed, "lut"), "%d %s", n,
          box.printed);
    box_close(&box);
}

// Loads the configuration as it would be with changed files.
static void test_changes(void)
{
    struct box box;
    char a[160], b[160], other[160];
    box_open(&box, "cameras: {m: " CAMERA "}\n");
    box_write(&box, "framed.d/a.yaml", "cameras: {a: " CAMERA "}\n");
    snprintf(a, sizeof a, "%s/a.yaml", box.drop_ins);
    snprintf(b, sizeof b, "%s/b.yaml", box.drop_ins);
    snprintf(other, sizeof other, "%s/other.yaml", box.folder);
    struct file_change list[] = {{.path = b,
                                  .text = "\xef\xbb\xbf"
                                          "cameras:\n  b: " CAMERA},
                                 {.path = a},
                                 {.path = other, .text = "cameras: {x: " CAMERA "}"}};
    const struct file_changes changes = {list, 3};
    const struct config_load_options options = {.changes = &changes};
    CHECK(box_load(&box, &options) == 0 && box.config->n_cameras == 2 &&
              !strcmp(box.config->cameras[1].name, "b"),
          "a goes, b comes: %s", box.printed);
    list[1] = (struct file_change){.path = a, .text = "\ncameras: {a: {url: 1}}"};
    CHECK(box_load(&box, &options) == 1 && strstr(box.printed, "framed.d/a.yaml:2:11: cameras.a"),
          "%s", box.printed);
    list[1] = (struct file_change){.path = box.main, .text = "cameras: {n: " CAMERA "}\n"};
    CHECK(box_load(&box, &options) == 0 && box.config->n_cameras == 3 &&
              !strcmp(box.config->cameras[0].name, "n"),
          "the configuration itself can change: %s", box.printed);
    box_close(&box);
}

static void test_paused(void)
{
    struct box box;
    box_open(&box, "paused: ['g*', '!gap']\ncameras: {gate: " CAMERA ", gap: " CAMERA "}\n");
    box_write(&box, "framed.d/a.yaml", "cameras: {a: " CAMERA ", b: " CAMERA "}\n");
    box_write(&box, "framed.d/b.yaml", "\npaused: [b, long_gone]\n");
    CHECK(box_read(&box) == 0, "%s", box.printed);
    static const int lines[] = {1, 0, 0, 2};
    for (int i = 0; box.config && i < box.config->n_cameras; i++)
        CHECK(box.config->cameras[i].paused.line == lines[i], "%s: line %d",
              box.config->cameras[i].name, box.config->cameras[i].paused.line);
    box_write(&box, "framed.yaml", "cameras: {gate: " CAMERA "}\npaused: gat\n");
    CHECK(box_read(&box) == 1 && strstr(box.printed, "framed.yaml:2:9: paused: match no camera"),
          "%s", box.printed);
    box_close(&box);
}

static void test_names(void)
{
    static const char *const names[][2] = {{"/etc/framed/framed.yaml", "/etc/framed/framed.d"},
                                           {"yard.yaml", "yard.d"},
                                           {"/etc/framed.conf", "/etc/framed.conf.d"},
                                           {".yaml", ".yaml.d"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *folder = drop_ins_folder(names[i][0]);
        CHECK(folder && !strcmp(folder, names[i][1]), "%s: %s", names[i][0], folder);
        free(folder);
    }
}

// Removed keys and values are noted with their places, at any level; nothing else is printed.
static void test_gone(void)
{
    static const char *const texts[] = {
        "framed.d/10.yaml:2:21: cameras.b.outputs.l.sink: this value is gone since framed 0.2.0: "
        "the "
        "output is off (",
        "framed.d/10.yaml:1:55: cameras.b.outputs.k.gate.change: is gone since framed 0.2.0: "
        "ignored (",
        "framed.d/10.yaml:3:1: nats: is gone since framed 0.2.0: ignored (",
        "framed.yaml:3:15: batches.n.sink: this value is gone since framed 0.2.0: the output is "
        "off (",
        "framed.yaml:1:1: tuned: is gone since framed 0.1.0: ignored (",
        "framed.yaml:2:43: cameras.a.demuxer: is gone for an RTSP camera since framed 0.2.0: "
        "ignored (",
        "framed.yaml:2:58: cameras.a.options: is gone for an RTSP camera since framed 0.2.0: "
        "ignored (",
    };
    struct box box;
    setenv("FRAMED_TEST_SINK", "Nats://h/s", 1);
    box_open(
        &box,
        "tuned: [a, {b: c}]\n"
        "cameras: {a: {url: 'rtsp://h/x', demuxer: rtsp, options: {a: 1}, outputs: {o: {sink: "
        "'tcp:0'}}}}\n"
        "batches: {n: {sink: 'nats://h/s', cameras: [a]}, m: {sink: 'tcp:0', cameras: [a]}}\n");
    box_write(&box, "framed.d/10.yaml",
              "cameras: {b: {url: y, grid: 8x8, outputs: {k: {gate: {change: 4, every: 1s}, sink: "
              "'tcp:0'},\n"
              "                l: {sink: '${FRAMED_TEST_SINK}', mode: 0600}}}}\n"
              "nats: {user: 7}\n");
    CHECK(box_read(&box) == 0 && box.size == 0, "%s", box.printed);
    const struct config *config = box.config;
    const int n = config ? config->n_gone : 0;
    CHECK(n == 7, "%d are noted", n);
    for (int i = 0; i < n; i++) {
        char *text = gone_text(config, i);
        bool found = false;
        for (int j = 0; j < 7; j++)
            found |= strncmp(text + strlen(box.folder) + 1, texts[j], strlen(texts[j])) == 0;
        CHECK(found && gone_is_first(config, i) == (config->gone[i].gone->value == NULL || i == 3),
              "%s", text);
        free(text);
    }
    CHECK(config && config->n_batches == 1 && config->cameras[0].n_outputs == 2 &&
              config->cameras[1].n_outputs == 1 && !strcmp(config->cameras[1].outputs[0].name, "k"),
          "what is off");
    box_close(&box);
    unsetenv("FRAMED_TEST_SINK");
}

int main(void)
{
    TEST(test_names());
    TEST(test_merged());
    TEST(test_mistakes());
    TEST(test_files_of_others());
    TEST(test_folder());
    TEST(test_changes());
    TEST(test_assigned());
    TEST(test_closed());
    TEST(test_paused());
    TEST(test_gone());
    return test_end();
}
