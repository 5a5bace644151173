#include "daemon/onvif/soap.h"

#include <libxml/parser.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/log.h"

xmlDoc *xml_read(const char *data, size_t size)
{
    if (size == 0 || size > XML_BYTES_MAX)
        return NULL;
    xmlDoc *document = xmlReadMemory(data, (int)size, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                         XML_PARSE_NOBLANKS);
    // SOAP forbids a DTD, without which entities can neither grow nor include files of this box.
    if (document && (document->intSubset || document->extSubset)) {
        xmlFreeDoc(document);
        return NULL;
    }
    return document;
}

static bool is_named(const xmlNode *node, const char *name, size_t length)
{
    return node->type == XML_ELEMENT_NODE && strlen((const char *)node->name) == length &&
           memcmp(node->name, name, length) == 0;
}

const xmlNode *xml_find(const xmlNode *node, const char *path)
{
    while (node && *path) {
        const size_t length = strcspn(path, "/");
        node = node->children;
        while (node && !is_named(node, path, length))
            node = node->next;
        path += length + (path[length] == '/');
    }
    return node;
}

const xmlNode *xml_next(const xmlNode *node)
{
    const char *name = (const char *)node->name;
    do
        node = node->next;
    while (node && !is_named(node, name, strlen(name)));
    return node;
}

char *xml_text(const xmlNode *node, const char *path, char *to, size_t size)
{
    const xmlNode *element = xml_find(node, path);
    xmlChar *content = element ? xmlNodeGetContent(element) : NULL;
    size_t used = 0;
    for (const char *p = (const char *)content; p && *p;) {
        bool safe;
        const size_t bytes = peer_text_character(p, &safe);
        if (used + bytes >= size)
            break;
        if (safe && *p != ' ') {
            memcpy(to + used, p, bytes);
            used += bytes;
        } else if (used > 0 && to[used - 1] != ' ') {
            to[used++] = ' ';
        }
        p += bytes;
    }
    used -= used > 0 && to[used - 1] == ' ';
    to[used] = 0;
    xmlFree(content);
    return to;
}
