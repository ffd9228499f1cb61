// Files with buffered bytes at a fork: the parent puts the bytes before.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_

#include <mutex>

namespace h5mirror::vfd {

class BufferedFile;

// Held over every change of buffered bytes. A fork waits for it, and holds it. The outermost of the
// plugin's locks.
std::mutex& BufferMutex();

// Registers a file that may have buffered bytes. Not to be called with BufferMutex() held.
void AddBufferedFile(BufferedFile* file);
void RemoveBufferedFile(BufferedFile* file);

// Handlers of a fork run in the reverse order of their registration: ours must run before the
// session module's, which ends its streams. So it is loaded first where a file is mirrored.
enum class SessionLoaded { kNo, kYes };
void RegisterBufferFork(SessionLoaded loaded);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
