// The text of a mail. Names of files go into it, so no header and no line is made of them as they
// are.
#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/notify/deliverer.h"

namespace h5mirror::server {
namespace {

// RFC 2047, 2: an encoded word has at most 75 characters, "=?UTF-8?B?...?=" among them.
constexpr size_t kWordBytesMax = 45;
constexpr size_t kSubjectBytesMax = 400;
// Base64 lines, RFC 2045, 6.8.
constexpr size_t kLineMax = 76;

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

// `text` is printable. Cut off where it is too long.
std::string EncodeHeader(std::string_view text) {
  text = text.substr(
      0, text.size() <= kSubjectBytesMax ? text.size() : CharacterStart(text, kSubjectBytesMax));
  if (IsPlain(text) && text.size() <= kLineMax - 10 && text.find("=?") == std::string_view::npos) {
    return std::string(text);
  }
  std::string words;
  while (!text.empty()) {
    const size_t size =
        text.size() <= kWordBytesMax ? text.size() : CharacterStart(text, kWordBytesMax);
    StrAppend(&words, words.empty() ? "" : "\n ", "=?UTF-8?B?",
              absl::Base64Escape(ToAbsl(text.substr(0, size))), "?=");
    text.remove_prefix(size);
  }
  return words;
}

std::string Base64Lines(std::string_view text) {
  const std::string all = absl::Base64Escape(ToAbsl(text));
  std::string lines;
  for (size_t at = 0; at < all.size(); at += kLineMax) {
    StrAppend(&lines, all.substr(at, kLineMax), "\n");
  }
  return lines;
}

std::string BodyOf(const Event& event, std::string_view host) {
  std::string body = StrCat(Printable(event.text), "\n\n");
  StrAppend(&body, "event: ", EventName(event.kind), "\n");
  if (!event.file.empty()) StrAppend(&body, "file: ", Printable(event.file), "\n");
  StrAppend(&body, "server: ", Printable(host), "\ntime: ", HumanTime(event.time), "\n");
  for (const auto& [name, value] : event.numbers) StrAppend(&body, name, ": ", value, "\n");
  if (event.repeated > 0) {
    StrAppend(&body, "repeated: ", event.repeated, " times more, the last at ",
              HumanTime(event.last_time), "\n");
  }
  StrAppend(&body, "id: ", event.id, "\n");
  return body;
}

}  // namespace

std::string MailOf(const NotifyRule& rule, const Event& event, std::string_view host) {
  const std::string body = BodyOf(event, host);
  const bool is_plain = std::all_of(body.begin(), body.end(),
                                    [](char c) { return c == '\n' || (c >= ' ' && c < 0x7f); }) &&
                        body.size() < 900;
  return StrCat("To: ", absl::StrJoin(rule.mail, ",\n "),
                "\nSubject: ", EncodeHeader(Headline(event, host)),
                "\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"
                "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: ",
                is_plain ? "7bit" : "base64", "\n\n", is_plain ? body : Base64Lines(body));
}

}  // namespace h5mirror::server
