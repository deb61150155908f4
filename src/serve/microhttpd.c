/* libmicrohttpd's functions, as far as this room calls them, each opened with its first call: of a
 * thousand processes one is a server. Loop thread only. */
#include "base/library.h"

#pragma GCC visibility push(hidden) /* libmicrohttpd calls its own */
#include <microhttpd.h>
#pragma GCC visibility pop

#if MHD_VERSION >= 0x01000000 /* whose header says that these bytes are not changed */
typedef const void *BYTES;
#else
typedef void *BYTES;
#endif

static struct library mhd = {.name = "libmicrohttpd.so.12"};

CALL(mhd, struct MHD_Daemon *, MHD_start_daemon_va,
     (unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accepts, void *of_accepts,
      MHD_AccessHandlerCallback answers, void *of_answers, va_list options),
     flags, port, accepts, of_accepts, answers, of_answers, options)
struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accepts,
                                    void *of_accepts, MHD_AccessHandlerCallback answers,
                                    void *of_answers, ...)
{
    va_list options;
    va_start(options, of_answers);
    struct MHD_Daemon *daemon =
        MHD_start_daemon_va(flags, port, accepts, of_accepts, answers, of_answers, options);
    va_end(options);
    return daemon;
}
CALL(mhd, void, MHD_stop_daemon, (struct MHD_Daemon * daemon), daemon)
CALL(mhd, enum MHD_Result, MHD_run, (struct MHD_Daemon * daemon), daemon)
CALL(mhd, enum MHD_Result, MHD_get_timeout, (struct MHD_Daemon * daemon, unsigned long long *ms),
     daemon, ms)
CALL(mhd, const union MHD_DaemonInfo *, MHD_get_daemon_info,
     (struct MHD_Daemon * daemon, enum MHD_DaemonInfoType what, ...), daemon, what)

CALL(mhd, const union MHD_ConnectionInfo *, MHD_get_connection_info,
     (struct MHD_Connection * connection, enum MHD_ConnectionInfoType what, ...), connection, what)
CALL(mhd, const char *, MHD_lookup_connection_value,
     (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key), connection,
     kind, key)
CALL(mhd, void, MHD_suspend_connection, (struct MHD_Connection * connection), connection)
CALL(mhd, void, MHD_resume_connection, (struct MHD_Connection * connection), connection)
CALL(mhd, enum MHD_Result, MHD_queue_response,
     (struct MHD_Connection * connection, unsigned status, struct MHD_Response *response),
     connection, status, response)

CALL(mhd, struct MHD_Response *, MHD_create_response_from_buffer,
     (size_t size, void *bytes, enum MHD_ResponseMemoryMode mode), size, bytes, mode)
CALL(mhd, struct MHD_Response *, MHD_create_response_from_buffer_with_free_callback_cls,
     (size_t size, BYTES bytes, MHD_ContentReaderFreeCallback ends, void *of), size, bytes, ends,
     of)
CALL(mhd, struct MHD_Response *, MHD_create_response_from_callback,
     (uint64_t size, size_t block, MHD_ContentReaderCallback reads, void *of,
      MHD_ContentReaderFreeCallback ends),
     size, block, reads, of, ends)
CALL(mhd, enum MHD_Result, MHD_add_response_header,
     (struct MHD_Response * response, const char *name, const char *value), response, name, value)
CALL(mhd, void, MHD_destroy_response, (struct MHD_Response * response), response)
