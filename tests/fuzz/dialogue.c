#include "tests/fuzz/dialogue.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/fuzz/turns.h"

// --- one client

static void append(struct bytes_of *to, const char *bytes, size_t n)
{
    to->at = realloc(to->at, to->n + n + 1);
    memcpy(to->at + to->n, bytes, n);
    to->n += n;
    to->at[to->n] = 0;
}

static void connect_speaker(struct dialogue *dialogue)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, dialogue->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        MUST(errno == EAGAIN); // the queue is full
        settle(&dialogue->loop);
        MUST(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    }
    dialogue->current = dialogue->n++;
    struct speaker *speaker = &dialogue->speaker[dialogue->current];
    *speaker = (struct speaker){.fd = fd};
    append(&speaker->said, "", 0);
    append(&speaker->heard, "", 0);
}

static void say(struct speaker *speaker, const char *bytes, size_t n)
{
    ssize_t taken =
        speaker->fd < 0 || n == 0 ? 0 : send(speaker->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken > 0)
        append(&speaker->said, bytes, (size_t)taken);
}

// Returns false if there was nothing.
static bool hear(struct speaker *speaker)
{
    char bytes[65536];
    ssize_t n;
    bool any = false;
    if (speaker->fd < 0 || speaker->ended)
        return false;
    while ((n = recv(speaker->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        append(&speaker->heard, bytes, (size_t)n);
        any = true;
    }
    speaker->ended = n == 0 || errno != EAGAIN;
    return any || speaker->ended;
}

static void hang_up(struct speaker *speaker)
{
    if (speaker->fd >= 0)
        close(speaker->fd);
    speaker->fd = -1;
}

// --- all clients

static void hear_all(struct dialogue *dialogue)
{
    bool any;
    do {
        any = false;
        settle(&dialogue->loop);
        for (int i = 0; i < dialogue->n; i++)
            any |= hear(&dialogue->speaker[i]);
    } while (any);
}

// Runs the action that follows a backslash.
static void act(struct dialogue *dialogue, char action)
{
    struct speaker *speaker = &dialogue->speaker[dialogue->current];
    if (action == '+' && dialogue->n < SPEAKERS_MAX - 1) { // the last one is dialogue_ask's
        connect_speaker(dialogue);
    } else if (action == '>') {
        dialogue->current = (dialogue->current + 1) % dialogue->n;
    } else if (action == '.') {
        settle(&dialogue->loop);
    } else if (action == '<') {
        hear(speaker);
    } else if (action == '!' && speaker->fd >= 0) {
        shutdown(speaker->fd, SHUT_WR);
        speaker->silent = true;
    } else if (action == '-') {
        hang_up(speaker);
    } else {
        say(speaker, action == 'r' ? "\r" : &action, 1);
    }
}

void dialogue_open(struct dialogue *dialogue)
{
    *dialogue = (struct dialogue){0};
    snprintf(dialogue->path, sizeof dialogue->path, "/tmp/framed-fuzz-%d.sock", (int)getpid());
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&dialogue->loop);
}

void dialogue_run(struct dialogue *dialogue, const char *script, size_t size)
{
    connect_speaker(dialogue);
    for (const char *at = script, *end = script + size; at < end;) {
        const char *next = memchr(at, '\\', (size_t)(end - at));
        next = next ? next : end;
        say(&dialogue->speaker[dialogue->current], at, (size_t)(next - at));
        if (end - next > 1)
            act(dialogue, next[1]);
        at = next + 2;
    }
    hear_all(dialogue);
}

const struct speaker *dialogue_ask(struct dialogue *dialogue, const char *text, size_t size)
{
    connect_speaker(dialogue);
    say(&dialogue->speaker[dialogue->current], text, size);
    hear_all(dialogue);
    return &dialogue->speaker[dialogue->current];
}

void dialogue_hang_up(struct dialogue *dialogue)
{
    for (int i = 0; i < dialogue->n; i++)
        hang_up(&dialogue->speaker[i]);
    settle(&dialogue->loop);
}

void dialogue_close(struct dialogue *dialogue)
{
    settle(&dialogue->loop);
    MUST(uv_loop_close(&dialogue->loop) == 0);
    MUST(access(dialogue->path, F_OK) < 0);
    for (int i = 0; i < dialogue->n; i++) {
        hang_up(&dialogue->speaker[i]);
        free(dialogue->speaker[i].said.at);
        free(dialogue->speaker[i].heard.at);
    }
}
