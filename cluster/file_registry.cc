#include "cluster/file_registry.h"

#include <charconv>
#include <string>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

constexpr std::string_view kFirstLine = "h5mirror registry 1\n";
constexpr std::string_view kFile = "registry";
constexpr std::string_view kNewFile = "registry.new";
constexpr std::string_view kLockFile = "registry.lock";
constexpr absl::Duration kLockPollEvery = absl::Milliseconds(2);
constexpr int kLockPollsMax = 2500;
constexpr uint32_t kModeBits = 0600;

absl::Status Torn(std::string_view why) {
  return absl::DataLossError(StrCat("the registry's file is damaged: ", why));
}

// The rest of a file, taken from its front.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool Skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  // Digits, and the byte that must follow them.
  bool Number(char end, size_t* number) {
    const char* const last = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), last, *number);
    if (error != std::errc() || stop == last || *stop != end) return false;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()) + 1);
    return true;
  }
  // Reads `size_bytes` bytes and the end of the line.
  bool Line(size_t size_bytes, std::string* line) {
    if (rest_.size() <= size_bytes || rest_[size_bytes] != '\n') return false;
    *line = rest_.substr(0, size_bytes);
    rest_.remove_prefix(size_bytes + 1);
    return true;
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Maps errors to those of a registry: kUnavailable for all that may be retried.
absl::Status AsRegistryError(const absl::Status& status) {
  if (status.ok() || absl::IsInternal(status) || absl::IsDataLoss(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::StatusOr<RegistryView> ReadFile(EnvTree& tree) {
  auto file = tree.Open(kFile, OpenKind::kRead, kModeBits);
  if (absl::IsNotFound(file.status())) return RegistryView();
  if (!file.ok()) return file.status();
  H5M_ASSIGN_OR_RETURN(const uint64_t size_bytes, (*file)->Size());
  std::string bytes(size_bytes, '\0');
  H5M_ASSIGN_OR_RETURN(const size_t got, (*file)->ReadAt(0, absl::MakeSpan(bytes)));
  bytes.resize(got);
  return DecodeRegistry(bytes);
}

}  // namespace

std::string EncodeRegistry(const RegistryView& view) {
  std::string bytes(kFirstLine);
  for (const auto& [name, text] : view) {
    StrAppend(&bytes, name.size(), " ", text.size(), "\n", name, "\n", text, "\n");
  }
  StrAppend(&bytes, "end ", view.size(), "\n");
  return bytes;
}

absl::StatusOr<RegistryView> DecodeRegistry(std::string_view bytes) {
  Cursor cursor(bytes);
  if (!cursor.Skip(kFirstLine)) return Torn("its first line is another one");
  RegistryView view;
  while (!cursor.Skip("end ")) {
    size_t name_bytes = 0, text_bytes = 0;
    std::string name, text;
    if (!cursor.Number(' ', &name_bytes) || !cursor.Number('\n', &text_bytes) ||
        !cursor.Line(name_bytes, &name) || !cursor.Line(text_bytes, &text)) {
      return Torn(StrCat("entry ", view.size() + 1, " is not whole"));
    }
    view[name] = std::move(text);
  }
  size_t count = 0;
  if (!cursor.Number('\n', &count) || count != view.size() || !cursor.is_at_end()) {
    return Torn("its last line is another one");
  }
  return view;
}

absl::StatusOr<std::unique_ptr<FileRegistry>> FileRegistry::Open(
    Env& env, const std::filesystem::path& directory) {
  H5M_ASSIGN_OR_RETURN(auto tree, env.OpenTree(directory));
  return std::unique_ptr<FileRegistry>(new FileRegistry(std::move(tree)));
}

absl::StatusOr<RegistryView> FileRegistry::ReadAll() {
  auto view = ReadFile(*tree_);
  if (!view.ok()) return AsRegistryError(view.status());
  return view;
}

absl::StatusOr<RegistryView> FileRegistry::Read(absl::Span<const std::string> names) {
  H5M_ASSIGN_OR_RETURN(const RegistryView view, ReadAll());
  RegistryView found;
  for (const std::string& name : names) {
    if (const auto text = TextOf(view, name); text.has_value()) found[name] = *text;
  }
  return found;
}

absl::StatusOr<std::unique_ptr<EnvLock>> FileRegistry::Lock() {
  for (int polls = 0; polls < kLockPollsMax; ++polls) {
    auto lock = tree_->Lock(kLockFile, LockKind::kExclusive);
    if (!absl::IsFailedPrecondition(lock.status())) return lock;
    absl::SleepFor(kLockPollEvery);
  }
  return absl::UnavailableError("another process holds the registry's lock for 5 s");
}

absl::Status FileRegistry::Replace(const RegistryView& view) {
  H5M_ASSIGN_OR_RETURN(const auto file, tree_->Open(kNewFile, OpenKind::kCreateFresh, kModeBits));
  H5M_RETURN_IF_ERROR(WriteAt(*file, 0, EncodeRegistry(view)));
  H5M_RETURN_IF_ERROR(file->Sync());
  H5M_RETURN_IF_ERROR(tree_->Rename(kNewFile, kFile));
  return tree_->SyncDirectory("");
}

absl::Status FileRegistry::CompareAndSet(absl::Span<const Expectation> expected,
                                         absl::Span<const NewText> changes) {
  H5M_RETURN_IF_ERROR(CheckChange(expected, changes));
  absl::MutexLock lock(&mutex_);
  const auto file_lock = Lock();
  if (!file_lock.ok()) return AsRegistryError(file_lock.status());
  auto view = ReadAll();
  if (!view.ok()) return view.status();
  if (!Holds(*view, expected)) return absl::AbortedError("the registry is not as expected");
  for (const NewText& each : changes) (*view)[each.name] = each.text;
  return AsRegistryError(Replace(*view));
}

}  // namespace h5mirror::cluster
