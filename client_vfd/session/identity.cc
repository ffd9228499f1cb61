#include "client_vfd/session/identity.h"

#include <unistd.h>

#include "base/utf8.h"
#include "base/who.h"

namespace h5mirror::vfd {
void FillOrigin(const std::string& real_path, v1::Origin* origin) {
  origin->set_machine_id(OwnMachineId());
  origin->set_host(OwnHost());
  origin->set_path(real_path);
}

void FillWriter(const std::string& program, v1::Writer* writer) {
  writer->set_claimed_user(OwnUser());
  writer->set_host(OwnHost());
  writer->set_program(IsUtf8(program) ? program : Printable(program));
  writer->set_pid(static_cast<uint32_t>(getpid()));
}

void FillTime(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t nanoseconds = absl::ToUnixNanos(time);
  out->set_seconds(nanoseconds / 1'000'000'000);
  out->set_nanos(static_cast<int32_t>(nanoseconds % 1'000'000'000));
}

void FillDuration(absl::Duration duration, google::protobuf::Duration* out) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

void FillLocalStat(const FileStat& stat, v1::LocalStat* out) {
  out->set_inode(stat.inode);
  out->set_size_bytes(stat.size_bytes);
  out->set_mtime_ns(stat.mtime_ns);
  out->set_ctime_ns(stat.ctime_ns);
}

}  // namespace h5mirror::vfd
