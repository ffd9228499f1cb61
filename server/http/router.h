// The paths of the HTTP door.
#ifndef H5MIRROR_SERVER_HTTP_ROUTER_H_
#define H5MIRROR_SERVER_HTTP_ROUTER_H_

#include "server/http/file_answers.h"
#include "server/http/json_answers.h"
#include "server/http/message.h"

namespace h5mirror::server {

// Thread-safe.
class Router {
 public:
  // Both must outlive this.
  Router(FileAnswers& files, JsonAnswers& json) : files_(files), json_(json) {}
  // May wait for a disk.
  HttpAnswer Answer(const HttpRequest& request);

 private:
  FileAnswers& files_;
  JsonAnswers& json_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_ROUTER_H_
