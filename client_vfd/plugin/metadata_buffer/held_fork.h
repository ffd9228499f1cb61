// What a fork does to files of which bytes are held: they are put before, in the parent.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_HELD_FORK_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_HELD_FORK_H_

#include <mutex>

namespace h5mirror::vfd {

class HeldFile;

// Over everything that changes what is held; a fork waits for it, and holds it. The outermost of
// the plugin's locks.
std::mutex& HeldMutex();

// Files of which something may be held. Not to be called with HeldMutex().
void AddHeldFile(HeldFile* file);
void RemoveHeldFile(HeldFile* file);

// Handlers of a fork run in the reverse order of their registration: ours must run before the
// session module's, which ends its streams. So it is loaded first where a file is mirrored.
enum class SessionLoaded { kNo, kYes };
void RegisterHeldFork(SessionLoaded loaded);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_HELD_FORK_H_
