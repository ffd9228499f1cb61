// Sends an answer, and descriptors of memory with it, on the socket for maps.
#ifndef H5MIRROR_SWMR_AGENT_SEND_MEMORY_H_
#define H5MIRROR_SWMR_AGENT_SEND_MEMORY_H_

#include <string_view>
#include <vector>

namespace h5mirror::agent {

// In one piece. `socket` is of Unix and a stream; there may be no descriptor, and at most
// rpc::kMapDescriptorsMax. False: it has not been sent.
bool SendMemory(int socket, std::string_view answer, const std::vector<int>& descriptors);

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_SEND_MEMORY_H_
