#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/address.h"
#include "config/file.h"
#include "config/reader.h"

static void read_control(struct reader *r, struct config *config)
{
    const struct row *row = table_find(&root_table, "control");
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root || !(root = reader_mapping(r, 1, NULL)))
        return;
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    for (; pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = reader_node(r, pair->key);
        if (key->type != YAML_SCALAR_NODE ||
            strcmp((const char *)key->data.scalar.value, row->key) != 0)
            continue;
        size_t path = reader_enter(r, row->key);
        reader_value(r, pair->value, row, config);
        reader_leave(r, path);
    }
}

static int read_text(struct reader *r, const char *text, size_t length, struct config *config)
{
    int status = document_parse(&r->document, text, length, &r->mistakes);
    if (status < 0)
        return status;
    read_control(r, config);
    yaml_document_delete(&r->document);
    return r->no_memory ? -ENOMEM : 0;
}

int config_load_control(struct control_address *ret, const char *path, FILE *errors)
{
    struct config config = {0};
    char *text = NULL;
    size_t length = 0;
    int status = file_read(&text, &length, path, errors);
    if (status < 0)
        return status;
    struct reader *r = calloc(1, sizeof *r);
    status = r ? read_text(r, text, length, &config) : -ENOMEM;
    if (status == -ENOMEM) {
        fprintf(errors, "%s: %s\n", file_name(path), strerror(ENOMEM));
    } else {
        mistakes_print(&r->mistakes, file_name(path), errors);
        status = r->mistakes.total;
    }
    if (r)
        mistakes_free(&r->mistakes);
    free(r);
    free(text);
    if (status == 0)
        *ret = config.control;
    else
        config_free_control(&config.control);
    return status;
}

void config_free_control(struct control_address *control)
{
    address_free(&control->at);
}
