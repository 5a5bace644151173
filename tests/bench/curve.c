#include "tests/bench/curve.h"

#include <errno.h>

// Units of the drawing: a plot of WIDTH x HEIGHT whose corner is at LEFT, TOP.
enum { LEFT = 76, TOP = 64, WIDTH = 600, HEIGHT = 320, ALL_WIDTH = 880, ALL_HEIGHT = 460 };

static const char style[] =
    "<style>"
    "text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-size:16px;font-weight:600}"
    ".g{stroke:#d0d7de;stroke-width:1}.a{stroke:#57606a;stroke-width:1.2}"
    ".c{fill:none;stroke:#0969da;stroke-width:2.5}.p{fill:#0969da}"
    ".l{stroke:#cf222e;stroke-width:2;stroke-dasharray:7 4}.lt{fill:#cf222e}"
    ".k{fill:#1a7f37}.kl{stroke:#1a7f37;stroke-width:1.5;stroke-dasharray:2 3}"
    "</style>\n";

struct scale {
    double low, high, step; // ms
    int columns;
};

static double x_of(const struct scale *scale, int column)
{
    return LEFT + (column + 0.5) * WIDTH / scale->columns;
}

static double y_of(const struct scale *scale, double ms)
{
    return TOP + HEIGHT * (scale->high - ms) / (scale->high - scale->low);
}

// Returns a scale from 0 in five to ten round steps: an axis that starts higher flatters.
static struct scale scale_of(const struct curve *curve)
{
    double most = curve->limit_ms;
    for (int i = 0; i < curve->n; i++)
        most = curve->ms[i] > most ? curve->ms[i] : most;
    most = curve->plain_ms > most ? curve->plain_ms : most;
    struct scale scale = {.step = 0.001, .columns = curve->n + 2 * !curve->threads};
    for (int i = 0; most * 1.08 / scale.step > 10; i++)
        scale.step *= i % 3 == 1 ? 2.5 : 2;
    while (scale.high < most * 1.08)
        scale.high += scale.step;
    return scale;
}

static void text(FILE *to, double x, double y, const char *anchor, const char *class,
                 const char *words)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
            class);
    for (; *words; words++) {
        if (*words == '&')
            fputs("&amp;", to);
        else if (*words == '<')
            fputs("&lt;", to);
        else
            putc(*words, to);
    }
    fputs("</text>\n", to);
}

static void draw_axes(FILE *to, const struct scale *scale, const char *across)
{
    char label[32];
    for (double ms = 0; ms <= scale->high + scale->step / 2; ms += scale->step) {
        const double y = y_of(scale, ms);
        fprintf(to, "<path class=\"g\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, WIDTH);
        snprintf(label, sizeof label, "%g", ms);
        text(to, LEFT - 10, y + 4, "end", "n", label);
    }
    fprintf(to, "<path class=\"a\" fill=\"none\" d=\"M%d %dv%dh%d\"/>\n", LEFT, TOP, HEIGHT, WIDTH);
    text(to, LEFT + WIDTH / 2.0, TOP + HEIGHT + 48, "middle", "n", across);
    fprintf(to,
            "<text transform=\"translate(22 %d) rotate(-90)\" text-anchor=\"middle\">"
            "ms a frame</text>\n",
            TOP + HEIGHT / 2);
}

static void draw_line(FILE *to, const struct scale *scale, double ms, const char *line,
                      const char *class, const char *name)
{
    char label[64];
    if (ms <= 0)
        return;
    snprintf(label, sizeof label, "%s %.3f ms", name, ms);
    fprintf(to, "<path class=\"%s\" d=\"M%d %.1fh%d\"/>\n", line, LEFT, y_of(scale, ms), WIDTH);
    text(to, LEFT + WIDTH + 8, y_of(scale, ms) + (line[0] == 'l' ? 15 : -5), "start", class, label);
}

static void draw_point(FILE *to, const struct scale *scale, int column, double ms,
                       const char *class, const char *name)
{
    char label[32];
    text(to, x_of(scale, column), TOP + HEIGHT + 22, "middle", "n", name);
    if (ms <= 0)
        return;
    snprintf(label, sizeof label, "%.3f", ms);
    fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", class,
            x_of(scale, column), y_of(scale, ms));
    text(to, x_of(scale, column), y_of(scale, ms) - 11, "middle", "n", label);
}

static void draw(FILE *to, const struct curve *curve)
{
    const struct scale scale = scale_of(curve);
    char name[32];
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            ALL_WIDTH, ALL_HEIGHT, ALL_WIDTH, ALL_HEIGHT, style);
    text(to, LEFT, 30, "start", "t", curve->title);
    draw_axes(to, &scale, curve->threads ? "CPU threads" : "CUDA streams");
    draw_line(to, &scale, curve->limit_ms, "l", "lt",
              curve->threads ? "memcpy alone" : "copies alone");
    draw_line(to, &scale, curve->steady_ms, "kl", "k", "several in flight");
    if (!curve->threads) {
        draw_point(to, &scale, 0, curve->plain_ms, "lt", "plain");
        draw_point(to, &scale, curve->n + 1, curve->auto_ms, "k", "auto");
    }
    fputs("<path class=\"c\" d=\"", to);
    for (int i = 0; i < curve->n; i++)
        fprintf(to, "%c%.1f %.1f", i == 0 ? 'M' : 'L', x_of(&scale, i + !curve->threads),
                y_of(&scale, curve->ms[i]));
    fputs("\"/>\n", to);
    for (int i = 0; i < curve->n; i++) {
        snprintf(name, sizeof name, "%d", curve->streams[i]);
        draw_point(to, &scale, i + !curve->threads, curve->ms[i], "p", name);
    }
    fputs("</svg>\n", to);
}

int curve_write(FILE *to, const struct curve *curve)
{
    draw(to, curve);
    if (fflush(to) != 0)
        return -errno;
    return ferror(to) ? -EIO : 0;
}
