#include "client_vfd/plugin/modes/first_read.h"

#include <cerrno>
#include <utility>

#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/refused_opens.h"
#include "client_vfd/plugin/host/reporter.h"
#include "client_vfd/plugin/modes/swmr.h"

namespace h5mirror::vfd {

herr_t FirstRead::Check(const HostLibrary& host, UnderFile& under, FileBytes& bytes) {
  if (!file_) return 0;
  const File file = *std::exchange(file_, std::nullopt);
  const SwmrLook look = LookForSwmrWriter(under, file.fd);
  if (look.writer == SwmrLook::Writer::kNone) return 0;
  if (look.writer != SwmrLook::Writer::kGone) {
    file_ = file;
    RefusedOpensOfThread().OnRefusedRead(file.name);
    PushOpenErrno(host, file.name, EAGAIN, WhyNotOpened(look, file.name));
    return -1;
  }
  if (bytes.Write(H5FD_MEM_SUPER, H5P_DEFAULT, look.offset, look.closed.size(),
                  look.closed.data()) < 0) {
    return -1;
  }
  Say(file.log, Audience::kUserToo, WhatWasMended(file.name));
  return 0;
}

}  // namespace h5mirror::vfd
