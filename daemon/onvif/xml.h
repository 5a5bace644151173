// XML from the network: parsed by libxml2 without a DTD, without files and within a size limit, and
// read by paths of local names; the sender's prefixes do not matter.
#ifndef FRAMED_DAEMON_ONVIF_XML_H
#define FRAMED_DAEMON_ONVIF_XML_H

#include <libxml/tree.h>
#include <stddef.h>

enum { XML_BYTES_MAX = 256 << 10 };

// Returns a document for xmlFreeDoc. NULL: malformed, longer than XML_BYTES_MAX, or with a DTD.
xmlDoc *xml_read(const char *data, size_t size);

// Returns the first element below `node` along `path` ("Body/GetProfilesResponse/Profiles"); `node`
// itself for "". NULL: not found; accepts NULL.
const xmlNode *xml_find(const xmlNode *node, const char *path);
// Returns the next sibling with the same local name; NULL: none.
const xmlNode *xml_next(const xmlNode *node);

// Copies that element's text, with one space for each run of spaces and control characters, none at
// its ends, cut at a whole character to `size` bytes. "": not found. Returns `to`.
char *xml_text(const xmlNode *node, const char *path, char *to, size_t size);

#endif
