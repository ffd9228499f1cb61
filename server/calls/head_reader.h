// Finds the user that a head's access list may name: docs/design/040-rights-and-audit.md.
#ifndef H5MIRROR_SERVER_CALLS_HEAD_READER_H_
#define H5MIRROR_SERVER_CALLS_HEAD_READER_H_

#include <cstdint>
#include <optional>

#include "server/door/auth.h"
#include "server/settings/rights.h"

namespace h5mirror::server {

// The uid of a writer with `rights` to its file. nullopt: no user. Only a uid from the kernel
// counts, because names of tokens, certificates and logins need not be users of this host. A writer
// without the right to read gets no access by the disk either.
std::optional<uint32_t> HeadReaderOf(const Principal& principal, Rights rights);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_HEAD_READER_H_
