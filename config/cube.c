#include "config/cube.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/mistakes.h"
#include "config/url.h"

enum { WORD_MAX = 63, WORDS_MAX = 4 };

// Starts and lengths of a line's words.
struct words {
    const char *at[WORDS_MAX];
    size_t length[WORDS_MAX];
    int n; // WORDS_MAX + 1: the line has more
};

// Parser of a text.
struct cube {
    const char *next, *end;
    int line;
    char *wrong;
    int sizes[2]; // of the 1D table and of the cube; 0: not given
    double first[2][3], last[2][3];
    bool has_range[2], has_domain;
    int range_line[2]; // last line that set the range
    float *values;
    size_t n, wanted; // numbers
};

__attribute__((format(printf, 2, 3))) static int refuse(struct cube *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->wrong, CUBE_MISTAKE_MAX, format, args);
    va_end(args);
    return -EINVAL;
}

// --- words

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Splits the next line into words. Returns false at the text's end.
static bool next_line(struct cube *c, struct words *words)
{
    *words = (struct words){.n = 0};
    if (c->next == c->end)
        return false;
    const char *at = c->next, *end = memchr(at, '\n', (size_t)(c->end - at));
    c->next = end ? end + 1 : c->end;
    c->line++;
    end = end ? end : c->end;
    for (; words->n <= WORDS_MAX; words->n++) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end || *at == '#')
            return true;
        const char *from = at;
        while (at < end && !is_blank(*at))
            at++;
        if (words->n == WORDS_MAX)
            continue;
        words->at[words->n] = from;
        words->length[words->n] = (size_t)(at - from);
    }
    return true;
}

static bool word_is(const struct words *words, const char *what)
{
    return words->length[0] == strlen(what) && memcmp(words->at[0], what, words->length[0]) == 0;
}

// Returns false if the word is not a finite decimal number, or beyond 1e9.
static bool number_read(const struct words *words, int i, double *ret)
{
    char text[WORD_MAX + 1] = "", *end;
    if (words->length[i] > WORD_MAX)
        return false;
    memcpy(text, words->at[i], words->length[i]);
    if (text[strspn(text, "0123456789+-.eE")])
        return false;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret) && fabs(*ret) <= 1e9;
}

// Reads `n` numbers, from word `first` to the line's end.
static int numbers_read(struct cube *c, const struct words *words, int first, int n, double ret[])
{
    if (words->n - first != n)
        return refuse(c, "has %s%d number%s (%d)", words->n > WORDS_MAX ? "more than " : "",
                      (words->n > WORDS_MAX ? WORDS_MAX : words->n) - first,
                      words->n - first == 1 ? "" : "s", n);
    for (int i = 0; i < n; i++)
        if (!number_read(words, first + i, &ret[i]))
            return refuse(c, "has something else in place of number %d (0.5, 1e-3; at most 1e9)",
                          i + 1);
    return 0;
}

// --- keywords

static const struct {
    const char *size, *range;
    int most;
} tables[2] = {{"LUT_1D_SIZE", "LUT_1D_INPUT_RANGE", LUT_CURVE_POINTS_MAX},
               {"LUT_3D_SIZE", "LUT_3D_INPUT_RANGE", LUT_POINTS_MAX}};

static int size_read(struct cube *c, const struct words *words, int table)
{
    double points;
    if (c->sizes[table])
        return refuse(c, "says %s a second time", tables[table].size);
    const int error = numbers_read(c, words, 1, 1, &points);
    if (error)
        return error;
    if (points != floor(points) || points < LUT_POINTS_MIN || points > tables[table].most)
        return refuse(c, "%s %g is out of range (%d to %d)", tables[table].size, points,
                      LUT_POINTS_MIN, tables[table].most);
    c->sizes[table] = (int)points;
    return 0;
}

static int range_read(struct cube *c, const struct words *words, int table)
{
    double ends[2];
    const int error = numbers_read(c, words, 1, 2, ends);
    if (error)
        return error;
    for (int i = 0; i < 3; i++) {
        c->first[table][i] = ends[0];
        c->last[table][i] = ends[1];
    }
    c->has_range[table] = true;
    c->range_line[table] = c->line;
    return 0;
}

// Sets both tables' ranges. header_check() refuses a domain if both tables exist.
static int domain_read(struct cube *c, const struct words *words, bool last)
{
    for (int table = 0; table < 2; table++) {
        const int error = numbers_read(c, words, 1, 3, last ? c->last[table] : c->first[table]);
        if (error)
            return error;
        c->range_line[table] = c->line;
    }
    c->has_domain = true;
    return 0;
}

static int keyword_read(struct cube *c, const struct words *words)
{
    if (c->n > 0)
        return refuse(c, "has a keyword behind the first entry (ahead of it)");
    if (word_is(words, "TITLE"))
        return 0;
    if (word_is(words, "DOMAIN_MIN") || word_is(words, "DOMAIN_MAX"))
        return domain_read(c, words, word_is(words, "DOMAIN_MAX"));
    for (int table = 0; table < 2; table++) {
        if (word_is(words, tables[table].size))
            return size_read(c, words, table);
        if (word_is(words, tables[table].range))
            return range_read(c, words, table);
    }
    return refuse(c, "begins with no keyword (TITLE, LUT_1D_SIZE, LUT_3D_SIZE, DOMAIN_MIN, "
                     "DOMAIN_MAX, LUT_1D_INPUT_RANGE, LUT_3D_INPUT_RANGE)");
}

// --- entries

// Runs at the first entry, and checks that the keywords fit together.
static int header_check(struct cube *c)
{
    const size_t points = (size_t)c->sizes[1];
    if (!c->sizes[0] && !c->sizes[1])
        return refuse(c, "is an entry ahead of the size (LUT_3D_SIZE or LUT_1D_SIZE first)");
    if (c->has_domain && ((c->sizes[0] && c->sizes[1]) || c->has_range[0] || c->has_range[1]))
        return refuse(c, "ends keywords of which DOMAIN_MIN or DOMAIN_MAX may mean two tables, or "
                         "stands beside an input range (LUT_1D_INPUT_RANGE, LUT_3D_INPUT_RANGE)");
    for (int table = 0; table < 2; table++)
        for (int i = 0; i < 3; i++)
            if (c->last[table][i] <= c->first[table][i]) {
                c->line = c->range_line[table];
                return refuse(c, "ends the input range at %g, where it begins or before (above %g)",
                              c->last[table][i], c->first[table][i]);
            }
    c->wanted = 3 * ((size_t)c->sizes[0] + points * points * points);
    c->values = malloc(c->wanted * sizeof *c->values);
    return c->values ? 0 : -ENOMEM;
}

static int entry_read(struct cube *c, const struct words *words)
{
    double entry[3];
    int error = c->values ? 0 : header_check(c);
    if (!error && c->n == c->wanted)
        error = refuse(c, "is an entry too many (%zu, by the size)", c->wanted / 3);
    if (!error)
        error = numbers_read(c, words, 0, 3, entry);
    for (int i = 0; !error && i < 3; i++)
        c->values[c->n++] = (float)entry[i];
    return error;
}

static int text_read(struct cube *c)
{
    struct words words;
    int error = 0;
    while (!error && next_line(c, &words)) {
        if (words.n == 0)
            continue;
        const char first = words.at[0][0];
        error = (first >= 'A' && first <= 'Z') || first == '_' ? keyword_read(c, &words)
                                                               : entry_read(c, &words);
    }
    if (!error && c->wanted == 0)
        error = refuse(c, "ends without entries (LUT_3D_SIZE, then a line of three numbers each)");
    if (!error && c->n < c->wanted)
        error = refuse(c, "ends after %zu entries (%zu, by the size)", c->n / 3, c->wanted / 3);
    return error;
}

int cube_parse(struct lut **ret, const char *text, size_t length,
               enum lut_interpolation interpolation, int *line, char wrong[CUBE_MISTAKE_MAX])
{
    static const char mark[] = "\xef\xbb\xbf"; // of UTF-8
    struct cube c = {.next = text, .end = text + length, .wrong = wrong};
    for (int i = 0; i < 3; i++)
        c.last[0][i] = c.last[1][i] = 1;
    if (length >= 3 && memcmp(text, mark, 3) == 0)
        c.next += 3;
    int error = text_read(&c);
    if (!error) {
        struct lut_params params = {.curve_points = c.sizes[0],
                                    .curve = c.values,
                                    .points = c.sizes[1],
                                    .nodes = c.values + 3 * (size_t)c.sizes[0],
                                    .interpolation = interpolation};
        memcpy(params.curve_first, c.first[0], sizeof c.first[0]);
        memcpy(params.curve_last, c.last[0], sizeof c.last[0]);
        memcpy(params.first, c.first[1], sizeof c.first[1]);
        memcpy(params.last, c.last[1], sizeof c.last[1]);
        error = lut_make(ret, &params);
    }
    *line = c.line;
    free(c.values);
    return error;
}

// --- files

// Reads a whole regular file; the caller frees *ret.
static int file_text(const char *path, char **ret, size_t *length)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int error = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (!error)
        error = S_ISDIR(st.st_mode)           ? -EISDIR
                : !S_ISREG(st.st_mode)        ? -EINVAL
                : st.st_size > CUBE_BYTES_MAX ? -EFBIG
                                              : 0;
    char *text = error ? NULL : malloc((size_t)st.st_size + 1);
    if (!error && !text)
        error = -ENOMEM;
    size_t n = 0;
    ssize_t got = 1;
    while (!error && got > 0 && n < (size_t)st.st_size) {
        got = read(fd, text + n, (size_t)st.st_size - n);
        if (got < 0 && errno != EINTR)
            error = -errno;
        else if (got < 0)
            got = 1;
        else
            n += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    if (error)
        free(text);
    else
        *ret = text;
    *length = n;
    return error;
}

int cube_read(struct lut **ret, const char *path, const char *written,
              enum lut_interpolation interpolation, char wrong[CUBE_MISTAKE_MAX])
{
    char *text, what[CUBE_MISTAKE_MAX] = "", name[KEY_MAX / 2];
    size_t length;
    int line = 0;
    shown(written, name, sizeof name);
    int error = file_text(path, &text, &length);
    if (error) {
        snprintf(wrong, CUBE_MISTAKE_MAX, "%s: %s (a .cube file of at most %d MiB)", name,
                 error == -EINVAL ? "no regular file" : strerror(-error), CUBE_BYTES_MAX >> 20);
        return error;
    }
    error = cube_parse(ret, text, length, interpolation, &line, what);
    free(text);
    if (error)
        snprintf(wrong, CUBE_MISTAKE_MAX, "%.100s:%d: %.130s", name, line,
                 error == -ENOMEM ? strerror(ENOMEM) : what);
    return error;
}
