// What a peer has not read, as the kernel tells it.
#include "daemon/output/unread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

static char bytes[1 << 20];

static void test_unix(void)
{
    int fd[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "%s", strerror(errno));
    CHECK(unread_unix(fd[0]) == 0, "%d at first", (int)unread_unix(fd[0]));
    CHECK(send(fd[0], bytes, 1000, 0) == 1000, "send");
    CHECK(recv(fd[1], bytes, 999, 0) == 999, "recv");
    CHECK(unread_unix(fd[0]) > 0, "nothing with a byte left");
    CHECK(recv(fd[1], bytes, 1, 0) == 1, "recv");
    CHECK(unread_unix(fd[0]) == 0, "%d with none left", (int)unread_unix(fd[0]));
    close(fd[0]);
    close(fd[1]);
    CHECK(unread_unix(fd[0]) == -EBADF, "of a closed one");
}

struct pair {
    int sender, reader;
};

// A connection over `listen`, a numeric address, which the reader calls `connect_to`.
static struct pair connect_pair(const char *address, const char *connect_to)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    socklen_t length = sizeof v6;
    int both = 0, listener = socket(AF_INET6, SOCK_STREAM, 0);
    inet_pton(AF_INET6, address, &v6.sin6_addr);
    setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both);
    CHECK(bind(listener, (struct sockaddr *)&v6, sizeof v6) == 0, "bind: %s", strerror(errno));
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&v6, &length);
    bool is_v4 = inet_pton(AF_INET, connect_to, &v4.sin_addr) == 1;
    v4.sin_port = v6.sin6_port;
    if (!is_v4)
        inet_pton(AF_INET6, connect_to, &v6.sin6_addr);
    struct pair pair = {.reader = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0)};
    int rc = is_v4 ? connect(pair.reader, (struct sockaddr *)&v4, sizeof v4)
                   : connect(pair.reader, (struct sockaddr *)&v6, sizeof v6);
    CHECK(rc == 0, "connect: %s", strerror(errno));
    pair.sender = accept4(listener, NULL, NULL, 0);
    close(listener);
    return pair;
}

static void close_pair(struct pair pair)
{
    close(pair.sender);
    close(pair.reader);
}

// Acknowledged or not, what lies in the queue of a peer on this box is counted to the byte.
static void test_tcp_here(const char *address, const char *connect_to)
{
    struct pair pair = connect_pair(address, connect_to);
    struct unread unread = {0};
    int netlink = unread_open_netlink();
    CHECK(netlink >= 0, "netlink: %s", strerror(-netlink));
    CHECK(unread_tcp(&unread, netlink, pair.sender) == 0, "%s: not 0 at first", connect_to);
    CHECK(send(pair.sender, bytes, 1000, 0) == 1000, "send");
    usleep(100000); // acknowledged by then
    CHECK(unread_tcp(&unread, netlink, pair.sender) == 1000, "%s: %d of 1000", connect_to,
          (int)unread_tcp(&unread, netlink, pair.sender));
    CHECK(recv(pair.reader, bytes, 999, 0) == 999, "recv");
    CHECK(unread_tcp(&unread, netlink, pair.sender) == 1, "%s: a byte is left", connect_to);
    CHECK(recv(pair.reader, bytes, 1, 0) == 1, "recv");
    CHECK(unread_tcp(&unread, netlink, pair.sender) == 0, "%s: none is left", connect_to);
    CHECK(!unread.remote, "%s: remote", connect_to);
    close(netlink);
    close_pair(pair);
}

// Of one that cannot be asked for, the window tells that it stands still, and that it reads again.
static void test_tcp_elsewhere(void)
{
    struct pair pair = connect_pair("::", "127.0.0.1");
    struct unread unread = {0};
    CHECK(unread_tcp(&unread, -1, pair.sender) == 0, "at first");
    CHECK(unread.remote && unread.window > 0, "window %u", unread.window);
    CHECK(send(pair.sender, bytes, 100, 0) == 100, "send");
    usleep(100000);
    CHECK(unread_tcp(&unread, -1, pair.sender) == 0, "a little counts");
    while (send(pair.sender, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    usleep(100000);
    CHECK(unread_tcp(&unread, -1, pair.sender) > 0, "a full window does not count");
    for (int idle = 0; idle < 5;) {
        idle = recv(pair.reader, bytes, sizeof bytes, MSG_DONTWAIT) > 0 ? 0 : idle + 1;
        if (idle)
            usleep(20000);
    }
    CHECK(unread_tcp(&unread, -1, pair.sender) == 0, "%d with all read",
          (int)unread_tcp(&unread, -1, pair.sender));
    close_pair(pair);
}

int main(void)
{
    TEST(test_unix());
    TEST(test_tcp_here("::", "127.0.0.1"));
    TEST(test_tcp_here("::1", "::1"));
    TEST(test_tcp_here("::", "::1"));
    TEST(test_tcp_elsewhere());
    return test_end();
}
