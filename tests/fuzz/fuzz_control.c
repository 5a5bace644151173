// Clients of the control socket that do anything: a complete line gets one line of answer and the
// end, any other finished input gets the end, and the next client is served.
#include "daemon/service/control.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/dialogue.h"
#include "tests/fuzz/turns.h"

enum { LARGE = 300000 }; // more than a socket takes at a time

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int asked;

static char *answer(void *opaque, const char *request)
{
    (void)opaque;
    asked++;
    if (strcmp(request, "nothing") == 0)
        return NULL;
    if (strcmp(request, "large") != 0)
        return strdup(request);
    char *text = malloc(LARGE + 1);
    memset(text, 'x', LARGE);
    text[LARGE] = 0;
    return text;
}

static const char *line_end(const struct speaker *speaker)
{
    size_t n = speaker->said.n < CONTROL_LINE_MAX ? speaker->said.n : CONTROL_LINE_MAX;
    return memchr(speaker->said.at, '\n', n);
}

static void handle(void *opaque, struct control_request *request, const char *line)
{
    control_reply(request, answer(opaque, line));
}

static void check_answer(const struct speaker *speaker, bool crowded)
{
    char request[CONTROL_LINE_MAX] = "";
    memcpy(request, speaker->said.at, (size_t)(line_end(speaker) - speaker->said.at));
    char *text = answer(NULL, request);
    size_t n = text ? strlen(text) : 0, heard = speaker->heard.n;
    MUST(speaker->ended);
    MUST(heard == n + (text != NULL) || (crowded && heard <= n));
    MUST(!text || memcmp(speaker->heard.at, text, heard < n ? heard : n) == 0);
    MUST(!text || heard <= n || speaker->heard.at[n] == '\n');
    free(text);
}

// `crowded`: the client may have been pushed out.
static void check(const struct speaker *speaker, bool crowded)
{
    bool over = speaker->silent || speaker->said.n >= CONTROL_LINE_MAX;
    if (speaker->fd < 0)
        return;
    if (line_end(speaker)) {
        check_answer(speaker, crowded);
        return;
    }
    MUST(speaker->heard.n == 0);
    MUST(speaker->ended == over || (speaker->ended && crowded));
}

static void check_all(const struct dialogue *dialogue)
{
    int lines = 0, called = asked;
    bool crowded = dialogue->n > CONTROL_CLIENTS_MAX;
    for (int i = 0; i < dialogue->n; i++)
        lines += line_end(&dialogue->speaker[i]) != NULL;
    MUST(crowded ? called <= lines : called == lines);
    for (int i = 0; i < dialogue->n; i++)
        check(&dialogue->speaker[i], crowded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control *control = NULL;
    struct dialogue dialogue;
    char why[256] = "";
    asked = 0;
    dialogue_open(&dialogue);
    MUST(control_open(&control, &dialogue.loop, dialogue.path, handle, NULL, why, sizeof why) == 0);
    dialogue_run(&dialogue, (const char *)data, size);
    check_all(&dialogue);
    const struct speaker *last = dialogue_ask(&dialogue, "status\n", 7);
    MUST(last->ended && strcmp(last->heard.at, "status\n") == 0);
    control_close(control);
    dialogue_close(&dialogue);
    return 0;
}
