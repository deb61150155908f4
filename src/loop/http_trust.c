/* loop/http: where this system keeps the authorities that it trusts. libcurl has one path built in,
 * its distribution's; a program that carries its libcurl along meets the others. */
#include "loop/http_private.h"

#include <unistd.h>

static const char *const known[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL and their kin */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* the same, older */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE */
    "/etc/ssl/ca-bundle.pem",                            /* the same, older */
};

const char *http_trusted(void)
{
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
    if (built->cainfo != NULL && access(built->cainfo, R_OK) == 0)
        return NULL;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (access(known[i], R_OK) == 0)
            return known[i];
    return NULL;
}
