// The lines that config_load and a reload print, as JSON.
#ifndef FRAMED_DAEMON_SERVICE_MISTAKES_JSON_H
#define FRAMED_DAEMON_SERVICE_MISTAKES_JSON_H

struct json_t;

// [{"file", "line", "column", "key", "text"}]; {"text"} alone for a line without a place. NULL: no
// memory.
struct json_t *mistakes_json(const char *lines);

#endif
