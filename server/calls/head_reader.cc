#include "server/calls/head_reader.h"

namespace h5mirror::server {

std::optional<uint32_t> HeadReaderOf(const Principal& principal, Rights rights) {
  const bool is_user = principal.issuer == Principal::Issuer::kUnix;
  if (!is_user || !rights.Has(Right::kRead)) return std::nullopt;
  return principal.uid;
}

}  // namespace h5mirror::server
