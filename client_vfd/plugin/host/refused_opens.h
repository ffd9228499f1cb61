// The refused opens of a thread. h5py's mode "a" opens for writing. If that is refused, for any
// reason, it makes a file that must not be there. Of these two errors programs see the
// second one, so it has to have the first one's reason. HDF5 opens tentatively before it makes a
// file, which is a refusal too.
//
// Not thread-safe: each thread has its own.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REFUSED_OPENS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REFUSED_OPENS_H_

#include <cstddef>
#include <string_view>

namespace h5mirror::vfd {

class RefusedOpens {
 public:
  // An open of `name` for writing was refused.
  void OnRefused(std::string_view name);
  // It has succeeded, and the first read refused it.
  void OnRefusedRead(std::string_view name);
  // Before an open that must make `name`: whether it is the second half of an "a". Forgets all.
  bool TakeIsAppend(std::string_view name);

 private:
  size_t name_hash_ = 0;
  int count_ = 0;  // in a row
};

// Of the calling thread.
RefusedOpens& RefusedOpensOfThread();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REFUSED_OPENS_H_
