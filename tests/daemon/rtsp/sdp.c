// SDPs as cameras write them, and the choice of the track.
#include "daemon/rtsp/sdp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

#define SPS  "Z0LAHtkDxWhAAAADAEAAAAwDxYuS"
#define PPS  "aMuMsg=="
#define HVPS "QAEMAf//AWAAAAMAsAAAAwAAAwBdqgJA"
#define HSPS "QgEBAWAAAAMAsAAAAwAAAwBdoAKAgC0WNrkky/AIAAADAAgAAAMAyEA="
#define HPPS "RAHA8vA8kAA="
#define HEX_SPS                                                                                    \
    "00000001"                                                                                     \
    "6742c01ed903c56840000003004000000c03c58b92"
#define HEX_PPS                                                                                    \
    "00000001"                                                                                     \
    "68cb8cb2"

static struct { // of the running test
    struct sdp sdp;
    struct sdp_media behind; // an omitted section would be written here
} parsed;
static struct sdp *const sdp = &parsed.sdp;

static void parse(const char *text)
{
    static const struct sdp_media untouched;
    const size_t bytes = strlen(text);
    char *exact = malloc(bytes ? bytes : 1); // for sanitizers: no zero after it
    if (!exact)
        abort();
    memcpy(exact, text, bytes);
    const int rc = sdp_parse(sdp, exact, bytes);
    CHECK(rc == 0, "%d: %s", rc, text);
    CHECK(!memcmp(&parsed.behind, &untouched, sizeof untouched), "written behind: %s", text);
    free(exact);
}

static void parse_h264(const char *lines)
{
    char text[2 * SDP_CONTROL_MAX];
    snprintf(text, sizeof text,
             "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=x\r\nt=0 0\r\n"
             "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n%s",
             lines);
    parse(text);
}

static const char *sets_of(const struct sdp_media *media)
{
    static char hex[2 * SDP_SETS_MAX + 1];
    *hex = 0;
    for (int i = 0; i < media->sets_bytes; i++)
        sprintf(hex + 2 * i, "%02x", media->sets[i]);
    return hex;
}

static void test_plain(void)
{
    parse("v=0\r\no=- 1109162014219182 1 IN IP4 10.0.0.5\r\ns=Media Presentation\r\n"
          "e=NONE\r\nb=AS:5100\r\nt=0 0\r\na=control:rtsp://10.0.0.5/s/\r\na=tool:LIVE555 "
          "Streaming Media v2017.06.04\r\n"
          "m=video 0 RTP/AVP 96\r\nc=IN IP4 0.0.0.0\r\nb=AS:5000\r\na=recvonly\r\n"
          "a=x-dimensions:1920,1080\r\na=control:trackID=1\r\na=rtpmap:96 H264/90000\r\n"
          "a=fmtp:96 profile-level-id=420029; packetization-mode=1; sprop-parameter-sets=" SPS
          "," PPS "\r\na=framerate:25.0\r\n"
          "m=audio 0 RTP/AVP 8\r\na=rtpmap:8 PCMA/8000\r\na=control:trackID=2\r\n");
    const struct sdp_media *video = &sdp->media[0], *audio = &sdp->media[1];
    CHECK(sdp->n_media == 2 && sdp_choose_video(sdp, -1) == 0, "%d", sdp->n_media);
    CHECK(!strcmp(sdp->control, "rtsp://10.0.0.5/s/"), "%s", sdp->control);
    CHECK(video->video && !strcmp(video->kind, "video") && !strcmp(video->encoding, "H264") &&
              video->codec == SDP_H264 && video->payload_type == 96 && video->clock_rate == 90000,
          "%s %s", video->kind, video->encoding);
    CHECK(!strcmp(video->control, "trackID=1") && video->width == 1920 && video->height == 1080 &&
              video->rate == 25,
          "%s %dx%d %f", video->control, video->width, video->height, video->rate);
    CHECK(!strcmp(sets_of(video), HEX_SPS HEX_PPS), "%s", sets_of(video));
    CHECK(!audio->video && !strcmp(audio->encoding, "PCMA") && audio->codec == SDP_OTHER &&
              audio->payload_type == 8 && audio->clock_rate == 8000 &&
              !strcmp(audio->control, "trackID=2"),
          "%s %d", audio->encoding, audio->clock_rate);
}

// Malformed lines do not affect the track after them.
static void test_bad_lines(void)
{
    static const char track[] = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:t";
    static const char *const before[] = {
        "",
        "v=0\r\n",                                  // neither o= nor s=
        "v=0\r\ns=a\r\ns=b\r\n",                    // several s=
        "o=- 1001 1 IN\r\n",                        // Uniview
        "o=-  1.5 -1 IN IP4\r\n",                   // no address
        "c=IN\r\n",                                 // Uniview
        "a=range:npt=0-\r\ns=late\r\n",             // attributes before s=
        "\r\n\r\n  \r\n=\r\nx\r\na\r\na=\r\nm\r\n", // no lines at all
        "a=:\r\na=fmtp:\r\na=fmtp\r\na=control\r\n",
        "s=\xff\xfe\x01\r\n",
        "m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 TP-LINK/90000\r\n"
        "a=control:tp\r\nc=IN IP4 1.2.3.4\r\na=framerate:9\r\n",
        "m=metadata\r\na=control:meta\r\n",
        "m=text 0 RTP/AVP\r\n",
        "m=\r\n",
        "m=video -1 RTP/AVP 128\r\n",
        "m=video 0 RTP/AVP -96\r\n",
        "m=video 0 RTP/AVP 99999999999\r\n",
        "m=a-kind-that-is-too-long 0 RTP/AVP 96\r\n",
    };
    char text[512];
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        snprintf(text, sizeof text, "%s%s", before[i], track);
        parse(text);
        const struct sdp_media *media = &sdp->media[0];
        CHECK(sdp->n_media == 1 && sdp_choose_video(sdp, -1) == 0, "%s: %d", before[i],
              sdp->n_media);
        CHECK(media->codec == SDP_H264 && !strcmp(media->control, "t") && media->rate == 0 &&
                  !*media->address && !*sdp->control,
              "%s: %s", before[i], media->control);
    }
    static const char *const none[] = {"", "v=0\r\n", "m=\r\n", "m=video 0 RTP/AVP\r\n",
                                       "<html>no</html>"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(sdp_parse(sdp, none[i], strlen(none[i])) == -EINVAL, "%s", none[i]);
    parse("m=video 0 RTP/AVP 96\na=rtpmap:96 \x9bH\x1b/90000\n");
    CHECK(!strcmp(sdp->media[0].encoding, "?H?"), "%s", sdp->media[0].encoding);
}

static void test_choice(void)
{
    // Audio first, then one payload type for both; directions are ignored.
    parse("m=audio 0 RTP/AVP 96\na=rtpmap:96 mpeg4-generic/16000\n"
          "a=fmtp:96 config=1408;mode=AAC-hbr\na=sendonly\n"
          "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=sendonly\n"
          "a=fmtp:96 sprop-parameter-sets=" SPS "," PPS "\n"
          "m=application 0 RTP/AVP 107\na=rtpmap:107 vnd.onvif.metadata/90000\n");
    CHECK(sdp->n_media == 3 && sdp_choose_video(sdp, -1) == 1 && sdp->media[1].sets_bytes, "%d",
          sdp_choose_video(sdp, -1));
    CHECK(sdp->media[0].clock_rate == 16000 && !sdp->media[0].sets_bytes, "audio");
    // The first video has an unsupported codec.
    parse("m=video 0 RTP/AVP 98\na=rtpmap:98 MP4V-ES/90000\nm=audio 0 RTP/AVP 26\n"
          "m=Video 0 RTP/AVP 97\na=rtpmap:97 h265/90000\nm=video 0 RTP/AVP 26\n");
    CHECK(sdp_choose_video(sdp, -1) == 2 && sdp->media[2].codec == SDP_H265, "%d",
          sdp_choose_video(sdp, -1));
    CHECK(!strcmp(sdp->media[0].encoding, "MP4V-ES") && sdp->media[1].codec == SDP_OTHER, "others");
    parse("m=audio 0 RTP/AVP 0\nm=application 0 RTP/AVP 107\n");
    CHECK(sdp_choose_video(sdp, -1) == -1, "no video");

    char text[2048] = "";
    for (int i = 0; i <= SDP_MEDIA_MAX; i++)
        sprintf(text + strlen(text), "m=audio 0 RTP/AVP 0\na=control:t%d\n", i);
    strcat(text, "m=video 0 RTP/AVP 26\na=control:late\n");
    parse(text);
    CHECK(sdp->n_media == SDP_MEDIA_MAX && sdp_choose_video(sdp, -1) == -1 &&
              !strcmp(sdp->media[SDP_MEDIA_MAX - 1].control, "t31") && !*sdp->control,
          "more tracks than are kept");
}

// The choice among several payload types of an m= line, and its parameters.
static void test_formats(void)
{
    static const struct {
        const char *lines;
        int preferred, payload_type; // -1: no video for us
        enum sdp_codec codec;
        const char *hex, *control;
    } cases[] = {
        {"m=video 0 RTP/AVP 98 96\na=rtpmap:98 vnd.onvif.metadata/90000\na=rtpmap:96 H264/90000\n"
         "a=control:t\na=fmtp:96 sprop-parameter-sets=" SPS "," PPS "\n",
         -1, 96, SDP_H264, HEX_SPS HEX_PPS, "t"},
        {"m=video 0 RTP/AVP 98 96\na=control:t\na=rtpmap:96 H264/90000\na=rtpmap:98 "
         "MP4V-ES/90000\n",
         -1, 96, SDP_H264, "", "t"},
        {"m=video 0 RTP/AVP 98 96\na=rtpmap:96 H264/90000\n", -1, 96, SDP_H264, "", ""},
        {"m=video 0 RTP/AVP 34 33 26\n", -1, 26, SDP_JPEG, "", ""},
        {"m=video 0 RTP/AVP 31 97 98 99\na=rtpmap:99 H265/90000\n", -1, 99, SDP_H265, "", ""},
        {"m=video 0 RTP/AVP 96 x -1 200 97\na=rtpmap:97 JPEG/90000\n", -1, 97, SDP_JPEG, "", ""},
        {"m=video 0 RTP/AVP 98 96\na=rtpmap:98 H265/90000\na=rtpmap:96 H264/90000\n", -1, 98,
         SDP_H265, "", ""},
        {"m=video 0 RTP/AVP 98 96\na=rtpmap:98 H265/90000\na=rtpmap:96 H264/90000\n", 96, 96,
         SDP_H264, "", ""},
        {"m=video 0 RTP/AVP 98\na=rtpmap:98 H265/90000\nm=video 0 RTP/AVP 96\n"
         "a=rtpmap:96 H264/90000\n",
         96, 98, SDP_H265, "", ""}, // of another track
        {"m=video 0 RTP/AVP 98 97\na=control:no\nm=video 0 RTP/AVP 99 96\na=control:t\n"
         "a=rtpmap:96 H264/90000\n",
         -1, 96, SDP_H264, "", "t"},
        // only its parameters name it; the m= line does not list it
        {"m=video 0 RTP/AVP 96\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=" SPS "\n", -1,
         96, SDP_H264, HEX_SPS, ""},
        {"m=video 0 RTP/AVP 96\na=fmtp:96 sprop-vps=" HVPS "\n", -1, 96, SDP_H265,
         "00000001"
         "40010c01ffff016000000300b0000003000003005daa0240",
         ""},
        {"m=video 0 RTP/AVP 98\na=control:t\na=rtpmap:96 H264/90000\n", -1, 96, SDP_H264, "", "t"},
        {"m=video 0 RTP/AVP 96 97\na=rtpmap:96 VP8/90000\na=rtpmap:97 rtx/90000\n", -1, -1,
         SDP_OTHER, "", ""},
        {"m=audio 0 RTP/AVP 0 26\na=rtpmap:96 H264/90000\n", -1, -1, SDP_OTHER, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].lines);
        const int chosen = sdp_choose_video(sdp, cases[i].preferred);
        CHECK((chosen < 0) == (cases[i].payload_type < 0), "%s: %d", cases[i].lines, chosen);
        if (chosen < 0)
            continue;
        const struct sdp_media *media = &sdp->media[chosen];
        CHECK(media->payload_type == cases[i].payload_type && media->codec == cases[i].codec &&
                  !strcmp(media->control, cases[i].control) &&
                  !strcmp(sets_of(media), cases[i].hex),
              "%s: %d %s %s", cases[i].lines, media->payload_type, media->encoding, sets_of(media));
    }
    char text[512] = "m=video 0 RTP/AVP";
    for (int i = 0; i < 50; i++)
        sprintf(text + strlen(text), " %d", 40 + i);
    strcat(text, "\nm=video 0 RTP/AVP 26\n");
    parse(text);
    CHECK(sdp->n_media == SDP_MEDIA_MAX && sdp_choose_video(sdp, -1) == -1, "%d", sdp->n_media);
}

static void test_rtpmap(void)
{
    static const struct {
        const char *lines, *encoding;
        enum sdp_codec codec;
        int payload_type;
    } cases[] = {
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000 \r\n", "H264", SDP_H264, 96}, // XM
        {"m=video 0 RTP/AVP 96\r\na=rtpmap: 96  H264 / 90000\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP 26\r\n", "JPEG", SDP_JPEG, 26},
        {"m=video 0 RTP/AVP 26\r\na=rtpmap:26 JPEG/90000\r\n", "JPEG", SDP_JPEG, 26},
        {"m=video 0 RTP/AVP 35\r\na=rtpmap:35 H264/90000\r\n", "H264", SDP_H264, 35}, // Bosch
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/0\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/-8\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP 96\r\na=rtpmap:97 H265/90000\r\na=rtpmap:96 H264/90000\r\n", "H264",
         SDP_H264, 96},
        {"m=video 0 RTP/AVP 96 97\r\na=rtpmap:96 HEVC/90000\r\na=rtpmap:97 rtx/90000\r\n", "HEVC",
         SDP_H265, 96},
        {"m=video 0 RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP/TCP 96\r\na=rtpmap:96 H264/90000\r\n", "H264", SDP_H264, 96},
        {"m=video 0 RTP/AVP 96\r\n", "", SDP_OTHER, 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].lines);
        const struct sdp_media *media = &sdp->media[0];
        CHECK(media->codec == cases[i].codec && !strcmp(media->encoding, cases[i].encoding) &&
                  media->payload_type == cases[i].payload_type,
              "%s: %s %d", cases[i].lines, media->encoding, media->payload_type);
        CHECK(media->clock_rate == 90000 || !*cases[i].encoding, "%d", media->clock_rate);
    }
    parse("m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/30000\r\n"); // Cisco, Toshiba
    CHECK(sdp->media[0].clock_rate == 30000, "%d", sdp->media[0].clock_rate);
}

static void test_h264_sets(void)
{
    static const struct {
        const char *lines, *hex;
    } cases[] = {
        {"", ""},
        {"a=fmtp:96\n", ""},
        {"a=fmtp:96 packetization-mode=1\n", ""},
        {"a=fmtp:96 sprop-parameter-sets=\n", ""},
        {"a=fmtp:96 sprop-parameter-sets=,;\n", ""},
        {"a=fmtp:96 sprop-parameter-sets=" SPS "\n", HEX_SPS},
        {"a=fmtp:96 sprop-parameter-sets=" PPS "\n", HEX_PPS},
        {"a=fmtp:96 sprop-parameter-sets=" PPS "," SPS "\n", HEX_PPS HEX_SPS},
        {"a=fmtp:96 Sprop-Parameter-Sets = " SPS " , " PPS " ;x\n", HEX_SPS HEX_PPS},
        {"a=fmtp:96 sprop-parameter-sets=" SPS ",aMuMsg\n", HEX_SPS HEX_PPS}, // no padding
        {"a=fmtp:96 profile-level-id=TeAo;packetization-mode=0;sprop-parameter-sets=" SPS "," PPS
         ";sprop-max-don-diff=3\n",
         HEX_SPS HEX_PPS},
        // with start codes: before each, and both in one
        {"a=fmtp:96 sprop-parameter-sets=AAAAAWdCwB7ZA8VoQAAAAwBAAAAMA8WLkg==,AAABaMuMsg==\n",
         HEX_SPS HEX_PPS},
        {"a=fmtp:96 sprop-parameter-sets=AAAAAWdCwB7ZA8VoQAAAAwBAAAAMA8WLkgAAAAFoy4yyAAA=\n",
         HEX_SPS HEX_PPS},
        {"a=fmtp:96 sprop-parameter-sets=%%%," PPS ",Z!LAHg==\n", HEX_PPS}, // no base64
        // of another payload type; in another section, if the own one has none
        {"a=fmtp:97 sprop-parameter-sets=" SPS "," PPS "\n", ""},
        {"m=audio 0 RTP/AVP 0\na=fmtp:96 sprop-parameter-sets=" SPS "," PPS "\n", HEX_SPS HEX_PPS},
        {"a=fmtp:96 packetization-mode=1\nm=audio\na=fmtp:96 sprop-parameter-sets=" SPS "," PPS
         "\n",
         HEX_SPS HEX_PPS},
        {"a=fmtp:96 sprop-parameter-sets=" SPS "\nm=audio 0 RTP/AVP 96\n"
         "a=fmtp:96 sprop-parameter-sets=" PPS "\n",
         HEX_SPS},
        {"a=fmtp:96 sprop-parameter-sets=" SPS "\na=fmtp:96 sprop-parameter-sets=" PPS "\n",
         HEX_SPS HEX_PPS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse_h264(cases[i].lines);
        const struct sdp_media *media = &sdp->media[0];
        CHECK(!strcmp(sets_of(media), cases[i].hex), "%s: %s", cases[i].lines, sets_of(media));
        CHECK(!media->donl, "%s", cases[i].lines);
    }
    parse("m=video 0 RTP/AVP 96\na=fmtp:96 sprop-parameter-sets=" SPS "," PPS
          "\na=rtpmap:96 H264/90000");
    CHECK(!strcmp(sets_of(&sdp->media[0]), HEX_SPS HEX_PPS), "fmtp before rtpmap");
}

static void test_h265_sets(void)
{
    static const char track[] = "m=video 0 RTP/AVP 98\na=rtpmap:98 H265/90000\na=fmtp:98 ";
    static const struct {
        const char *parameters;
        int types[3];
        bool donl;
    } cases[] = {
        {"sprop-vps=" HVPS ";sprop-sps=" HSPS ";sprop-pps=" HPPS, {32, 33, 34}, false},
        {"sprop-pps=" HPPS ";sprop-sps=" HSPS ";sprop-vps=" HVPS, {34, 33, 32}, false},
        {"sprop-parameter-sets=" HSPS "," HPPS "," HVPS, {33, 34, 32}, false},
        {"sprop-sps=" HSPS ";sprop-pps=" HPPS, {33, 34}, false},
        {"profile-id=1", {0}, false},
        {"sprop-max-don-diff=0;sprop-sps=" HSPS, {33}, false},
        {"sprop-max-don-diff=2", {0}, true},
    };
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%s%s\r\n", track, cases[i].parameters);
        parse(text);
        const struct sdp_media *media = &sdp->media[0];
        int n = 0, types[3] = {0};
        for (int at = 0; at + 4 < media->sets_bytes; at++)
            if (!memcmp(media->sets + at, "\0\0\0\1", 4) && n < 3)
                types[n++] = media->sets[at + 4] >> 1;
        CHECK(!memcmp(types, cases[i].types, sizeof types), "%s: %d %d %d", cases[i].parameters,
              types[0], types[1], types[2]);
        CHECK(media->donl == cases[i].donl, "%s", cases[i].parameters);
    }
}

// More and longer sets than fit: every set that fits is whole.
static void test_large_sets(void)
{
    static const struct {
        int sps_bytes, sets_bytes;
    } cases[] = {
        {SDP_SETS_MAX - 14, SDP_SETS_MAX - 2}, // with two start codes and a PPS of 4 bytes
        {SDP_SETS_MAX - 11, SDP_SETS_MAX - 7},
        {SDP_SETS_MAX - 5, SDP_SETS_MAX - 1},
        {SDP_SETS_MAX - 2, 8},
        {SDP_SETS_MAX + 1, 8},
        {SDP_SETS_MAX + 4, 8},
    };
    char lines[3500] = "a=fmtp:96 sprop-parameter-sets=";
    for (int i = 0; i < 40; i++)
        strcat(lines, SPS ",");
    parse_h264(lines);
    CHECK(sdp->media[0].sets_bytes == 40 * 25, "%d", sdp->media[0].sets_bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        strcpy(lines, "a=fmtp:96 sprop-parameter-sets=Z0Jv");
        for (int bytes = 3; bytes < cases[i].sps_bytes; bytes += 3)
            strcat(lines, "b29v");
        strcat(lines, "," PPS);
        parse_h264(lines);
        CHECK(sdp->media[0].sets_bytes == cases[i].sets_bytes, "%d: %d", cases[i].sps_bytes,
              sdp->media[0].sets_bytes);
    }
}

static void test_attributes(void)
{
    static const struct {
        const char *lines;
        int width, height;
        double rate;
        bool pli, fir;
    } cases[] = {
        {"a=x-dimensions:1920, 1080\n", 1920, 1080, 0, false, false},
        {"a=x-dimensions: 640,480 \n", 640, 480, 0, false, false},
        {"a=x-dimensions:1920\n", 0, 0, 0, false, false},
        {"a=x-dimensions:-2,4\n", 0, 0, 0, false, false},
        {"a=x-dimensions:99999,4\n", 0, 0, 0, false, false},
        {"a=framesize:96 2592-1944\n", 2592, 1944, 0, false, false},
        {"a=framesize:97 2592-1944\n", 0, 0, 0, false, false},
        {"a=cliprect:0,0,1944,2592\n", 2592, 1944, 0, false, false},
        {"a=cliprect:0,0\n", 0, 0, 0, false, false},
        {"a=imageattr:96 recv [x=1,y=2] send [x=2592,y=1944,sar=1]\n", 2592, 1944, 0, false, false},
        {"a=imageattr:96 send [x=[320:16:640],y=480]\n", 0, 0, 0, false, false},
        {"a=imageattr:96 send *\n", 0, 0, 0, false, false},
        {"a=fmtp:96 quality=1; width=2592;height=1944\n", 2592, 1944, 0, false, false},
        {"a=fmtp:97 width=2592;height=1944\n", 0, 0, 0, false, false},
        {"a=framerate:0S\na=framerate:25\n", 0, 0, 25, false, false}, // XM
        {"a=framerate:25\na=framerate:0S\n", 0, 0, 25, false, false},
        {"a=x-framerate: 12.5\n", 0, 0, 12.5, false, false},
        {"a=framerate:-1\n", 0, 0, 0, false, false},
        {"a=framerate:nan\n", 0, 0, 0, false, false},
        {"a=framerate:1e9\n", 0, 0, 0, false, false},
        {"a=rtcp-fb:96 nack pli\n", 0, 0, 0, true, false},
        {"a=rtcp-fb:* ccm  fir\n", 0, 0, 0, false, true},
        {"a=rtcp-fb:* nack\na=rtcp-fb:96 ccm tmmbr\n", 0, 0, 0, false, false},
        {"a=rtcp-fb:97 nack pli\n", 0, 0, 0, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse_h264(cases[i].lines);
        const struct sdp_media *media = &sdp->media[0];
        CHECK(media->width == cases[i].width && media->height == cases[i].height, "%s: %dx%d",
              cases[i].lines, media->width, media->height);
        CHECK(media->rate == cases[i].rate && media->pli == cases[i].pli &&
                  media->fir == cases[i].fir,
              "%s: %f %d %d", cases[i].lines, media->rate, media->pli, media->fir);
    }
}

static void test_control(void)
{
    char lines[SDP_CONTROL_MAX + 200];
    parse("a=control:*\r\nm=video 0 RTP/AVP 96\r\na=control: rtsp://h/s/t=1?a=b:c \r\n");
    CHECK(!strcmp(sdp->control, "*") && !strcmp(sdp->media[0].control, "rtsp://h/s/t=1?a=b:c"),
          "%s", sdp->media[0].control);
    for (int bytes = SDP_CONTROL_MAX - 1; bytes <= SDP_CONTROL_MAX; bytes++) {
        snprintf(lines, sizeof lines, "a=control:%0*d\n", bytes, 1);
        parse_h264(lines);
        CHECK(strlen(sdp->media[0].control) == (bytes < SDP_CONTROL_MAX ? SDP_CONTROL_MAX - 1 : 0),
              "%d", bytes);
    }
}

static void test_multicast(void)
{
    parse("c=IN IP4 239.1.2.3/64\nc=IN\nm=video 5004/2 RTP/AVP 96\n"
          "m=video 70000 RTP/AVP 96\nc=IN IP6 ff15::1/3\n"
          "m=video -5 RTP/AVP 96\nc=IN IP4 239.4.5.6 / 999\n"
          "m=video 1 RTP/AVP 96\nc=IN IP4\n"
          "m=video 1 RTP/AVP 96\nc=IN IP4 "
          "an.address.that.is.far.too.long.for.an.address.and.so.it.is.not.taken.at.all\n");
    static const struct {
        const char *address;
        int port, ttl;
    } expected[] = {{"239.1.2.3", 5004, 64},
                    {"ff15::1", 0, 0},
                    {"239.4.5.6", 0, 0},
                    {"239.1.2.3", 1, 64},
                    {"239.1.2.3", 1, 64}};
    for (int i = 0; i < 5; i++) {
        const struct sdp_media *media = &sdp->media[i];
        CHECK(!strcmp(media->address, expected[i].address) && media->port == expected[i].port &&
                  media->ttl == expected[i].ttl,
              "%d: %s %d %d", i, media->address, media->port, media->ttl);
    }
}

int main(void)
{
    TEST(test_plain());
    TEST(test_bad_lines());
    TEST(test_choice());
    TEST(test_formats());
    TEST(test_rtpmap());
    TEST(test_h264_sets());
    TEST(test_h265_sets());
    TEST(test_large_sets());
    TEST(test_attributes());
    TEST(test_control());
    TEST(test_multicast());
    return test_end();
}
