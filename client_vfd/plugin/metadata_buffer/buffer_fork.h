// What a fork does to files of which bytes are held: they are put before, in the parent.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_

#include <mutex>

namespace h5mirror::vfd {

class BufferedFile;

// Over everything that changes what is held; a fork waits for it, and holds it. The outermost of
// the plugin's locks.
std::mutex& BufferMutex();

// Files of which something may be held. Not to be called with BufferMutex().
void AddBufferedFile(BufferedFile* file);
void RemoveBufferedFile(BufferedFile* file);

// Handlers of a fork run in the reverse order of their registration: ours must run before the
// session module's, which ends its streams. So it is loaded first where a file is mirrored.
enum class SessionLoaded { kNo, kYes };
void RegisterBufferFork(SessionLoaded loaded);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_FORK_H_
