// Whom an access list of a head may name: docs/design/040-rights-and-audit.md.
#ifndef H5MIRROR_SERVER_CALLS_HEAD_READER_H_
#define H5MIRROR_SERVER_CALLS_HEAD_READER_H_

#include <cstdint>
#include <optional>

#include "server/door/auth.h"
#include "server/settings/rights.h"

namespace h5mirror::server {

// The uid of a writer with `rights` to its file. nullopt: nobody. Only the kernel's word counts:
// names of tokens, certificates and logins need not be those of this host's users. A right to read
// that the tables do not give must not come from the disk either.
std::optional<uint32_t> HeadReaderOf(const Principal& principal, Rights rights);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_HEAD_READER_H_
