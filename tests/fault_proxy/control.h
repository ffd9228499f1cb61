// The commands of a running proxy.
#ifndef H5MIRROR_TESTS_FAULT_PROXY_CONTROL_H_
#define H5MIRROR_TESTS_FAULT_PROXY_CONTROL_H_

#include <string>

#include "tests/fault_proxy/proxy.h"

namespace h5mirror::fault_proxy {

// Does what one line says, and returns the answer, one line of JSON: {"error": ...}, or what
// AsJson() has. A line is one of
//   pass, hold, drop, refuse         the mode (Proxy::Mode)
//   delay US                         each way
//   throttle BYTES_PER_S             of each direction; 0: no limit
//   cut-after BYTES | cut-after off  of connections to come
//   record on | record off           of connections to come
//   reset                            all that there are
//   half-open client | server        that side of all that there are is told, the other is not
//   replay INDEX                     a recording, counted from 0
//   totals
std::string Obey(const std::string& line, Proxy& proxy);

// The totals of the proxy, and the size of each recording.
std::string AsJson(const Proxy& proxy);

}  // namespace h5mirror::fault_proxy

#endif  // H5MIRROR_TESTS_FAULT_PROXY_CONTROL_H_
