// Files with buffered bytes at a fork: the parent writes the bytes to the file before the fork.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_

#include <mutex>

namespace h5mirror::vfd {

class BufferedFile;

// Held during every change of buffered bytes. A fork takes it too. The outermost of the plugin's
// locks.
std::mutex& BufferMutex();

// Registers a file that may have buffered bytes. Not to be called with BufferMutex() held.
void AddBufferedFile(BufferedFile* file);
void RemoveBufferedFile(BufferedFile* file);

// Fork handlers run in the reverse order of their registration. Ours must run before the session
// module's, which ends its streams. So for a mirrored file the session module is loaded first.
enum class SessionLoaded { kNo, kYes };
void RegisterBufferFork(SessionLoaded loaded);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
