// A flag of spdlog's patterns for log lines that hold text from elsewhere.
#ifndef H5MIRROR_BASE_PRINTABLE_MESSAGE_H_
#define H5MIRROR_BASE_PRINTABLE_MESSAGE_H_

#include <ctime>
#include <memory>
#include <string>

#include "base/utf8.h"
#include "spdlog/pattern_formatter.h"

namespace h5mirror {

// Replaces "%v". Puts the message on one line and makes it safe for a terminal, as Printable()
// (utf8.h) does: it may hold text of a client or a server. Its users link spdlog.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = Printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_PRINTABLE_MESSAGE_H_
