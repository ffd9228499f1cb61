// Brings an existing record up to date without touching its directory.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_RECORD_UPDATE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_RECORD_UPDATE_H_

#include <filesystem>

#include "absl/status/status.h"
#include "base/local_record.h"

namespace h5mirror::vfd {

// Overwrites the record with one write(2). OK where there is none any more: the file was deleted.
absl::Status UpdateRecordInPlace(const std::filesystem::path& local_file,
                                 const LocalRecord& record);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_RECORD_UPDATE_H_
