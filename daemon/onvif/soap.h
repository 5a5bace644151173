// SOAP: calls over HTTP to one camera by libcurl, and the XML that a camera sends.
#ifndef FRAMED_DAEMON_ONVIF_SOAP_H
#define FRAMED_DAEMON_ONVIF_SOAP_H

#include <libxml/tree.h>
#include <stddef.h>
#include <stdint.h>

// --- xml.c: XML from the network is parsed by libxml2 without a DTD, without files and within a
// size limit, and read by paths of local names; the sender's prefixes do not matter

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

// --- soap.c: calls from one thread. A password is tried once: the first request goes without it,
// and once the camera has refused a request with it, nothing more is sent. So a camera never locks
// out framed for repeated failures.

struct soap;

struct soap_options {
    const char *user, *password; // user NULL: no login; must outlive the soap
    int64_t deadline_ns;         // CLOCK_MONOTONIC, for all calls together
};

int soap_open(struct soap **ret, const struct soap_options *); // 0 or -ENOMEM
void soap_close(struct soap *);                                // accepts NULL

// Sets the camera's clock minus this box's, since a digest must contain the camera's time. Beyond a
// day no WS-Security digest is sent: somebody could use it when that time comes.
void soap_set_clock(struct soap *, int64_t ahead_s);

// Posts `body`, the content of the SOAP body, to `url`, and sets *ret to the response, for
// xmlFreeDoc. Returns 0; -EACCES: the camera requires a login, or refused it; another negative
// errno: no usable response.
int soap_call(struct soap *, const char *url, const char *body, xmlDoc **ret);

// Why the last failed call failed: a printable clause without secrets.
const char *soap_why(const struct soap *);

#endif
