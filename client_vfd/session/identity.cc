#include "client_vfd/session/identity.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace h5mirror::vfd {
namespace {

std::string ReadHost() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string ReadMachineId(const std::string& host) {
  std::string id;
  std::ifstream("/etc/machine-id") >> id;
  return id.empty() ? host : id;
}

std::string ReadUser() {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(geteuid());
}

}  // namespace

void FillOrigin(const std::string& real_path, v1::Origin* origin) {
  static const auto* host = new std::string(ReadHost());
  static const auto* machine_id = new std::string(ReadMachineId(*host));
  origin->set_machine_id(*machine_id);
  origin->set_host(*host);
  origin->set_path(real_path);
}

void FillWriter(const std::string& program, v1::Writer* writer) {
  static const auto* host = new std::string(ReadHost());
  static const auto* user = new std::string(ReadUser());
  writer->set_claimed_user(*user);
  writer->set_host(*host);
  writer->set_program(program);
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
