// How long each version takes to send pictures of packed RGB through a .cube file, on one core.
//
// usage: bench-lut CUBE trilinear|tetrahedral WIDTH HEIGHT RESULT.rgb < frames.rgb
//
// Prints a line "VERSION milliseconds" a frame for each version, hot: the best of several rounds
// over all frames. RESULT.rgb becomes what the best version makes of them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/cube.h"
#include "kernels/cpu/versions.h"

enum { FRAMES_MAX = 64, ROUNDS = 9 };

static double milliseconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // others may use the core, too
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

struct pictures {
    int width, height, n;
    size_t bytes; // of one
    uint8_t *from, *to;
};

static int pictures_read(struct pictures *p)
{
    p->bytes = (size_t)p->width * p->height * 3;
    p->from = malloc(FRAMES_MAX * p->bytes);
    p->to = malloc(FRAMES_MAX * p->bytes);
    if (!p->from || !p->to)
        return -ENOMEM;
    while (p->n < FRAMES_MAX && fread(p->from + p->n * p->bytes, p->bytes, 1, stdin) == 1)
        p->n++;
    return p->n > 0 ? 0 : -ENODATA;
}

static void look_up(const struct pictures *p, lut_fn *version, const struct lut *lut)
{
    const size_t row = (size_t)p->width * 3, rows = (size_t)p->height * p->n;
    for (size_t y = 0; y < rows; y++)
        version(lut, p->to + y * row, p->from + y * row, p->width);
}

static void measure(const struct pictures *p, const struct version *version, const struct lut *lut)
{
    double best = 1e9;
    for (int i = 0; i < (version->lut == lut_reference ? 1 : ROUNDS); i++) {
        const double begin = milliseconds_now();
        look_up(p, version->lut, lut);
        const double took = milliseconds_now() - begin;
        best = took < best ? took : best;
    }
    printf("%s %.3f\n", version->name, best / p->n);
}

int main(int argc, char **argv)
{
    struct pictures p = {0};
    struct lut *lut = NULL;
    char wrong[CUBE_MISTAKE_MAX] = "frames.rgb on standard input: nothing";
    if (argc != 6) {
        fputs("usage: bench-lut CUBE trilinear|tetrahedral WIDTH HEIGHT RESULT.rgb < frames.rgb\n",
              stderr);
        return 2;
    }
    p.width = atoi(argv[3]);
    p.height = atoi(argv[4]);
    const bool tetrahedral = strcmp(argv[2], "tetrahedral") == 0;
    if (cube_read(&lut, argv[1], argv[1], tetrahedral ? LUT_TETRAHEDRAL : LUT_TRILINEAR, wrong) <
            0 ||
        pictures_read(&p) < 0) {
        fprintf(stderr, "bench-lut: %s\n", wrong);
        return 1;
    }
    for (int i = 0; versions[i]; i++)
        if (versions[i]->runs())
            measure(&p, versions[i], lut);
    look_up(&p, version_find(NULL)->lut, lut);
    FILE *file = fopen(argv[5], "wb");
    const bool written = file && fwrite(p.to, p.bytes, (size_t)p.n, file) == (size_t)p.n;
    if (!written || fclose(file) != 0)
        perror(argv[5]);
    lut_unref(lut);
    free(p.from);
    free(p.to);
    return written ? 0 : 1;
}
