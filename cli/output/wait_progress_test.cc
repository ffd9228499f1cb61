#include "cli/output/wait_progress.h"

#include <ostream>
#include <streambuf>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cli/output/progress_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Takes text of one thread, and lets another one wait for it.
class WatchedText : public std::streambuf {
 public:
  std::string text() const {
    absl::MutexLock lock(&mutex_);
    return text_;
  }
  void WaitForAny() const {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](const std::string* text) { return !text->empty(); }, &text_));
  }

 protected:
  int_type overflow(int_type byte) override {
    absl::MutexLock lock(&mutex_);
    text_.push_back(static_cast<char>(byte));
    return byte;
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    absl::MutexLock lock(&mutex_);
    text_.append(bytes, static_cast<size_t>(count));
    return count;
  }

 private:
  mutable absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

TEST(WaitProgressTest, TheTimeIsShownAndWipedAtTheEnd) {
  WatchedText watched;
  std::ostream err(&watched);
  Streams streams{.out = err, .err = err, .err_sink = Sink::kTerminal, .width_columns = 20};
  {
    const WaitProgress progress(streams, "fork run.h5@12 as trial.h5");
    watched.WaitForAny();
  }
  EXPECT_THAT(watched.text(), HasSubstr(" s  fork run.h5"));
  EXPECT_THAT(watched.text(), EndsWith(kProgressWipe));
  EXPECT_EQ(watched.text().find("trial.h5"), std::string::npos) << "cut off at 20 columns";
}

TEST(WaitProgressTest, APipeGetsNothing) {
  WatchedText watched;
  std::ostream err(&watched);
  Streams streams{.out = err, .err = err, .err_sink = Sink::kPipe};
  { const WaitProgress progress(streams, "fork"); }
  EXPECT_EQ(watched.text(), "");
}

}  // namespace
}  // namespace h5mirror::tools
