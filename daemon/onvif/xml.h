// XML that comes from the network: parsed by libxml2 without a DTD, without files and within a
// size, and read by paths of local names, whatever prefixes its sender chose.
#ifndef FRAMED_DAEMON_ONVIF_XML_H
#define FRAMED_DAEMON_ONVIF_XML_H

#include <libxml/tree.h>
#include <stddef.h>

enum { XML_BYTES_MAX = 256 << 10 };

// For xmlFreeDoc. NULL: not well-formed, longer than XML_BYTES_MAX, or with a DTD.
xmlDoc *xml_read(const char *data, size_t size);

// The first element below `node` along `path` ("Body/GetProfilesResponse/Profiles"); `node` itself
// for "". NULL: there is none; accepts NULL.
const xmlNode *xml_find(const xmlNode *node, const char *path);
// The next sibling with the same local name; NULL: none.
const xmlNode *xml_next(const xmlNode *node);

// The text of that element, with one space for any number of spaces and control characters, none
// around it, and cut to `size` bytes of whole characters. "": there is none. Returns `to`.
char *xml_text(const xmlNode *node, const char *path, char *to, size_t size);

#endif
