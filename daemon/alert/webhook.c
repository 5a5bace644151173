#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/alert/delivery.h"
#include "daemon/base/clock.h"

struct webhook {
    struct delivery_context context;
};

static int open_webhook(void **ret, const struct delivery_context *context)
{
    struct webhook *webhook = calloc(1, sizeof *webhook);
    if (!webhook)
        return -ENOMEM;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(webhook);
        return -ENOMEM;
    }
    webhook->context = *context;
    *ret = webhook;
    return 0;
}

static void close_webhook(void *opaque)
{
    curl_global_cleanup();
    free(opaque);
}

// Ignores the response body; the deadline bounds its length.
static size_t ignore(char *data, size_t size, size_t n, void *opaque)
{
    (void)data, (void)opaque;
    return size * n;
}

// Runs the transfer until it ends, or the delivery stops (CURLE_ABORTED_BY_CALLBACK).
static CURLcode perform(CURLM *multi, const struct delivery_context *context)
{
    int running = 1, left;
    struct curl_waitfd stop = {.fd = context->stop_fd, .events = CURL_WAIT_POLLIN};
    while (curl_multi_perform(multi, &running) == CURLM_OK && running > 0) {
        if (curl_multi_poll(multi, &stop, 1, 1000, NULL) != CURLM_OK)
            return CURLE_FAILED_INIT;
        if (atomic_load(context->stop))
            return CURLE_ABORTED_BY_CALLBACK;
    }
    const CURLMsg *message = curl_multi_info_read(multi, &left);
    return message && message->msg == CURLMSG_DONE ? message->data.result : CURLE_FAILED_INIT;
}

// True for a status that another try will not change.
static bool is_refusal(long status)
{
    return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

static int result_of(CURL *easy, CURLcode code, const char *error, char *why, size_t size)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_ABORTED_BY_CALLBACK)
        return -ECANCELED;
    if (code != CURLE_OK) {
        snprintf(why, size, "%s", error[0] ? error : curl_easy_strerror(code));
        return code == CURLE_URL_MALFORMAT ? -EINVAL : -EIO;
    }
    if (status >= 200 && status < 300)
        return 0;
    snprintf(why, size, "it answers with HTTP status %ld", status);
    return is_refusal(status) ? -EINVAL : -EIO;
}

static int deliver_to_webhook(void *opaque, const struct alert_event *event, const char *json,
                              char *why, size_t size)
{
    (void)event;
    const struct webhook *webhook = opaque;
    char error[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *easy = curl_easy_init();
    CURLM *multi = curl_multi_init();
    int rc = -ENOMEM;
    if (!headers || !easy || !multi)
        goto out;
    curl_easy_setopt(easy, CURLOPT_URL, webhook->context.config->notify.webhook);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, json);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "framed/" FRAMED_VERSION_TEXT);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)DELIVERY_MS);
    if (curl_multi_add_handle(multi, easy) == CURLM_OK) {
        rc = result_of(easy, perform(multi, &webhook->context), error, why, size);
        curl_multi_remove_handle(multi, easy);
    }
out:
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    return rc;
}

const struct delivery_driver webhook_driver = {
    .name = "the webhook",
    .open = open_webhook,
    .deliver = deliver_to_webhook,
    .close = close_webhook,
};
