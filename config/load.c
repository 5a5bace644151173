#include "config/load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/check.h"
#include "config/object.h"
#include "config/reader.h"
#include "config/schema.h"
#include "config/url.h"
#include "config/value.h"

// --- texts of files

enum { FILE_MAX = 1 << 20 }; // bytes

const char *file_name(const char *path)
{
    return strcmp(path, FILE_STDIN) ? path : "stdin";
}

// Reads all of `f`, at most FILE_MAX bytes; the caller frees *ret.
static int read_stream(FILE *f, char **ret, size_t *length)
{
    char *text = malloc(FILE_MAX + 1);
    if (!text)
        return -ENOMEM;
    *length = fread(text, 1, FILE_MAX + 1, f);
    int status = ferror(f) ? -errno : *length > FILE_MAX ? -EFBIG : 0;
    if (status < 0)
        free(text);
    else
        *ret = text;
    return status;
}

// Returns true if the file is the folder owner's, or root's with a single name. A second name of
// root's file may be a hard link that the folder's owner made.
static bool is_for_root(const struct stat *st, const char *path)
{
    struct stat folder;
    char *name = strdup(path);
    bool good = name && stat(dirname(name), &folder) == 0 &&
                (st->st_uid == folder.st_uid || (st->st_uid == 0 && st->st_nlink == 1));
    free(name);
    return good;
}

// Reads a file in a folder that another user may write to. Does not wait for a pipe. As root,
// follows no link there, and reads only files of root and of the folder's owner. Returns 0 with
// *ret to be freed, or a negative errno: -ENOTSUP: not a regular file; -ELOOP: a link; -EPERM:
// another user's file.
static int file_read_in_folder(char **ret, size_t *length, const char *path)
{
    const bool root = geteuid() == 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (root ? O_NOFOLLOW : 0));
    struct stat st;
    int status = fd < 0 || fstat(fd, &st) < 0      ? -errno
                 : !S_ISREG(st.st_mode)            ? -ENOTSUP
                 : root && !is_for_root(&st, path) ? -EPERM
                                                   : 0;
    FILE *f = status == 0 ? fdopen(fd, "r") : NULL;
    if (status == 0)
        status = f ? read_stream(f, ret, length) : -errno;
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return status;
}

// Reads the whole file; the caller frees *ret. FILE_STDIN is standard input. 0 or negative errno.
static int file_read(char **ret, size_t *length, const char *path)
{
    bool input = !strcmp(path, FILE_STDIN);
    FILE *f = input ? stdin : fopen(path, "re");
    int status = f ? read_stream(f, ret, length) : -errno;
    if (f && !input)
        fclose(f);
    return status;
}

// --- drop-in files

#define SUFFIX ".yaml"

static size_t stem_length(const char *name)
{
    const size_t n = strlen(name), suffix = strlen(SUFFIX);
    return n > suffix && strcmp(name + n - suffix, SUFFIX) == 0 ? n - suffix : n;
}

char *drop_ins_folder(const char *file)
{
    char *folder;
    return asprintf(&folder, "%.*s.d", (int)stem_length(file), file) < 0 ? NULL : folder;
}

static bool is_drop_in(const char *name)
{
    return *name != '.' && name[stem_length(name)] == '.';
}

// Returns NULL if the file does not change. `changes` may be NULL.
static const struct file_change *file_changes_find(const struct file_changes *changes,
                                                   const char *path)
{
    for (int i = 0; changes && i < changes->n; i++)
        if (strcmp(changes->list[i].path, path) == 0)
            return &changes->list[i];
    return NULL;
}

static bool has_path(const struct config_files *files, int from, const char *path)
{
    for (int i = from; i < files->n; i++)
        if (strcmp(files->path[i], path) == 0)
            return true;
    return false;
}

static int add_present(struct config_files *files, DIR *dir, const char *folder,
                       const struct file_changes *changes)
{
    int rc = 0;
    errno = 0;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(dir)); errno = 0) {
        char *path;
        if (!is_drop_in(entry->d_name))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            return -ENOMEM;
        const struct file_change *change = file_changes_find(changes, path);
        if (!change || change->text)
            rc = config_files_add(files, path);
        free(path);
    }
    return rc < 0 ? rc : -errno;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Appends the paths of the drop-in files in `folder` to `files`, with `changes` applied (NULL:
// none). A missing folder has no files. Returns 0 or a negative errno.
static int drop_ins_list(struct config_files *files, const char *folder,
                         const struct file_changes *changes)
{
    const int before = files->n;
    const size_t length = strlen(folder);
    DIR *dir = opendir(folder);
    int rc = dir ? add_present(files, dir, folder, changes) : errno == ENOENT ? 0 : -errno;
    if (dir)
        closedir(dir);
    for (int i = 0; rc == 0 && changes && i < changes->n; i++) {
        const struct file_change *change = &changes->list[i];
        if (change->text && strncmp(change->path, folder, length) == 0 &&
            change->path[length] == '/' && !has_path(files, before, change->path))
            rc = config_files_add(files, change->path);
    }
    qsort(files->path + before, (size_t)(files->n - before), sizeof *files->path, compare_paths);
    return rc;
}

// --- the configuration itself

// State while the files of one configuration are loaded.
struct load {
    struct loader loader;
    const struct config_load_options *options;
    struct pauses pauses;
    bool cameras_given; // some file has the key, right or wrong
};

enum { DEFAULTS_DEPTH = 8 };

// Returns the approximate bytes of memory of a node's values, up to `most`. Values are nested less
// deeply than `depth`, which also ends the recursion into a node that contains itself.
static long count_node_bytes(struct reader *r, int index, int depth, long most)
{
    enum { OF_NODE = 32 };
    const yaml_node_t *node = reader_node(r, index);
    long n = OF_NODE;
    if (node->type == YAML_SCALAR_NODE)
        n += (long)node->data.scalar.length;
    if (node->type == YAML_SEQUENCE_NODE && depth > 0)
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             n < most && item < node->data.sequence.items.top; item++)
            n += count_node_bytes(r, *item, depth - 1, most - n);
    if (node->type == YAML_MAPPING_NODE && depth > 0)
        for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             n < most && pair < node->data.mapping.pairs.top; pair++)
            n += count_node_bytes(r, pair->value, depth - 1, most - n);
    return n;
}

static void read_defaults(struct loader *l, int index, const struct config_row *row)
{
    // The camera comes first: a key that both have means the camera's.
    struct target targets[] = {{.table = &camera_table, .object = &l->camera},
                               {.table = &output_table, .object = &l->output}};
    struct mapping m = {.targets = targets, .n = 2, .defaults = true};
    if (mapping_is_word(l, index, row))
        return;
    const yaml_node_t *node = reader_mapping(&l->reader, index, row);
    if (node)
        mapping_read(l, node, &m, "");
    l->default_bytes = count_node_bytes(&l->reader, index, DEFAULTS_DEPTH, COPIED_BYTES_MAX + 1);
    preset_apply(&l->output, targets[1].given);
}

static void read_one(struct loader *l, int index, const struct config_row *row)
{
    struct target target = {.table = &root_table, .object = l->config};
    struct mapping m = {.targets = &target, .n = 1};
    if (row->type != VALUE_SECTION) {
        if (reader_value(&l->reader, index, row, l->config))
            free(l->reader.written);
        return;
    }
    const yaml_node_t *node = reader_mapping(&l->reader, index, row);
    if (node)
        mapping_read(l, node, &m, row->key);
    if (node)
        check_cluster(&l->reader.mistakes, l->config, target.given);
}

// Reads one key of the root. Mistakes elsewhere do not count, so no other key is read.
static void read_only(struct loader *l, const char *key)
{
    const struct config_row *row = table_find(&root_table, key);
    const yaml_node_t *root = yaml_document_get_root_node(&l->reader.document);
    if (!root || !(root = reader_mapping(&l->reader, 1, NULL)))
        return;
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    for (; pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *node = reader_node(&l->reader, pair->key);
        if (node->type != YAML_SCALAR_NODE || strcmp((const char *)node->data.scalar.value, key))
            continue;
        size_t path = reader_enter(&l->reader, key);
        read_one(l, pair->value, row);
        reader_leave(&l->reader, path);
    }
}

// Reads one file's part of the rows whose values add up over the files.
static void read_shared(struct load *load, const struct target *target)
{
    struct loader *l = &load->loader;
    const struct config *object = target->object;
    for (int i = 0; i < root_table.n; i++) {
        const struct config_row *row = &root_table.rows[i];
        const struct given *given = &target->given[i];
        if (!given->key.line)
            continue;
        size_t path = reader_enter(&l->reader, row->key);
        if (row->type == VALUE_ITEMS)
            mapping_read_items(l, row, given->node, l->config,
                               table_is_of_outputs(row->items) ? (void *)&l->output
                                                               : (void *)&l->camera);
        if (row->type == VALUE_NAME_PATTERNS && !given->wrong &&
            pauses_add(&load->pauses, &object->paused, given->value) < 0)
            l->reader.no_memory = true;
        load->cameras_given |= row->type == VALUE_ITEMS && row->items == &camera_table;
        reader_leave(&l->reader, path);
    }
}

// Fills the target. Returns false if the document has no mapping.
static bool read_keys(struct loader *l, struct target *target, bool drop_in)
{
    struct mapping m = {.targets = target, .n = 1, .drop_in = drop_in};
    const yaml_node_t *root = yaml_document_get_root_node(&l->reader.document);
    if (root)
        root = reader_mapping(&l->reader, 1, NULL);
    if (root)
        mapping_read(l, root, &m, "");
    return root;
}

// --- its files

static int read_text(char **ret, size_t *length, const char *path,
                     const struct file_changes *changes)
{
    const struct file_change *change = file_changes_find(changes, path);
    if (!change)
        return file_read_in_folder(ret, length, path);
    *ret = strdup(change->text);
    *length = strlen(change->text);
    return *ret ? 0 : -ENOMEM;
}

// Same as read_shared(), with the schema's defaults in place of the configuration's.
static int read_without_defaults(struct load *load, const struct target *target)
{
    struct loader *l = &load->loader;
    const struct camera_config camera = l->camera;
    const struct output_config output = l->output;
    const long default_bytes = l->default_bytes;
    l->default_bytes = 0;
    l->camera = (struct camera_config){0};
    l->output = (struct output_config){0};
    const bool ready =
        object_init(&camera_table, &l->camera) == 0 && object_init(&output_table, &l->output) == 0;
    if (ready)
        read_shared(load, target);
    object_free(&camera_table, &l->camera);
    object_free(&output_table, &l->output);
    l->camera = camera;
    l->output = output;
    l->default_bytes = default_bytes;
    return ready ? 0 : -ENOMEM;
}

static int read_drop_in(struct load *load, const char *text, size_t length,
                        const struct file_change *change)
{
    struct loader *l = &load->loader;
    struct config *own = calloc(1, sizeof *own); // values of this file
    struct target target = {.table = &root_table, .object = own};
    int status =
        own ? document_parse(&l->reader.document, text, length, &l->reader.mistakes) : -ENOMEM;
    const enum references references = l->reader.references;
    l->assigned = change ? change->assigned : NULL;
    if (l->assigned)
        l->reader.references = REFERENCES_REFUSED;
    if (status == 0) {
        read_keys(l, &target, true);
        if (target.given[table_find(&root_table, "defaults") - root_table.rows].key.line)
            status = read_without_defaults(load, &target);
        else
            read_shared(load, &target);
        yaml_document_delete(&l->reader.document);
        object_free(&root_table, own);
    }
    l->reader.references = references;
    l->assigned = NULL;
    free(own);
    return status;
}

static const char *unread_text(int status)
{
    switch (status) {
    case -ENOTSUP:
        return "it is not a file";
    case -ELOOP:
        return "it is a link, which root does not follow here";
    case -EPERM:
        return "it belongs to another user (root, or the owner of its folder)";
    default:
        return strerror(-status);
    }
}

// Reads each file, however wrong the others are. Unreadable files count as having cameras.
static void read_drop_ins(struct load *load, const char *folder)
{
    struct reader *r = &load->loader.reader;
    const struct config_files *files = &load->loader.config->files;
    const struct place start = {.line = 1, .column = 1};
    int status = drop_ins_list(&load->loader.config->files, folder, load->options->changes);
    if (status < 0)
        mistake(&r->mistakes, start, "yaml", "%s cannot be read: %s", folder, strerror(-status));
    for (int i = 1; i < files->n; i++) {
        char *text = NULL;
        size_t length = 0;
        r->mistakes.file = i;
        status = read_text(&text, &length, files->path[i], load->options->changes);
        if (status < 0)
            mistake(&r->mistakes, (struct place){.line = 1, .column = 1, .file = i}, "yaml",
                    "cannot be read: %s", unread_text(status));
        else
            status = read_drop_in(load, text, length,
                                  file_changes_find(load->options->changes, files->path[i]));
        r->no_memory |= status == -ENOMEM;
        load->cameras_given |= status < 0;
        free(text);
    }
    r->mistakes.file = 0;
}

// --- all of it

static void require_cameras(struct load *load)
{
    const struct config_row *row = table_find(&root_table, "cameras");
    struct mistakes *mistakes = &load->loader.reader.mistakes;
    if (!load->cameras_given && !mapping_may_lack(load->loader.config, row))
        mistake(mistakes, (struct place){.line = 1, .column = 1}, row->key,
                "is missing (for example %s: {name: {...}})", row->key);
}

static int resolve_output(struct output_config *output)
{
    const int rc = address_resolve(&output->sink);
    return rc == 0 ? address_resolve(&output->detections.sink) : rc;
}

static int resolve_addresses(struct config *config)
{
    int rc = address_resolve(&config->control.at);
    if (rc == 0)
        rc = address_resolve(&config->http.at);
    for (int i = 0; i < config->n_cameras; i++)
        for (int o = 0; rc == 0 && o < config->cameras[i].n_outputs; o++)
            rc = resolve_output(&config->cameras[i].outputs[o]);
    for (int i = 0; rc == 0 && i < config->n_batches; i++)
        rc = resolve_output(&config->batches[i]);
    return rc;
}

static void read_all(struct load *load, const char *folder)
{
    struct loader *l = &load->loader;
    struct mistakes *mistakes = &l->reader.mistakes;
    struct target target = {.table = &root_table, .object = l->config};
    const bool mapping = read_keys(l, &target, false);
    if (mapping && load->options->running)
        check_restart(mistakes, load->options->running, l->config, target.given);
    const struct config_row *row = table_find(&root_table, "defaults");
    const struct given *defaults = &target.given[row - root_table.rows];
    if (defaults->key.line) {
        size_t path = reader_enter(&l->reader, row->key);
        read_defaults(l, defaults->node, row);
        reader_leave(&l->reader, path);
    }
    read_shared(load, &target);
    if (folder) {
        const yaml_document_t itself = l->reader.document;
        read_drop_ins(load, folder);
        l->reader.document = itself;
    }
    if (mapping || !mistakes->total)
        require_cameras(load);
    pauses_apply(&load->pauses, mistakes, l->config);
    if (members_join(mistakes, l->config) < 0)
        l->reader.no_memory = true;
    crops_apply(mistakes, l->config);
    if (regions_choose(mistakes, l->config) < 0)
        l->reader.no_memory = true;
    if (!l->config->closed && resolve_addresses(l->config) < 0)
        l->reader.no_memory = true;
    if (check_rivals(mistakes, l->config) < 0)
        l->reader.no_memory = true;
    check_root(mistakes, l->config, target.given);
    l->config->secret = l->reader.secret;
    if (load->options->judge)
        load->options->judge(mistakes, l->config);
}

static int read_document(struct load *load, const char *text, size_t length, const char *folder)
{
    struct loader *l = &load->loader;
    int status = document_parse(&l->reader.document, text, length, &l->reader.mistakes);
    if (status < 0)
        return status;
    if (load->options->only)
        read_only(l, load->options->only);
    else
        read_all(load, folder);
    yaml_document_delete(&l->reader.document);
    return l->reader.no_memory ? -ENOMEM : 0;
}

static int init_loader(struct loader *l, const char *name)
{
    l->config = calloc(1, sizeof *l->config);
    if (!l->config || config_files_add(&l->config->files, name) < 0 ||
        object_init(&root_table, l->config) < 0 || object_init(&camera_table, &l->camera) < 0 ||
        object_init(&output_table, &l->output) < 0)
        return -ENOMEM;
    return 0;
}

static void print_gone(const struct config *config, FILE *warnings)
{
    for (int i = 0; i < config->n_gone; i++) {
        char *text = gone_text(config, i);
        if (text)
            fprintf(warnings, "warning: %s\n", text);
        free(text);
    }
}

// `folder` has the drop-in files; NULL: there are none.
static int load_text(struct config **ret, const char *text, size_t length, const char *name,
                     const char *folder, const struct config_load_options *options, FILE *errors)
{
    struct load *load = calloc(1, sizeof *load);
    struct loader *l = load ? &load->loader : NULL;
    int status = l ? init_loader(l, name) : -ENOMEM;
    if (status == 0) {
        load->options = options;
        l->reader.unit = options->unit;
        l->reader.literals = options->literals;
        l->reader.references = options->closed ? REFERENCES_OPAQUE : REFERENCES_LOOKED_UP;
        l->config->closed = options->closed;
        status = read_document(load, text, length, folder);
    }
    if (status == -ENOMEM) {
        fprintf(errors, "%s: %s\n", name, strerror(ENOMEM));
    } else {
        if (options->warnings)
            print_gone(l->config, options->warnings);
        mistakes_print(&l->reader.mistakes, "", &l->config->files, errors);
        status = l->reader.mistakes.total;
    }
    if (!status) {
        *ret = l->config;
        l->config = NULL;
    }
    if (l) {
        mistakes_free(&l->reader.mistakes);
        object_free(&camera_table, &l->camera);
        object_free(&output_table, &l->output);
        pauses_free(&load->pauses);
        config_free(l->config);
        free(load);
    }
    return status;
}

int config_load_text(struct config **ret, const char *text, size_t length, const char *name,
                     FILE *errors)
{
    return load_text(ret, text, length, name, NULL, &(struct config_load_options){0}, errors);
}

int config_load_closed(struct config **ret, const char *text, const char *name, FILE *errors)
{
    const struct config_load_options options = {.closed = true};
    return load_text(ret, text, strlen(text), name, NULL, &options, errors);
}

int config_load_with(struct config **ret, const char *path,
                     const struct config_load_options *options, FILE *errors)
{
    const bool has_folder = strcmp(path, FILE_STDIN) != 0 && !options->only;
    const struct file_change *change = file_changes_find(options->changes, path);
    char *folder = has_folder ? drop_ins_folder(path) : NULL, *text = NULL;
    size_t length = 0;
    int status = has_folder && !folder ? -ENOMEM : 0;
    if (status == 0 && !change)
        status = file_read(&text, &length, path);
    if (status < 0) {
        char word[KEY_MAX];
        fprintf(errors, "%s: %s\n", shown(file_name(path), word, sizeof word), strerror(-status));
    } else {
        status =
            load_text(ret, change ? change->text : text, change ? strlen(change->text) : length,
                      file_name(path), folder, options, errors);
    }
    free(text);
    free(folder);
    return status;
}

int config_load(struct config **ret, const char *path, FILE *errors)
{
    return config_load_with(ret, path, &(struct config_load_options){0}, errors);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    config_files_free(&config->files);
    gone_free(config);
    object_free(&root_table, config);
    free(config);
}
