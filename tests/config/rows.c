// Every row of the schema, and its printed forms.
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "config/object.h"
#include "config/print.h"
#include "config/value.h"
#include "tests/test.h"

static const struct table *const tables[] = {&root_table, &camera_table, &output_table,
                                             &batch_table};

static char *printed(void print(FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    print(f);
    fclose(f);
    return text;
}

static void test_row(const struct table *table, const struct config_row *row)
{
    char allowed[256];
    CHECK(row->help && *row->help, "%s has no help", row->key);
    CHECK(strlen(row_allowed(row, allowed, sizeof allowed)) < sizeof allowed - 1 && *allowed,
          "%s: '%s'", row->key, allowed);
    CHECK(table_find(table, row->key) == row, "%s stands twice", row->key);
    CHECK(row->offset < table->size, "%s", row->key);
    CHECK(row->min <= row->max, "%s", row->key);
    CHECK(!row->own || table != &root_table, "%s", row->key);
    CHECK((row->type == VALUE_CHOICE) == (row->choices != NULL), "%s", row->key);
    if (row_has_value(row))
        CHECK(row->text || row->example, "%s has neither default nor example", row->key);
}

static void test_default(const struct table *table, const struct config_row *row)
{
    static max_align_t object[1024];
    const char *wrong = "";
    memset(object, 0, table->size);
    if (row->text)
        CHECK(!value_parse(row, object, &row->text, 1, &wrong), "%s: %s %s", row->key, row->text,
              wrong);
    object_free(table, object);
}

static void test_printed_keys(const struct table *table, const char *defaults, const char *schema,
                              const char *keys)
{
    char text[128];
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        snprintf(text, sizeof text, "%s:", row_word(row));
        CHECK(strstr(defaults, text), "%s is not among the defaults", row->key);
        snprintf(text, sizeof text, "\"%s\": {", row_word(row));
        CHECK(strstr(schema, text), "%s is not in the JSON schema", row->key);
        snprintf(text, sizeof text, "| `%s`", row->key);
        CHECK(row->type == VALUE_SECTION || strstr(keys, text), "%s is not in the table", row->key);
    }
}

static void compare(const struct table *table, void *a, void *b)
{
    for (int i = 0; i < table->n; i++) {
        const struct config_row *row = &table->rows[i];
        if (row_has_value(row))
            CHECK(value_equal(row, a, b), "%s", row->key);
    }
}

// A configuration that sets every default equals one that sets none.
static void test_defaults_say_the_defaults(const char *defaults)
{
    static const char none[] =
        "{cameras: {gate: {url: 'rtsp://192.0.2.10/stream1', outputs: {"
        "detector: {sink: 'unix:/run/framed/gate-detector.sock'},"
        "archive: {kernel: yuv, sink: 'file:/var/lib/framed/gate.y4m'},"
        "recording: {kernel: copy, sink: "
        "'file:/var/lib/framed/gate-%Y%m%d-%H%M%S.mp4'},"
        "scene: {kernel: stats, sink: 'unix:/run/framed/gate-scene.sock'}}}},"
        "batches: {detectors: {cameras: ['gate*', 'yard-?', '!yard-9'],"
        "sink: 'ring:/run/framed/detectors.ring'}}}";
    struct config *a = NULL, *b = NULL;
    CHECK(!config_load_text(&a, defaults, strlen(defaults), "defaults", stderr), "defaults");
    CHECK(!config_load_text(&b, none, strlen(none), "none", stderr), "none");
    if (a && b) {
        CHECK(a->n_cameras == 1 && a->cameras->n_outputs == 5 && a->n_batches == 1, "%d cameras",
              a->n_cameras);
        compare(&root_table, a, b);
        compare(&camera_table, a->cameras, b->cameras);
        for (int i = 0; i < a->cameras->n_outputs; i++)
            compare(&output_table, &a->cameras->outputs[i], &b->cameras->outputs[i]);
        compare(&batch_table, a->batches, b->batches);
    }
    config_free(a);
    config_free(b);
}

static void test_example_is_generated(const char *defaults)
{
    char *text = calloc(1, 1 << 16);
    FILE *f = fopen("config/framed.yaml", "r");
    CHECK(f, "config/framed.yaml; run from the top of the repository");
    if (f) {
        CHECK(fread(text, 1, (1 << 16) - 1, f) > 0 && !strcmp(text, defaults),
              "config/framed.yaml is not what `framed defaults` prints");
        fclose(f);
    }
    free(text);
}

int main(void)
{
    char *defaults = printed(config_print_defaults);
    char *schema = printed(config_print_schema), *keys = printed(config_print_keys);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (int i = 0; i < tables[t]->n; i++) {
            TEST(test_row(tables[t], &tables[t]->rows[i]));
            TEST(test_default(tables[t], &tables[t]->rows[i]));
        }
        TEST(test_printed_keys(tables[t], defaults, schema, keys));
    }
    TEST(test_defaults_say_the_defaults(defaults));
    TEST(test_example_is_generated(defaults));
    free(defaults);
    free(schema);
    free(keys);
    return test_end();
}
