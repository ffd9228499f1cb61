#include "server/http/exchange.h"

#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "server/calls/fair_pool.h"

namespace h5mirror::server {
namespace {

using Holder = std::shared_ptr<Exchange>;

ssize_t GivePart(void* holder, uint64_t, char* out, size_t max) {
  return (*static_cast<Holder*>(holder))->Give({out, max});
}

void DropHolder(void* holder) { delete static_cast<Holder*>(holder); }
void DropPart(void* part) { delete static_cast<HttpPart*>(part); }

struct ResponseFreer {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};
using ResponsePtr = std::unique_ptr<MHD_Response, ResponseFreer>;

}  // namespace

bool Exchange::Suspend() {
  if (!ended_.ok() || connection_ == nullptr) return false;
  MHD_suspend_connection(connection_);
  is_suspended_ = true;
  return true;
}

void Exchange::Resume() {
  if (!is_suspended_ || connection_ == nullptr) return;
  is_suspended_ = false;
  MHD_resume_connection(connection_);
}

bool Exchange::has_ended() const {
  absl::MutexLock lock(&mutex_);
  return !ended_.ok() || connection_ == nullptr;
}

bool Exchange::has_started() const {
  absl::MutexLock lock(&mutex_);
  return has_started_;
}

bool Exchange::Start(HttpRequest request, std::shared_ptr<const HttpCallSource> source,
                     Handler handler) {
  {
    absl::MutexLock lock(&mutex_);
    has_started_ = true;
    request_ = std::move(request);
    source_ = source;
    if (!Suspend()) return false;
  }
  // Not held by the waiter: the connection may go before the answer comes.
  source->Await(
      environment_.authenticator, [weak = weak_from_this(), key = source->worker_key(), handler] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->environment_.workers->Schedule(key, [self, handler] { self->Find(handler); });
      });
  return true;
}

void Exchange::Find(const Handler& handler) {
  HttpRequest request;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(is_known_, true) || !ended_.ok() || connection_ == nullptr) return;
    request = request_;
  }
  request.is_cancelled = [this] { return has_ended(); };
  HttpAnswer answer = handler(request);
  if (answer.ticket) {
    answer.ticket->OnRevoke([weak = weak_from_this()](const absl::Status& status) {
      if (const auto self = weak.lock(); self != nullptr) self->End(status);
    });
  }
  const bool has_body = answer.stream != nullptr && answer.stream_bytes && !request.is_head;
  Beginning begun = has_body ? BeginBody(answer) : Beginning();
  absl::MutexLock lock(&mutex_);
  if (connection_ == nullptr) return;  // What `answer` holds goes without the lock.
  if (!begun.failed.ok()) last_ = begun.failed;
  if (begun.is_whole) {
    whole_bytes_ = begun.part.size();
    whole_ = std::move(begun.part);
  } else {
    part_ = std::move(begun.part);
  }
  stream_ = std::move(answer.stream);
  // A HEAD and a 304 have only the size of a body.
  has_stream_ = stream_ != nullptr || answer.stream_bytes.value_or(0) > 0 || answer.is_endless;
  answer_ = std::move(answer);
  Resume();
}

// Most ranges fit one part, so that they need no second turn of a worker, and their files are
// closed at once. An error still has a code of its own.
Exchange::Beginning Exchange::BeginBody(HttpAnswer& answer) {
  Beginning begun;
  // Where no part follows, there is room for two in this one.
  const uint64_t part_bytes = environment_.callers->ReadPartBytes();
  const bool fits = *answer.stream_bytes <= 2 * part_bytes;
  absl::StatusOr<std::optional<HttpPart>> part =
      answer.stream->Next(fits ? 2 * part_bytes : part_bytes);
  if (part.ok() && !*part) part = absl::InternalError("a body ends before its length");
  if (!part.ok()) {
    begun.failed = part.status();
    HttpAnswer error = ErrorAnswer(part.status());
    error.ticket = std::move(answer.ticket);
    error.method = answer.method;
    answer = std::move(error);
    return begun;
  }
  begun.part = **std::move(part);
  begun.is_whole = begun.part.size() == *answer.stream_bytes;
  if (begun.is_whole) answer.stream = nullptr;
  return begun;
}

MHD_Response* Exchange::NewResponse(HttpAnswer& answer, bool has_stream,
                                    std::optional<HttpPart> whole) {
  if (whole) {
    auto part = std::make_unique<HttpPart>(*std::move(whole));
    MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
        part->size(), part->data(), &DropPart, part.get());
    if (response != nullptr) static_cast<void>(part.release());
    return response;
  }
  if (!has_stream) {
    return MHD_create_response_from_buffer(answer.text.size(), answer.text.data(),
                                           MHD_RESPMEM_MUST_COPY);
  }
  auto holder = std::make_unique<Holder>(shared_from_this());
  MHD_Response* const response =
      MHD_create_response_from_callback(answer.stream_bytes.value_or(MHD_SIZE_UNKNOWN),
                                        answer.block_bytes, &GivePart, holder.get(), &DropHolder);
  if (response == nullptr) return nullptr;
  static_cast<void>(holder.release());
  // To a HEAD the library would send the end of a chunked body.
  if (answer.is_endless) {
    MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_OPTION_END);
  }
  return response;
}

bool Exchange::Answer() {
  HttpAnswer answer;
  MHD_Connection* connection = nullptr;
  bool has_stream = false;
  std::optional<HttpPart> whole;
  {
    absl::MutexLock lock(&mutex_);
    if (!ended_.ok() || !answer_ || connection_ == nullptr) return false;
    connection = connection_;  // It stays, as only this thread ends it.
    has_stream = has_stream_;
    whole.swap(whole_);
    answer.status = answer_->status;
    answer.headers.swap(answer_->headers);
    answer.text.swap(answer_->text);  // The library has a copy. One is enough.
    answer.stream_bytes = answer_->stream_bytes;
    answer.block_bytes = answer_->block_bytes;
    answer.is_last = answer_->is_last;
    answer.is_endless = answer_->is_endless;
  }
  // Without the lock: the library holds one of the response's own over Give().
  const ResponsePtr response(NewResponse(answer, has_stream, std::move(whole)));
  if (response == nullptr) return false;
  for (const auto& [name, value] : answer.headers) {
    if (MHD_add_response_header(response.get(), name.c_str(), value.c_str()) != MHD_YES) {
      return false;
    }
  }
  if (answer.is_last) MHD_add_response_header(response.get(), "Connection", "close");
  if (MHD_queue_response(connection, static_cast<unsigned>(answer.status), response.get()) !=
      MHD_YES) {
    return false;
  }
  absl::MutexLock lock(&mutex_);
  if (stream_ != nullptr && !request_.is_head) MakeSoon();
  return true;
}

ssize_t Exchange::Give(absl::Span<char> out) {
  absl::MutexLock lock(&mutex_);
  if (!ended_.ok()) return MHD_CONTENT_READER_END_WITH_ERROR;
  if (part_at_ == part_.size() && next_) {
    part_ = *std::move(next_);
    part_at_ = 0;
    next_.reset();
    if (!last_ && stream_ != nullptr) MakeSoon();
  }
  if (part_at_ < part_.size()) {
    const size_t count = std::min(out.size(), part_.size() - part_at_);
    memcpy(out.data(), part_.data() + part_at_, count);
    part_at_ += count;
    sent_bytes_ += count;
    return static_cast<ssize_t>(count);
  }
  if (last_) {
    return last_->ok() ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
  }
  return Suspend() ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
}

void Exchange::MakeSoon() {
  stream_->Await([weak = weak_from_this(), key = answer_->ticket->key()] {
    const auto self = weak.lock();
    if (self != nullptr) self->environment_.workers->Schedule(key, [self] { self->Make(); });
  });
}

void Exchange::Make() {
  std::unique_ptr<HttpStream> stream;  // Destroyed without the lock: that may close files.
  {
    absl::MutexLock lock(&mutex_);
    stream = std::move(stream_);
    if (stream == nullptr || connection_ == nullptr || !ended_.ok()) return;
  }
  absl::StatusOr<std::optional<HttpPart>> part =
      stream->Next(environment_.callers->ReadPartBytes());
  absl::MutexLock lock(&mutex_);
  if (connection_ == nullptr || !ended_.ok()) return;
  if (!part.ok()) {
    last_ = part.status();
  } else if (!*part) {
    last_ = absl::OkStatus();
  } else {
    stream_ = std::move(stream);
    if ((*part)->empty()) return MakeSoon();
    next_ = **std::move(part);
  }
  Resume();
}

void Exchange::Finish(bool was_whole) {
  std::optional<HttpAnswer> answer;
  std::shared_ptr<HttpStream> stream;
  std::shared_ptr<const HttpCallSource> source;
  absl::Status status = was_whole ? absl::OkStatus() : absl::CancelledError("the caller has gone");
  CallBytes bytes;
  {
    absl::MutexLock lock(&mutex_);
    connection_ = nullptr;
    is_suspended_ = false;
    answer.swap(answer_);
    stream = std::move(stream_);
    source = std::move(source_);
    next_.reset();
    part_.clear();
    bytes.sent = sent_bytes_ + (was_whole ? whole_bytes_ : 0);
    if (!ended_.ok()) {
      status = ended_;
    } else if (last_ && !last_->ok()) {
      status = *last_;
    }
  }
  if (answer && answer->ticket) {
    answer->ticket->Done(status, bytes, answer->status);
    NoteCallDone(environment_, *source, answer->method, started_, status);
    // It may close files.
    if (stream != nullptr) {
      environment_.workers->Schedule(
          answer->ticket->key(),
          [hold = hold_, stream = std::move(stream)]() mutable { stream = nullptr; });
    }
  }
}

void Exchange::End(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (ended_.ok()) ended_ = why;
  // The library sends it without asking.
  const bool library_has_body = whole_bytes_ > 0 && !whole_;
  if (connection_ != nullptr && library_has_body) shutdown(fd_, SHUT_RDWR);
  Resume();
}

void Exchange::Cut() {
  absl::MutexLock lock(&mutex_);
  if (connection_ == nullptr) return;
  // It is the connection's as long as the library is not done with it.
  shutdown(fd_, SHUT_RDWR);
  if (ended_.ok()) {
    ended_ = absl::CancelledError("the call was to end, and its client did not read");
  }
  Resume();
}

void Exchange::EndIfGone() {
  absl::MutexLock lock(&mutex_);
  const bool waits_for_events =
      is_suspended_ && answer_ && !answer_->stream_bytes && connection_ != nullptr && ended_.ok();
  if (!waits_for_events) return;
  pollfd look = {.fd = fd_, .events = POLLRDHUP, .revents = 0};
  if (poll(&look, 1, 0) <= 0) return;
  ended_ = absl::CancelledError("the caller has gone");
  Resume();
}

void Exchange::OnTimer() {
  absl::MutexLock lock(&mutex_);
  const bool waits = has_started_ && !is_known_ && ended_.ok();
  if (!waits || environment_.clock.Monotonic() - started_ < kAwaitMax) return;
  is_known_ = true;
  answer_ = ErrorAnswer(absl::UnavailableError(
      "the server is busy, or its munged or name service does not answer; try again later"));
  Resume();
}

}  // namespace h5mirror::server
