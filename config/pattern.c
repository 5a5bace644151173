#include "config/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGIT  "[0-9]"
#define DIGIT2 DIGIT DIGIT
#define DIGIT4 DIGIT2 DIGIT2

static const struct {
    char letter;
    const char *glob;
} conversions[] = {
    {'Y', DIGIT4},
    {'m', DIGIT2},
    {'d', DIGIT2},
    {'j', DIGIT2 DIGIT},
    {'F', DIGIT4 "-" DIGIT2 "-" DIGIT2},
    {'H', DIGIT2},
    {'M', DIGIT2},
    {'S', DIGIT2},
    {'s', DIGIT "*"},
    {'z', "[+-]" DIGIT4},
    {'%', "%"},
};

// Returns the fnmatch pattern for the conversion at "%X", or NULL.
static const char *glob_of(const char *percent)
{
    for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++) {
        if (percent[1] == conversions[i].letter)
            return conversions[i].glob;
    }
    return NULL;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *pattern_wrong(const char *path)
{
    for (const char *p = strchr(path, '%'); p; p = strchr(p + 2, '%')) {
        if (!glob_of(p))
            return "has a percent sign without a known conversion: " PATTERN_ALLOWED;
        if (p[1] != '%' && p < name_of(path))
            return "has a time in the name of a folder: only the file's name can have one";
    }
    return NULL;
}

bool pattern_has_time(const char *path)
{
    for (const char *p = strchr(path, '%'); p; p = strchr(p + 2, '%')) {
        if (p[1] != '%')
            return true;
    }
    return false;
}

void pattern_unescape(char *path)
{
    char *to = path;
    for (const char *p = path; *p; p++) {
        *to++ = *p;
        p += *p == '%';
    }
    *to = 0;
}

int pattern_at(const char *path, time_t time, char *to, size_t size)
{
    struct tm local;
    localtime_r(&time, &local);
    return strftime(to, size, path, &local) > 0 ? 0 : -ENAMETOOLONG;
}

static void print_glob(FILE *f, const char *from, const char *end)
{
    for (const char *p = from; p < end; p++) {
        if (*p == '%')
            fputs(glob_of(p++), f);
        else if (strchr("*?[]\\", *p))
            fprintf(f, "\\%c", *p);
        else
            fputc(*p, f);
    }
}

// Returns the bytes of `name` that match the glob of a conversion of fixed length; 0: no match.
static size_t match_glob(const char *glob, const char *name)
{
    size_t n = 0;
    for (; *glob; n++) {
        const bool digit = strncmp(glob, DIGIT, strlen(DIGIT)) == 0,
                   sign = strncmp(glob, "[+-]", 4) == 0;
        if (digit  ? !isdigit((unsigned char)name[n])
            : sign ? name[n] != '+' && name[n] != '-'
                   : name[n] != *glob)
            return 0;
        glob += digit ? strlen(DIGIT) : sign ? 4 : 1;
    }
    return n;
}

// `dot`: position in the pattern where a number may stand; NULL: none any more.
static bool matches_from(const char *p, const char *dot, const char *name)
{
    const size_t digits = p == dot && *name == '.' ? strspn(name + 1, "0123456789") : 0;
    if (digits > 0 && name[1] != '0' && matches_from(p, NULL, name + 1 + digits))
        return true;
    if (*p != '%')
        return *p == *name && (!*p || matches_from(p + 1, dot, name + 1));
    if (p[1] == 's') {
        for (size_t n = strspn(name, "0123456789"); n > 0; n--)
            if (matches_from(p + 2, dot, name + n))
                return true;
        return false;
    }
    const size_t n = match_glob(glob_of(p), name);
    return n > 0 && matches_from(p + 2, dot, name + n);
}

bool pattern_matches(const char *path, const char *name)
{
    const char *pattern = name_of(path), *dot = strrchr(pattern, '.');
    return matches_from(pattern, dot && dot > pattern ? dot : pattern + strlen(pattern), name);
}

int pattern_glob(const char *path, const char *more, char *to, size_t size)
{
    const char *name = name_of(path), *end = name + strlen(name);
    const char *dot = strrchr(name, '.');
    dot = dot && dot > name ? dot : end;
    FILE *f = fmemopen(to, size, "w");
    if (!f)
        return -errno;
    print_glob(f, name, dot);
    fputs(more, f);
    print_glob(f, dot, end);
    long length = fflush(f) == 0 ? ftell(f) : -1;
    fclose(f);
    return length >= 0 && (size_t)length < size - 1 ? 0 : -ENAMETOOLONG;
}
