#include "swmr_agent/send_memory.h"

#include <sys/socket.h>

#include <cstring>

#include "rpc/cut_map_format.h"

namespace h5mirror::agent {

bool SendMemory(int socket, std::string_view answer, const std::vector<int>& descriptors) {
  alignas(cmsghdr) char room[CMSG_SPACE(rpc::kMapDescriptorsMax * sizeof(int))] = {};
  if (descriptors.size() > rpc::kMapDescriptorsMax) return false;
  iovec bytes{const_cast<char*>(answer.data()), answer.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const size_t length = descriptors.size() * sizeof(int);
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(part), descriptors.data(), length);
  }
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  return sent >= 0 && static_cast<size_t>(sent) == answer.size();
}

}  // namespace h5mirror::agent
