// Requests in the form of etcd's gateway, and answers of different versions.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cluster/etcd_json.h"
#include "tests/test.h"

static void check_text(char *text, const char *wanted)
{
    CHECK(text && strcmp(text, wanted) == 0, "%s, not %s", text ? text : "NULL", wanted);
    free(text);
}

static void test_ranges(void)
{
    check_text(etcd_print_range("/a/"), "{\"key\":\"L2Ev\",\"range_end\":\"L2Ew\"}");
    check_text(etcd_print_range("a\xff"), "{\"key\":\"Yf8=\",\"range_end\":\"Yg==\"}");
    // All keys, and all keys from one on.
    check_text(etcd_print_range(""), "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    check_text(etcd_print_changes("/a/", 7), "{\"key\":\"L2Ev\",\"range_end\":\"L2Ew\","
                                             "\"min_mod_revision\":\"7\",\"keys_only\":true}");
    check_text(etcd_print_range("\xff\xff"), "{\"key\":\"//8=\",\"range_end\":\"AA==\"}");
    check_text(etcd_print_watch("/a/", 7),
               "{\"create_request\":{\"key\":\"L2Ev\",\"range_end\":\"L2Ew\","
               "\"start_revision\":\"7\"}}");
}

static void test_leases(void)
{
    check_text(etcd_print_grant(5), "{\"TTL\":\"5\"}");
    check_text(etcd_print_lease(INT64_MIN), "{\"ID\":\"-9223372036854775808\"}");
    check_text(etcd_print_login("a\"b", "\\\n"), "{\"name\":\"a\\\"b\",\"password\":\"\\\\\\n\"}");
}

static void test_transactions(void)
{
    const struct etcd_compare compares[] = {
        {ETCD_VERSION, "a", 0}, {ETCD_VERSION_ABOVE, "b", 1}, {ETCD_MOD_REVISION, "c", 2}};
    const struct etcd_write writes[] = {{"a", "", 3}, {"b", NULL, 0}};
    check_text(etcd_print_txn(compares, 3, writes, 2),
               "{\"compare\":["
               "{\"target\":\"VERSION\",\"result\":\"EQUAL\",\"key\":\"YQ==\",\"version\":\"0\"},"
               "{\"target\":\"VERSION\",\"result\":\"GREATER\",\"key\":\"Yg==\",\"version\":\"1\"},"
               "{\"target\":\"MOD\",\"result\":\"EQUAL\",\"key\":\"Yw==\",\"mod_revision\":\"2\"}],"
               "\"success\":["
               "{\"request_put\":{\"key\":\"YQ==\",\"value\":\"\",\"lease\":\"3\"}},"
               "{\"request_delete_range\":{\"key\":\"Yg==\"}}]}");
}

static int read_text(struct etcd_reply *reply, enum etcd_method method, const char *text)
{
    return etcd_reply_read(reply, method, "/a/", text, strlen(text));
}

// Numbers come as texts, but plain numbers are accepted; a key with a zero byte is ignored.
static void test_entries(void)
{
    struct etcd_reply reply;
    int rc =
        read_text(&reply, ETCD_RANGE,
                  "{\"header\":{\"revision\":\"9\"},\"new\":[],\"kvs\":["
                  "{\"key\":\"L2EveA==\",\"mod_revision\":\"8\",\"version\":2,\"lease\":\"-4\","
                  "\"value\":\"AP8=\"},"
                  "{\"key\":\"L2EvAA==\",\"mod_revision\":\"8\",\"version\":\"1\"},"
                  "{\"key\":\"L2EveQ==\",\"mod_revision\":7,\"version\":\"1\"}]}");
    CHECK(rc == 0 && reply.answer.revision == 9 && reply.answer.n == 2, "%d, %s", rc, reply.why);
    if (rc == 0 && reply.answer.n == 2) {
        const struct etcd_entry *entry = reply.answer.entries;
        CHECK(strcmp(entry[0].key, "/a/x") == 0 && entry[0].mod_revision == 8, "%s", entry[0].key);
        CHECK(entry[0].length == 2 && memcmp(entry[0].value, "\0\xff", 3) == 0, "a value of bytes");
        CHECK(entry[0].version == 2 && entry[0].lease == -4, "version and lease");
        CHECK(strcmp(entry[1].key, "/a/y") == 0 && entry[1].length == 0, "%s", entry[1].key);
    }
    etcd_reply_free(&reply);
}

static void test_errors(void)
{
    static const struct {
        enum etcd_method method;
        int rc;
        const char *text;
    } cases[] = {
        {ETCD_RANGE, -EKEYEXPIRED, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}"},
        {ETCD_KEEPALIVE, -ENOENT,
         "{\"code\":5,\"message\":\"etcdserver: requested lease not found\",\"details\":[]}"},
        {ETCD_WATCH, -EIO, "{\"error\":{\"message\":\"etcdserver: no leader\"}}"},
        {ETCD_TXN, -ENOSPC, "{\"error\":\"etcdserver: mvcc: database space exceeded\"}"},
        {ETCD_RANGE, -EIO, "{\"error\":\"etcdserver: authentication is not enabled\"}"},
        {ETCD_AUTHENTICATE, 0, "{\"error\":\"etcdserver: authentication is not enabled\"}"},
        {ETCD_AUTHENTICATE, -EACCES, "{\"error\":\"etcdserver: authentication failed, no\"}"},
        {ETCD_AUTHENTICATE, -EPROTO, "{\"token\":\"a\\r\\nX-Other: b\"}"},
        {ETCD_WATCH, -EOVERFLOW, "{\"result\":{\"canceled\":true,\"compact_revision\":\"7\"}}"},
        {ETCD_WATCH, -EACCES,
         "{\"result\":{\"canceled\":true,\"cancel_reason\":\"permission denied\"}}"},
        {ETCD_RANGE, -EPROTO, "{\"header\":{\"revision\":\"9\"},\"canceled\":true,\"kvs\":1}"},
        {ETCD_RANGE, -EPROTO, "{\"canceled\":true}"},
        {ETCD_GRANT, -EPROTO, "{\"header\":{\"revision\":\"9\"},\"ID\":\"7\",\"TTL\":\"0\"}"},
        {ETCD_KEEPALIVE, 0, "{\"result\":{\"header\":{\"revision\":\"9\"},\"ID\":\"7\"}}"},
        {ETCD_KEEPALIVE, -EPROTO, "{\"header\":{\"revision\":\"9\"},\"ID\":\"7\"}"},
        {ETCD_RANGE, -EPROTO, "{\"header\":{\"revision\":\"9\"}} {}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct etcd_reply reply;
        const int rc = read_text(&reply, cases[i].method, cases[i].text);
        CHECK(rc == cases[i].rc && !rc == !reply.why[0], "%s: %d, %s", cases[i].text, rc,
              reply.why);
        etcd_reply_free(&reply);
    }
}

int main(void)
{
    TEST(test_ranges());
    TEST(test_leases());
    TEST(test_transactions());
    TEST(test_entries());
    TEST(test_errors());
    return test_end();
}
