// A framed of a later version: its documents in etcd have a key that this version does not have.
#include <stdio.h>
#include <stdlib.h>

#include "daemon/cluster/documents.h"
#include "daemon/cluster/plan.h"

char *__real_plan_print(const struct plan *);
char *__real_node_document_print(const struct node_document *);
char *__wrap_plan_print(const struct plan *);
char *__wrap_node_document_print(const struct node_document *);

static char *add_key(char *object)
{
    char *with = NULL;
    if (object && asprintf(&with, "{\"later\":{\"list\":[1]},%s", object + 1) < 0)
        with = NULL;
    free(object);
    return with;
}

char *__wrap_plan_print(const struct plan *plan)
{
    return add_key(__real_plan_print(plan));
}

char *__wrap_node_document_print(const struct node_document *document)
{
    return add_key(__real_node_document_print(document));
}
