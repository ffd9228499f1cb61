#include "client_vfd/plugin/modes/reader_mode.h"

#include <cstdio>

namespace h5mirror::vfd {

herr_t ReaderMode::Flush(hid_t, hbool_t closing) {
  if (!closing && file().Refresh()) SetVersion(file().key());
  return 0;
}

void ReaderMode::Status(H5mStatus* status) const {
  const H5mReaderInfo& info = file().info();
  *status = H5mStatus{};
  status->state = H5M_STATE_READING;
  status->cut = info.cut;
  status->version = info.version;
  std::snprintf(status->message, sizeof status->message, "%.255s", info.text);
}

FileIdentity ReaderIdentity(const ReaderFile& file) {
  FileIdentity identity;
  identity.kind = FileIdentity::Kind::kReader;
  identity.version = file.key();
  return identity;
}

}  // namespace h5mirror::vfd
