// The check of `h5mirror doctor --http` for a server's HTTP door (docs/reference/http.md).
#ifndef H5MIRROR_CLI_VERBS_DOCTOR_HTTP_H_
#define H5MIRROR_CLI_VERBS_DOCTOR_HTTP_H_

#include <string>

#include "cli/verbs/doctor_report.h"

namespace h5mirror::tools {

// Asks at `url`, the server's http_listen as http:// or https://HOST:PORT, for a page that needs no
// token. `ca_pem`: certificates of authorities to trust beside those of the system; empty: none.
// kOk: the door answers, by https with a certificate of this name. Waits 10 s at most.
Check CheckHttpDoor(const std::string& url, const std::string& ca_pem);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_DOCTOR_HTTP_H_
