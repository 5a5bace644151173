#include "daemon/input/url.h"

#include <sys/stat.h>

static const struct url_input sources[] = {
    {URL_RTSP, false, true, "rtsp,rtp,tcp,udp,tls", "over rtsp"},
    {URL_TCP, false, true, "tcp", "over tcp"},
    {URL_UNIX, false, true, "unix", "over a unix socket"},
    {URL_PIPE, false, false, "pipe", "from a pipe"},
    {URL_FILE, false, false, "file", "from a file"},
    {URL_FILE, true, true, "pipe", "from a fifo"},
};

const struct url_input *url_input_of(const char *url)
{
    struct stat st;
    enum url_kind kind = config_url_kind(url);
    bool is_fifo = kind == URL_FILE && stat(config_url_path(url), &st) == 0 && S_ISFIFO(st.st_mode);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i].kind == kind && sources[i].fifo == is_fifo)
            return &sources[i];
    return NULL;
}
