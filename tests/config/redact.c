// What people see of a configuration's text, right or broken: everything but its secrets.
#include "config/redact.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static void expect(const char *text, const char *wanted)
{
    char *shown = config_text_redacted(text, strlen(text));
    CHECK(shown && strcmp(shown, wanted) == 0, "%s\nis shown as\n%s\nnot as\n%s", text, shown,
          wanted);
    free(shown);
}

static void test_what_stays(void)
{
    static const char *const texts[] = {
        "",
        "\n\n",
        "cameras:\n  gate:\n    url: rtsp://10.0.0.5:554/a # yes\n",
        "cameras: {gate: {url: 'rtsp://10.0.0.5/a', outputs: {o: {sink: \"tcp:127.0.0.1:5000\"}}}}",
        "http: 127.0.0.1:8780\nhttp_write: true",
        "http_token: ${FRAMED_HTTP_TOKEN}\n",
        "{http_token: \"${A}\", http: 80}\n",
        "pictures: keyframes\nwarp: [1, 2]\r\n",
        "tcp://[::1]:5000\n",
        "é: ü\n",
        "url: /data/a:b.mp4\nurl: 'file:a'\nurl: ${URL:-x}\nurl: clip.mp4\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], texts[i]);
}

static void test_what_goes(void)
{
    expect("url: rtsp://viewer:Zorn@Giebel@h/a?x=1\n", "url: rtsp://***@h/a?x=1\n");
    expect("  # was rtsp://viewer:Zorn@h/a\n", "  # was rtsp://***@h/a\n");
    expect("url: rtsp://h/a?user=v&password=Zorn&c=1\n",
           "url: rtsp://h/a?user=***&password=***&c=1\n");
    expect("http_token: Zorn\nx: y\n", "http_token: ***\nx: y\n");
    expect("http_token: Zorn,Giebel # x\n", "http_token: ***\n");
    expect("http_token: ${A:-Zorn}\n", "http_token: ***\n");
    expect("http_token: a${A}\n", "http_token: ***\n");
    expect("{password: a${A}b, x: y}\n", "{password: ***, x: y}\n");
    expect("options: {decryption_key: Zorn, x: y, 'password' : \"Zo,rn\"}\n",
           "options: {decryption_key: ***, x: y, 'password' : ***}\n");
    expect("url: viewer:Zorn\nx: y\n", "url: ***\nx: y\n");
    expect("notify: {webhook: https://h/Zorn}\n", "notify: {webhook: ***}\n");
    expect("mqtt:\n  password: |\n    Zorn\n    Giebel\n  ca: x\n",
           "mqtt:\n  password: ***\n    ***\n    ***\n  ca: x\n");
    expect("password:\n  Zorn\nx: y\n", "password:\n  ***\nx: y\n");
    expect("{password: 'Zorn\n  Giebel', x: y}\n", "{password: ***\n  ***\n");
}

// Where libyaml reads more than stands in one line, or other characters than stand there.
static void test_other_writings(void)
{
    static const char *const texts[] = {
        "url: rtsp://viewer:Zorn\n  Giebel@h/a\n",
        "url: \"rtsp://viewer:Zorn\\x40h/a\"\n",
        "url: \"rtsp:\\/\\/viewer:Zorn@h/a\"\n",
        "url: >\n  rtsp://viewer:Zorn\n  Giebel@h\n",
        "url: rtsp://viewer:Zorn #Giebel@h/a\n",
        "? rtsp://viewer:Zorn@h\n- x\n",
        "url: *rtsp://viewer:Zorn@h\n",
        "a: [\nurl: rtsp://viewer:Zorn@h\n",
        "\turl: rtsp://viewer:Zorn Giebel@h\n",
        "ü: \"é\"\nurl: \"rtsp:\\/\\/viewer:Zorn@h/a\"\n",
        "password: &x Zorn\n",
        "a: b: password: Zorn\n",
        "- password: Zorn\n  x: y\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *shown = config_text_redacted(texts[i], strlen(texts[i]));
        CHECK(!strcasestr(shown, "zorn") && !strcasestr(shown, "giebel"), "%s\nis shown as\n%s",
              texts[i], shown);
        int lines = 0;
        for (const char *c = texts[i]; *c; c++)
            lines += *c == '\n';
        for (const char *c = shown; *c; c++)
            lines -= *c == '\n';
        CHECK(lines == 0, "%s\nhas other lines as\n%s", texts[i], shown);
        free(shown);
    }
}

static void test_bytes(void)
{
    char *shown = config_text_redacted("a\0b\xff\n", 5);
    CHECK(strcmp(shown, "a?b\xff\n") == 0, "%s", shown);
    free(shown);
}

int main(void)
{
    TEST(test_what_stays());
    TEST(test_what_goes());
    TEST(test_other_writings());
    TEST(test_bytes());
    return test_end();
}
