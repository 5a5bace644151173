// What becomes of lines on their way to NATS servers, whatever these say: each is settled once or
// goes back, and none takes more room than it may.
#include "daemon/output/nats_sending.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { PUBLISHED_MAX = 8192 };
static const int64_t MS = 1000000;

// A server in the place of the session's.
static struct {
    int64_t now_ns;
    int n; // publications
    struct {
        uint64_t number;
        char subject[16], id[64], text[16];
    } published[PUBLISHED_MAX];
    int breaks_at; // publications before the connection breaks; -1: never
    int flush_rc;
    char denied;          // how subjects begin that it refuses
    char last_denied[16]; // of which it tells the last
    struct nats_ack ack[PUBLISHED_MAX];
    int first, acks;
} server;

int64_t __wrap_monotonic_ns(void);
int64_t __wrap_monotonic_ns(void)
{
    return server.now_ns;
}

int __wrap_nats_session_publish(struct nats_session *, const char *, uint64_t, const char *,
                                const char *, size_t, char *, size_t);
int __wrap_nats_session_publish(struct nats_session *session, const char *subject, uint64_t number,
                                const char *id, const char *text, size_t bytes, char *why,
                                size_t size)
{
    (void)session;
    if (memchr(text, 'L', bytes)) {
        snprintf(why, size, "too large");
        return -EMSGSIZE;
    }
    if (server.n == server.breaks_at) {
        snprintf(why, size, "broken");
        return -ENOTCONN;
    }
    if (subject[0] == server.denied)
        snprintf(server.last_denied, sizeof server.last_denied, "%s", subject);
    server.published[server.n].number = number;
    snprintf(server.published[server.n].subject, 16, "%s", subject);
    snprintf(server.published[server.n].id, 64, "%s", id);
    snprintf(server.published[server.n++].text, 16, "%.*s", (int)bytes, text);
    return 0;
}

int __wrap_nats_session_flush(struct nats_session *, char *, size_t);
int __wrap_nats_session_flush(struct nats_session *session, char *why, size_t size)
{
    (void)session;
    snprintf(why, size, "%s", server.flush_rc < 0 ? "no answer" : "");
    return server.flush_rc;
}

bool __wrap_nats_session_denies(struct nats_session *, const char *);
bool __wrap_nats_session_denies(struct nats_session *session, const char *subject)
{
    (void)session;
    return strcmp(server.last_denied, subject) == 0;
}

bool __wrap_nats_session_ack(struct nats_session *, struct nats_ack *);
bool __wrap_nats_session_ack(struct nats_session *session, struct nats_ack *ret)
{
    (void)session;
    if (server.first == server.acks)
        return false;
    *ret = server.ack[server.first++];
    return true;
}

static void acknowledge(int publication, const char *error)
{
    struct nats_ack *ack = &server.ack[server.acks++];
    *ack = (struct nats_ack){.number = server.published[publication].number, .stored = !error};
    snprintf(ack->why, sizeof ack->why, "%s", error ? error : "");
}

static struct nats_sending *start(void)
{
    static struct nats_sending sending;
    memset(&server, 0, sizeof server);
    server.breaks_at = -1;
    nats_sending_open(&sending);
    return &sending;
}

// n lines "0" to "n - 1"; that of `large` is too large.
static struct nats_lines *make_lines(const char *subject, uint64_t first, int n, int large)
{
    struct nats_lines *lines = calloc(1, sizeof *lines + (size_t)n * 8);
    size_t bytes = 0;
    snprintf(lines->subject, sizeof lines->subject, "%s", subject);
    snprintf(lines->id, sizeof lines->id, "%s", subject);
    lines->first = first;
    for (; lines->n < n; lines->n++) {
        const int used =
            sprintf(lines->text + bytes, "%d%s", lines->n, lines->n == large ? "L" : "");
        lines->line[lines->n] = (struct nats_line){.at = (uint32_t)bytes, .bytes = (uint32_t)used};
        bytes += (size_t)used;
    }
    return lines;
}

static int turn(struct nats_sending *sending, bool acknowledged)
{
    char why[NATS_WHY_MAX];
    return nats_sending_turn(sending, NULL, acknowledged, why, sizeof why);
}

// The fates of the lines, as letters.
static const char *fates(const struct nats_lines *lines)
{
    static char text[NATS_LINES_MAX + 1];
    for (int i = 0; i < lines->n; i++)
        text[i] = "wsdl"[lines->line[i].fate];
    text[lines->n] = 0;
    return text;
}

// The next lines that come back, which are freed.
static void expect_back(struct nats_sending *sending, const char *subject, const char *wanted)
{
    struct nats_lines *lines = nats_sending_take(sending);
    CHECK(lines, "nothing comes back of %s", subject);
    if (!lines)
        return;
    CHECK(strcmp(lines->subject, subject) == 0 && strcmp(fates(lines), wanted) == 0,
          "%s: %s, not %s", lines->subject, fates(lines), wanted);
    free(lines);
}

static void expect_none(struct nats_sending *sending)
{
    CHECK(!nats_sending_take(sending), "more comes back");
}

static void test_plain(void)
{
    struct nats_sending *sending = start();
    nats_sending_add(sending, make_lines("a", 7, 3, 1));
    nats_sending_add(sending, make_lines("b", 0, 2, -1));
    server.denied = 'b';
    CHECK(turn(sending, false) == 0, "turn");
    CHECK(server.n == 4 && strcmp(server.published[1].id, "a.9") == 0, "%d, %s", server.n,
          server.published[1].id);
    expect_back(sending, "a", "dld");
    expect_back(sending, "b", "ll");
    expect_none(sending);
}

// However many outputs have subjects that are refused, none of their lines counts as delivered, now
// or with what follows in the session.
static void test_many_denied(void)
{
    enum { OUTPUTS = 24 };
    struct nats_sending *sending = start();
    char subject[16];
    server.denied = 'd';
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < OUTPUTS; i++) {
            snprintf(subject, sizeof subject, "%c%d", i % 4 ? 'd' : 'a', i);
            struct nats_lines *lines = make_lines(subject, 0, 2, -1);
            lines->tried = round > 0 ? sending->session : 0;
            lines->denied = round > 0 && i % 4;
            nats_sending_add(sending, lines);
        }
        CHECK(turn(sending, false) == 0, "turn");
        for (int i = 0; i < OUTPUTS; i++) {
            snprintf(subject, sizeof subject, "%c%d", i % 4 ? 'd' : 'a', i);
            expect_back(sending, subject, i % 4 ? "ll" : "dd");
        }
        expect_none(sending);
    }
}

// What was on its way is lost, what was not is as it was.
static void test_plain_breaks(void)
{
    struct nats_sending *sending = start();
    nats_sending_add(sending, make_lines("a", 0, 2, -1));
    nats_sending_add(sending, make_lines("b", 0, 3, 0));
    server.breaks_at = 3;
    CHECK(turn(sending, false) == -ENOTCONN, "breaks");
    nats_sending_break(sending, false);
    expect_back(sending, "a", "ll");
    expect_back(sending, "b", "llw");
    sending = start();
    nats_sending_add(sending, make_lines("a", 0, 2, -1));
    server.flush_rc = -ETIMEDOUT;
    CHECK(turn(sending, false) == -ETIMEDOUT, "no answer");
    nats_sending_break(sending, false);
    expect_back(sending, "a", "ll");
    expect_none(sending);
}

static void test_acknowledged(void)
{
    struct nats_sending *sending = start();
    nats_sending_add(sending, make_lines("a", 5, 4, 2));
    CHECK(turn(sending, true) == 0 && server.n == 3, "%d published", server.n);
    expect_none(sending);
    acknowledge(2, NULL);
    acknowledge(0, "full");
    acknowledge(0, NULL); // twice: the second says nothing
    CHECK(turn(sending, true) == 0, "turn");
    expect_none(sending);
    acknowledge(1, NULL);
    CHECK(turn(sending, true) == 0, "turn");
    expect_back(sending, "a", "ldld");
    expect_none(sending);
    CHECK(nats_sending_due_ns(sending) == INT64_MAX && sending->n_flying == 0, "none flies");
}

// Lines that are not acknowledged yet are published again by another session, with the same ids.
static void test_acknowledged_breaks(void)
{
    struct nats_sending *sending = start();
    nats_sending_add(sending, make_lines("a", 5, 3, -1));
    CHECK(turn(sending, true) == 0, "turn");
    acknowledge(0, NULL);
    server.breaks_at = 3;
    nats_sending_add(sending, make_lines("b", 0, 2, -1));
    CHECK(turn(sending, true) == -ENOTCONN, "breaks");
    nats_sending_break(sending, true);
    expect_back(sending, "a", "dss");
    expect_back(sending, "b", "ww");
    CHECK(sending->n_flying == 0, "%d fly", sending->n_flying);
    acknowledge(1, NULL); // late, of the old session
    nats_sending_add(sending, make_lines("a", 6, 2, -1));
    server.breaks_at = -1;
    CHECK(turn(sending, true) == 0 && strcmp(server.published[3].id, server.published[1].id) == 0,
          "%s, before %s", server.published[3].id, server.published[1].id);
    expect_none(sending);
    acknowledge(3, NULL);
    acknowledge(4, NULL);
    CHECK(turn(sending, true) == 0, "turn");
    expect_back(sending, "a", "dd");
}

// An output without a stream: its lines are lost one by one, and others have all the room.
static void test_silent_stream(void)
{
    struct nats_sending *sending = start();
    nats_sending_add(sending, make_lines("a", 0, NATS_LINES_MAX, -1));
    CHECK(turn(sending, true) == 0 && server.n == NATS_FLYING_EACH, "%d published", server.n);
    CHECK(nats_sending_due_ns(sending) == NATS_CONFIRM_MS * MS, "due at another time");
    server.now_ns = NATS_CONFIRM_MS * MS - 1;
    CHECK(turn(sending, true) == 0, "turn");
    expect_none(sending);
    server.now_ns++;
    CHECK(turn(sending, true) == 0 && server.n == NATS_FLYING_EACH, "%d published", server.n);
    struct nats_lines *lines = nats_sending_take(sending);
    CHECK(lines && lines->doubted && lines->n_settled == NATS_FLYING_EACH, "the rest comes back");
    free(lines);
    lines = make_lines("a", 64, 5, -1);
    lines->doubted = true;
    nats_sending_add(sending, lines);
    CHECK(turn(sending, true) == 0 && sending->n_flying == 1, "%d fly", sending->n_flying);
    acknowledge(NATS_FLYING_EACH, NULL);
    CHECK(turn(sending, true) == 0 && sending->n_flying == 4, "%d fly", sending->n_flying);
    for (int i = 1; i < 5; i++)
        acknowledge(NATS_FLYING_EACH + i, NULL);
    CHECK(turn(sending, true) == 0, "turn");
    expect_back(sending, "a", "ddddd");
}

// No more fly than there are places, and each gets its turn. Acknowledgements come in any order.
static void test_many(void)
{
    enum { OUTPUTS = 40, LINES = 100 };
    struct nats_sending *sending = start();
    int done = 0, before;
    for (int i = 0; i < OUTPUTS; i++)
        nats_sending_add(sending, make_lines("a", 0, LINES, -1));
    do {
        before = server.n;
        CHECK(turn(sending, true) == 0 && sending->n_flying <= NATS_FLYING_MAX, "%d fly",
              sending->n_flying);
        for (int i = server.n - 1; i >= before; i--)
            acknowledge(i, NULL);
        for (struct nats_lines *lines; (lines = nats_sending_take(sending)); done++) {
            CHECK(strspn(fates(lines), "d") == LINES, "%s", fates(lines));
            free(lines);
        }
    } while (sending->n_flying > 0 || server.n > before);
    CHECK(done == OUTPUTS && server.n == OUTPUTS * LINES, "%d outputs, %d lines", done, server.n);
}

int main(void)
{
    TEST(test_plain());
    TEST(test_many_denied());
    TEST(test_plain_breaks());
    TEST(test_acknowledged());
    TEST(test_acknowledged_breaks());
    TEST(test_silent_stream());
    TEST(test_many());
    return test_end();
}
