// The refused opens of a thread. h5py's mode "a" opens for writing. If that is refused, for any
// reason, it makes a file that must not be there. The program sees only the second error, so that
// error must carry the reason of the first. HDF5 also opens tentatively before it makes a file;
// that counts as a refusal too.
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
  // The open succeeded, but its first read was refused.
  void OnRefusedRead(std::string_view name);
  // Called before an open that must make `name`. True: it is the second half of a mode "a". Forgets
  // all refusals.
  bool TakeIsAppend(std::string_view name);

 private:
  size_t name_hash_ = 0;
  int count_ = 0;  // in a row
};

// Of the calling thread.
RefusedOpens& RefusedOpensOfThread();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_REFUSED_OPENS_H_
