// Lines of any length, readers of any speed: each gets whole lines in order, and counts the rest.
#include "daemon/output/lines.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { LINES = 60000, READERS = 4 };

// Makes the line with that number: its bytes encode the number and the place.
static size_t make_line(uint64_t number, char *to)
{
    const size_t bytes = 8 + (number * 2654435761u >> 7) % (number % 97 == 0 ? 170000 : 3000);
    memcpy(to, &number, sizeof number);
    memset(to + 8, (int)(number & 127) + 1, bytes - 8);
    return bytes;
}

static bool is_line(const struct line *line, uint64_t number, char *scratch)
{
    const size_t bytes = make_line(number, scratch);
    return line->bytes == bytes && memcmp(line->text, scratch, bytes) == 0 &&
           line->time_ns == (int64_t)number;
}

static void test_readers(void)
{
    struct line_queue *queue;
    char *text = malloc(200000), *expected = malloc(200000);
    uint64_t reader[READERS] = {0}, lost[READERS] = {0}, got[READERS] = {0};
    CHECK(line_queue_open(&queue) == 0, "open");
    for (uint64_t i = 0; i < LINES; i++) {
        line_queue_add(queue, text, make_line(i, text), (int64_t)i);
        for (int r = 0; r < READERS; r++) {
            if (i % (r == 0 ? 1 : (uint64_t)r * 700) != 0)
                continue;
            const struct line *line;
            lost[r] += line_queue_skip(queue, &reader[r]);
            while ((line = line_queue_get(queue, reader[r]))) {
                CHECK(is_line(line, reader[r], expected), "reader %d: line %d", r, (int)reader[r]);
                reader[r]++;
                got[r]++;
            }
        }
    }
    for (int r = 0; r < READERS; r++)
        CHECK(got[r] + lost[r] == reader[r], "reader %d: %d + %d of %d", r, (int)got[r],
              (int)lost[r], (int)reader[r]);
    CHECK(lost[0] == 0 && got[0] == LINES, "who reads at once lost %d", (int)lost[0]);
    CHECK(lost[3] > 0 && lost[3] < LINES, "who reads seldom lost %d", (int)lost[3]);
    line_queue_close(queue);
    free(text);
    free(expected);
}

// The number of lines is limited too.
static void test_short_lines(void)
{
    struct line_queue *queue;
    uint64_t reader = 0;
    CHECK(line_queue_open(&queue) == 0, "open");
    for (int i = 0; i < LINE_QUEUE_LINES + 5; i++)
        line_queue_add(queue, "{}\n", 3, i);
    CHECK(line_queue_skip(queue, &reader) == 5 && reader == 5, "at %d", (int)reader);
    CHECK(line_queue_get(queue, reader)->time_ns == 5, "another line");
    CHECK(!line_queue_get(queue, LINE_QUEUE_LINES + 5), "a line that is not there");
    line_queue_close(queue);
}

// Each line is offered once, to the readers present.
static void test_offers(void)
{
    struct line_queue *queue;
    struct line_account account = {0};
    CHECK(line_queue_open(&queue) == 0, "open");
    line_queue_offer(queue, &account, 3);
    CHECK(account.offered == 0, "none has come");
    for (int i = 0; i < 5; i++)
        line_queue_add(queue, "{}\n", 3, i);
    line_queue_offer(queue, &account, 2);
    line_queue_offer(queue, &account, 9);
    CHECK(account.offered == 10, "%d", (int)account.offered);
    line_queue_add(queue, "{}\n", 3, 5);
    line_queue_offer(queue, &account, 0);
    line_queue_add(queue, "{}\n", 3, 6);
    line_queue_offer(queue, &account, 1);
    CHECK(account.offered == 11, "%d", (int)account.offered);
    line_queue_close(queue);
}

int main(void)
{
    TEST(test_offers());
    TEST(test_readers());
    TEST(test_short_lines());
    return test_end();
}
