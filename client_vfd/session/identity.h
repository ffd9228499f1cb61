// User, host and program of this process, and other small pieces of messages.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_IDENTITY_H_
#define H5MIRROR_CLIENT_VFD_SESSION_IDENTITY_H_

#include <string>

#include "absl/time/time.h"
#include "base/local_record.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "h5mirror/v1/types.pb.h"

namespace h5mirror::vfd {

void FillOrigin(const std::string& real_path, v1::Origin* origin);
void FillWriter(const std::string& program, v1::Writer* writer);
void FillTime(absl::Time time, google::protobuf::Timestamp* out);
void FillDuration(absl::Duration duration, google::protobuf::Duration* out);
void FillLocalStat(const FileStat& stat, v1::LocalStat* out);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_IDENTITY_H_
