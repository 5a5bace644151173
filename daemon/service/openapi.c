#include "daemon/service/openapi.h"

__asm__(".pushsection .rodata\n"
        ".hidden openapi_text\n.global openapi_text\nopenapi_text:\n"
        ".incbin \"daemon/service/openapi.json\"\n"
        ".hidden openapi_end\n.global openapi_end\nopenapi_end:\n"
        ".byte 0\n"
        ".popsection\n");

void openapi_serve(void *opaque, struct http_exchange *exchange)
{
    (void)opaque;
    http_answer(exchange, &(struct http_page){
                              .status = 200,
                              .type = "application/json",
                              .body = (char *)openapi_text,
                              .size = (size_t)(openapi_end - openapi_text),
                              .constant = true,
                          });
}
