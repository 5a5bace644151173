// All that a configuration knows of secrets, to be taken out of any text before others see it.
#ifndef FRAMED_DAEMON_CLI_SUPPORT_SECRETS_H
#define FRAMED_DAEMON_CLI_SUPPORT_SECRETS_H

#include "config/config.h"

struct support_secrets;

int support_secrets_open(struct support_secrets **ret); // 0 or -ENOMEM
void support_secrets_close(struct support_secrets *);   // accepts NULL
// Of a configuration: passwords of cameras, sinks, webhook and broker, and the token. 0 or -ENOMEM.
int support_secrets_of_config(struct support_secrets *, const struct config *);
// Of a file's text: what its ${NAME} stand for in this process, and what `redacted`, as
// config_text_redacted makes it, has *** for. 0 or -ENOMEM.
int support_secrets_of_text(struct support_secrets *, const char *text, const char *redacted);
// A copy with *** in place of each, to be freed; NULL: no memory.
char *support_secrets_hide(const struct support_secrets *, const char *text);

#endif
