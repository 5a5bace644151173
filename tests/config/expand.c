#include "config/expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static const struct {
    const char *text, *expanded; // NULL: an error with the message `why`
    const char *why;
} cases[] = {
    {"", "", NULL},
    {"plain }{", "plain }{", NULL},
    {"a$$b$$", "a$b$", NULL},
    {"$${SET}", "${SET}", NULL},
    {"${SET}", "value", NULL},
    {"<${SET}${SET}>", "<valuevalue>", NULL},
    {"${SET:-x}", "value", NULL},
    {"${SET:?x}", "value", NULL},
    {"${UNSET:-x y:-z}", "x y:-z", NULL},
    {"${UNSET:-}", "", NULL},
    {"${EMPTY}", "", NULL},
    {"${EMPTY:-x}", "x", NULL},
    {"${DOLLAR}", "${SET}", NULL},
    {"${CREDENTIAL}", "from file", NULL},
    {"${BOTH}", "file wins", NULL},
    {"${NEWLINES}", "two\n", NULL},
    {"${NO_NEWLINE}", "end", NULL},
    {"${LINE}", "one line", NULL},
    {"${LINES}", "two\n", NULL},
    {"${DOS}", "dos", NULL},
    {"${EMPTY_FILE:-x}", "x", NULL},
    {"${UNSET}", NULL, "UNSET is not set"},
    {"${UNSET:?say why}", NULL, "UNSET: say why"},
    {"${EMPTY:?say why}", NULL, "EMPTY: say why"},
    {"${UNSET:?such as\nrtsp://u:hunter2@h/}", NULL, "UNSET: such as?rtsp://"},
    {"$", NULL, "lone $"},
    {"a$b", NULL, "lone $"},
    {"${SET", NULL, "lone $"},
    {"${}", NULL, "without a name"},
    {"${1A}", NULL, "without a name"},
    {"${../SET}", NULL, "without a name"},
    {"${SET-x}", NULL, "malformed"},
    {"${SET:x}", NULL, "malformed"},
    {"${SET:}", NULL, "malformed"},
    {"${UNSET:-${SET}}", NULL, "inside another"},
    {"${FOLDER}", NULL, "credential FOLDER cannot be read"},
    {"${ZERO}", NULL, "credential ZERO is not a text"},
    {"${LONG}", NULL, "credential LONG is not a text"},
};

static const struct {
    const char *name, *text;
    size_t n;
} credentials[] = {
    {"CREDENTIAL", "from file\n", 10}, {"BOTH", "file wins\n", 10}, {"NEWLINES", "two\n\n", 5},
    {"NO_NEWLINE", "end", 3},          {"EMPTY_FILE", "", 0},       {"ZERO", "a\0b", 3}};

static void write_file(const char *folder, const char *name, const char *text, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(text, 1, n, f) == n, "%s", path);
    if (f)
        fclose(f);
}

static void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(!remove(path), "%s", path);
}

static void test_cases(void)
{
    char why[256], *expanded;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expanded = NULL;
        *why = 0;
        int status = expand(&expanded, cases[i].text, why, sizeof why);
        CHECK(!status == !!cases[i].expanded, "%s: %d (%s)", cases[i].text, status, why);
        if (cases[i].expanded)
            CHECK(expanded && !strcmp(expanded, cases[i].expanded), "%s: %s", cases[i].text,
                  expanded);
        else
            CHECK(!expanded && strstr(why, cases[i].why), "%s: %s", cases[i].text, why);
        free(expanded);
    }
}

static void test_length(void)
{
    char text[4098], why[256], *expanded = NULL;
    memset(text, 'x', sizeof text);
    text[4096] = 0;
    CHECK(!expand(&expanded, text, why, sizeof why) && strlen(expanded) == 4096, "4096 bytes");
    free(expanded);
    text[4096] = 'x';
    text[4097] = 0;
    CHECK(expand(&expanded, text, why, sizeof why) < 0 && strstr(why, "too long"), "4097 bytes");
}

// Expands the variable as the value of a key that may hold a secret.
static void keep(const char *name, const char *value)
{
    char text[64], why[256];
    struct expanded expanded = {0};
    setenv(name, value, 1);
    snprintf(text, sizeof text, "${%s}", name);
    CHECK(expand_for(&expanded, text, &(struct expand_options){.secret = true}, why, sizeof why) ==
              0,
          "%s: %s", name, why);
    secret_free(expanded.text);
}

static void test_hidden(const char *from, const char *wanted)
{
    char hidden[512];
    expand_hide(hidden, sizeof hidden, from, false);
    CHECK(!strcmp(hidden, wanted), "'%s': '%s', not '%s'", from, hidden, wanted);
}

static void test_hide_cut(void)
{
    keep("KEY", "Zorngiebel-by-the-river");
    test_hidden("at /Zorngiebel-by-the-river/x", "at /${KEY}/x");
    test_hidden("at /Zorngiebel-by-the-ri", "at /${KEY}");
    test_hidden("at /Zorngieb", "at /${KEY}");
    test_hidden("at /Zorngieb\nand more", "at /${KEY}\nand more");
    test_hidden("at /Zorngi", "at /Zorngi");
    test_hidden("at /Zorngiebel and more", "at /Zorngiebel and more");
    char hidden[8];
    CHECK(!strcmp(expand_hide(hidden, sizeof hidden, "Zorngiebel-by-the-river", false), "${KEY}"),
          "%s", hidden);
    CHECK(
        !strcmp(expand_hide(hidden, sizeof hidden, "at Zorngiebel-by-the-river", false), "at ${KE"),
        "%s", hidden);
}

static void test_hide_url(void)
{
    keep("CAMERA", "rtsp://viewer:Wetterhahn@10.1.2.3/gate/one?token=Dachreiter&n=12345#x");
    test_hidden("404 for /gate/one", "404 for ${CAMERA}");
    test_hidden("404 for /gate/one?token=Dachreiter&n=12345#x", "404 for ${CAMERA}");
    test_hidden("viewer:Wetterhahn is refused", "${CAMERA} is refused");
    test_hidden("Wetterhahn is refused", "${CAMERA} is refused");
    test_hidden("no Dachreiter here", "no ${CAMERA} here");
    test_hidden("viewer, 12345", "viewer, 12345");
}

static void test_hide_path(void)
{
    keep("SINK", "file:/srv/hayloft/%Y.raw");
    test_hidden("file:/srv/hayloft/%Y.raw", "${SINK}");
    test_hidden("cannot write /srv/hayloft/%Y.raw", "cannot write ${SINK}");
    test_hidden("its folder /srv/hayloft: No such file", "its folder ${SINK}: No such file");
    test_hidden("/srv/hayloft/2026.raw", "${SINK}/2026.raw");
    test_hidden("/srv/ha", "/srv/ha");
    keep("SOCKET", "unix:/run/x.sock");
    test_hidden("cannot listen on /run/x.sock in /run", "cannot listen on ${SOCKET} in /run");
}

static void test_hide_many(void)
{
    enum { VALUES = 5000 };
    char value[32];
    for (int i = 0; i < VALUES; i++) {
        snprintf(value, sizeof value, "<Giebel %d>", i);
        keep("MANY", value);
    }
    test_hidden("<Giebel 0> and <Giebel 4999>", "${MANY} and ${MANY}");
}

int main(void)
{
    char folder[] = "/tmp/framed-test-XXXXXX", path[64];
    static char large[5000];
    CHECK(mkdtemp(folder), "%s", folder);
    memset(large, 'x', sizeof large);
    for (size_t i = 0; i < sizeof credentials / sizeof *credentials; i++)
        write_file(folder, credentials[i].name, credentials[i].text, credentials[i].n);
    write_file(folder, "LONG", large, sizeof large);
    snprintf(path, sizeof path, "%s/FOLDER", folder);
    CHECK(!mkdir(path, 0700), "%s", path);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    setenv("SET", "value", 1);
    setenv("EMPTY", "", 1);
    setenv("DOLLAR", "${SET}", 1); // the value is not expanded again
    setenv("BOTH", "environment", 1);
    setenv("LINE", "one line\n", 1);
    setenv("LINES", "two\n\n", 1);
    setenv("DOS", "dos\r\n", 1);
    unsetenv("UNSET");
    TEST(test_cases());
    TEST(test_length());
    TEST(test_hide_cut());
    TEST(test_hide_url());
    TEST(test_hide_path());
    TEST(test_hide_many());
    for (size_t i = 0; i < sizeof credentials / sizeof *credentials; i++)
        remove_file(folder, credentials[i].name);
    remove_file(folder, "LONG");
    CHECK(!rmdir(path) && !rmdir(folder), "%s", folder);
    return test_end();
}
