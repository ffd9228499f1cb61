#include <rados/librados.h>

#include <string>

#include "ceph/file_size_max.h"

namespace h5mirror::ceph {
namespace {

// A connection to the cluster, for one question.
class Cluster {
 public:
  explicit Cluster(const RootUrl& url) {
    if (rados_create(&cluster_, url.id.empty() ? nullptr : url.id.c_str()) < 0) {
      cluster_ = nullptr;
      return;
    }
    if (rados_conf_read_file(cluster_, url.conf.empty() ? nullptr : url.conf.c_str()) < 0) return;
    rados_conf_set(cluster_, "client_mount_timeout", "10");
    rados_conf_set(cluster_, "rados_mon_op_timeout", "10");
    is_connected_ = rados_connect(cluster_) >= 0;
  }
  ~Cluster() {
    if (cluster_ != nullptr) rados_shutdown(cluster_);
  }
  Cluster(const Cluster&) = delete;

  // Empty: no answer.
  std::string Ask(const char* command) {
    if (!is_connected_) return "";
    char* answer = nullptr;
    char* words = nullptr;
    size_t answer_bytes = 0, words_bytes = 0;
    const int asked = rados_mon_command(cluster_, &command, 1, "", 0, &answer, &answer_bytes,
                                        &words, &words_bytes);
    std::string text;
    if (asked >= 0 && answer != nullptr) text.assign(answer, answer_bytes);
    if (answer != nullptr) rados_buffer_free(answer);
    if (words != nullptr) rados_buffer_free(words);
    return text;
  }

 private:
  rados_t cluster_ = nullptr;
  bool is_connected_ = false;
};

}  // namespace

std::optional<uint64_t> AskFileSizeMax(const RootUrl& url, int64_t fscid) {
  Cluster cluster(url);
  return FindFileSizeMax(cluster.Ask(R"({"prefix": "fs dump", "format": "json"})"), fscid);
}

}  // namespace h5mirror::ceph
