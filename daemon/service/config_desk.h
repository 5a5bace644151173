// The configuration by HTTP: the file's and the running one, checks of a text, and reloads. Files
// are read as work. Loop thread.
#ifndef FRAMED_DAEMON_SERVICE_CONFIG_DESK_H
#define FRAMED_DAEMON_SERVICE_CONFIG_DESK_H

#include "daemon/service/http.h"
#include "daemon/supervisor/reload.h"

struct config_desk {
    struct reload *reload;
    int readings; // under way; initially zero
};

// GET: {"path", "text": YAML of the files (config/print.h; null: they have mistakes),
// "running": the same of the running configuration, "mistakes":
// [{"file", "line", "column", "key", "text"}], "changes": [{"path": "cameras.gate", "change":
// "changed", "text": "cameras.gate: url changes"}] that a reload would make}.
void config_desk_show(struct config_desk *, struct http_exchange *);
// POST {"text"}: its {"mistakes"} in place of the file. Looks up, opens and changes nothing.
void config_desk_check(struct config_desk *, struct http_exchange *);
// POST: {"done", ...} as `framed reload` prints it, or 409 with {"error", "mistakes"}.
void config_desk_reload(struct config_desk *, struct http_exchange *);

#endif
