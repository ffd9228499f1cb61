// The paths of the HTTP door.
#ifndef H5MIRROR_SERVER_HTTP_ROUTER_H_
#define H5MIRROR_SERVER_HTTP_ROUTER_H_

#include "server/http/file_answers.h"
#include "server/http/message.h"

namespace h5mirror::server {

// Thread-safe.
class Router {
 public:
  // `files` must outlive this.
  explicit Router(FileAnswers& files) : files_(files) {}
  // May wait for a disk.
  HttpAnswer Answer(const HttpRequest& request);

 private:
  FileAnswers& files_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_ROUTER_H_
