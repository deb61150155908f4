/* libcurl's functions, as far as this room calls them, each opened with its first call: workers,
 * runners and compilers start by the thousand and speak no HTTP. Loop thread only. */
#include "base/library.h"

#define CURL_DISABLE_TYPECHECK      /* of callers, who include the header themselves */
#pragma GCC visibility push(hidden) /* libcurl calls its own */
#include <curl/curl.h>
#pragma GCC visibility pop
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

static struct library curl = {.name = "libcurl.so.4"};

CALL(curl, CURLcode, curl_global_init, (long flags), flags)
CALL(curl, curl_version_info_data *, curl_version_info, (CURLversion age), age)
CALL(curl, void, curl_free, (void *memory), memory)
CALL(curl, struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *line),
     list, line)
CALL(curl, void, curl_slist_free_all, (struct curl_slist * list), list)

CALL(curl, CURLU *, curl_url, (void), )
CALL(curl, void, curl_url_cleanup, (CURLU * url), url)
#if LIBCURL_VERSION_NUM >= 0x080000
CALL(curl, CURLUcode, curl_url_get, (const CURLU *url, CURLUPart what, char **part, unsigned flags),
     url, what, part, flags)
#else
CALL(curl, CURLUcode, curl_url_get, (CURLU * url, CURLUPart what, char **part, unsigned flags), url,
     what, part, flags)
#endif
CALL(curl, CURLUcode, curl_url_set, (CURLU * url, CURLUPart what, const char *part, unsigned flags),
     url, what, part, flags)

CALL(curl, CURL *, curl_easy_init, (void), )
CALL(curl, void, curl_easy_cleanup, (CURL * easy), easy)
CALL(curl, CURLcode, curl_easy_upkeep, (CURL * easy), easy)
CALL(curl, const char *, curl_easy_strerror, (CURLcode code), code)

CALL(curl, CURLM *, curl_multi_init, (void), )
CALL(curl, CURLMcode, curl_multi_cleanup, (CURLM * multi), multi)
CALL(curl, CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL *easy), multi, easy)
CALL(curl, CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL *easy), multi, easy)
CALL(curl, CURLMsg *, curl_multi_info_read, (CURLM * multi, int *left), multi, left)
CALL(curl, CURLMcode, curl_multi_assign, (CURLM * multi, curl_socket_t fd, void *data), multi, fd,
     data)
CALL(curl, CURLMcode, curl_multi_socket_action,
     (CURLM * multi, curl_socket_t fd, int events, int *running), multi, fd, events, running)
CALL(curl, const char *, curl_multi_strerror, (CURLMcode code), code)

_Static_assert(sizeof(long) == sizeof(void *) && sizeof(curl_off_t) == sizeof(void *),
               "CALL_WITH()");
CALL_WITH(curl, CURLcode, curl_easy_setopt, CURL *, CURLoption)
CALL_WITH(curl, CURLcode, curl_easy_getinfo, CURL *, CURLINFO)
CALL_WITH(curl, CURLMcode, curl_multi_setopt, CURLM *, CURLMoption)
