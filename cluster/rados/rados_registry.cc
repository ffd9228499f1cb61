#include "cluster/rados/rados_registry.h"

#include <errno.h>

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::cluster {
namespace {

// An OSD gives 1,024 names in one answer, unless told otherwise.
constexpr uint64_t kPageNamesMax = 1000;
// The object changes with each beat of each server, once in 10 ms where there are 100.
constexpr int kReadsMax = 50;

class WriteOp {
 public:
  WriteOp() : op_(rados_create_write_op()) {}
  ~WriteOp() { rados_release_write_op(op_); }
  WriteOp(const WriteOp&) = delete;
  rados_write_op_t get() const { return op_; }

 private:
  const rados_write_op_t op_;
};

class ReadOp {
 public:
  ReadOp() : op_(rados_create_read_op()) {}
  ~ReadOp() { rados_release_read_op(op_); }
  ReadOp(const ReadOp&) = delete;
  rados_read_op_t get() const { return op_; }

 private:
  const rados_read_op_t op_;
};

// Takes the names and texts of a read that succeeded. Ends the iterator.
void TakeAll(rados_omap_iter_t iterator, RegistryView* view) {
  for (;;) {
    char* name = nullptr;
    char* text = nullptr;
    size_t name_bytes = 0, text_bytes = 0;
    const int next = rados_omap_get_next2(iterator, &name, &text, &name_bytes, &text_bytes);
    if (next < 0 || name == nullptr) break;
    (*view)[std::string(name, name_bytes)] = std::string(text, text_bytes);
  }
  rados_omap_get_end(iterator);
}

// Names and texts as librados takes them; what they are made of must outlive them.
struct Pointers {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  void Add(const std::string& bytes) {
    data.push_back(bytes.data());
    sizes.push_back(bytes.size());
  }
};

}  // namespace

absl::Status RadosRegistry::Translate(int result) const {
  if (result >= 0) return absl::OkStatus();
  if (result == -ECANCELED) return absl::AbortedError("the registry is not as expected");
  const absl::Status status =
      CephError(-result, StrCat("the registry ", connection_.place().object));
  if (absl::IsInternal(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::Status RadosRegistry::Prepare() {
  const IoContext io(connection_);
  H5M_RETURN_IF_ERROR(io.status());
  const WriteOp op;
  rados_write_op_create(op.get(), LIBRADOS_CREATE_IDEMPOTENT, nullptr);
  const std::string& object = connection_.place().object;
  const int made = rados_write_op_operate2(op.get(), io.get(), object.c_str(), nullptr,
                                           LIBRADOS_OPERATION_NOFLAG);
  return made >= 0 ? absl::OkStatus() : CephError(-made, StrCat("make the registry ", object));
}

absl::StatusOr<RegistryView> RadosRegistry::ReadPages() {
  const IoContext io(connection_);
  H5M_RETURN_IF_ERROR(io.status());
  RegistryView view;
  uint64_t version = 0;
  for (unsigned char has_more = 1; has_more != 0;) {
    const ReadOp op;
    // All pages are of one state of the object, or the read fails.
    if (version != 0) rados_read_op_assert_version(op.get(), version);
    const std::string after = view.empty() ? "" : view.rbegin()->first;
    rados_omap_iter_t iterator = nullptr;
    int result = 0;
    has_more = 0;
    rados_read_op_omap_get_vals2(op.get(), after.c_str(), "", kPageNamesMax, &iterator, &has_more,
                                 &result);
    const int read = rados_read_op_operate(op.get(), io.get(), connection_.place().object.c_str(),
                                           LIBRADOS_OPERATION_NOFLAG);
    if (read == -ERANGE || read == -EOVERFLOW) return absl::AbortedError("it changed meanwhile");
    H5M_RETURN_IF_ERROR(Translate(read));
    H5M_RETURN_IF_ERROR(Translate(result));
    version = rados_get_last_version(io.get());
    TakeAll(iterator, &view);
  }
  return view;
}

absl::StatusOr<RegistryView> RadosRegistry::ReadAll() {
  for (int reads = 0; reads < kReadsMax; ++reads) {
    auto view = ReadPages();
    if (!absl::IsAborted(view.status())) return view;
  }
  return absl::UnavailableError("the registry changes faster than it can be read");
}

absl::StatusOr<RegistryView> RadosRegistry::Read(absl::Span<const std::string> names) {
  const IoContext io(connection_);
  H5M_RETURN_IF_ERROR(io.status());
  Pointers wanted;
  for (const std::string& name : names) wanted.Add(name);
  const ReadOp op;
  rados_omap_iter_t iterator = nullptr;
  int result = 0;
  rados_read_op_omap_get_vals_by_keys2(op.get(), wanted.data.data(), wanted.data.size(),
                                       wanted.sizes.data(), &iterator, &result);
  H5M_RETURN_IF_ERROR(Translate(rados_read_op_operate(
      op.get(), io.get(), connection_.place().object.c_str(), LIBRADOS_OPERATION_NOFLAG)));
  H5M_RETURN_IF_ERROR(Translate(result));
  RegistryView view;
  TakeAll(iterator, &view);
  return view;
}

absl::Status RadosRegistry::CompareAndSet(absl::Span<const Expectation> expected,
                                          absl::Span<const NewText> changes) {
  H5M_RETURN_IF_ERROR(CheckChange(expected, changes));
  const IoContext io(connection_);
  H5M_RETURN_IF_ERROR(io.status());
  const WriteOp op;
  // An object that is gone is not made anew, with nobody in it.
  rados_write_op_assert_exists(op.get());
  std::vector<int> results(expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string text = expected[i].text.value_or("");
    rados_write_op_omap_cmp2(op.get(), expected[i].name.data(), LIBRADOS_CMPXATTR_OP_EQ,
                             text.data(), expected[i].name.size(), text.size(), &results[i]);
  }
  Pointers names, texts;
  for (const NewText& each : changes) {
    names.Add(each.name);
    texts.Add(each.text);
  }
  rados_write_op_omap_set2(op.get(), names.data.data(), texts.data.data(), names.sizes.data(),
                           texts.sizes.data(), changes.size());
  return Translate(rados_write_op_operate2(op.get(), io.get(), connection_.place().object.c_str(),
                                           nullptr, LIBRADOS_OPERATION_NOFLAG));
}

}  // namespace h5mirror::cluster
