// An archive in a bucket of an S3 service: AWS, Ceph's radosgw, MinIO and others.
#ifndef H5MIRROR_ARCHIVE_S3_STORE_H_
#define H5MIRROR_ARCHIVE_S3_STORE_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "archive/retry.h"
#include "archive/s3_credentials.h"
#include "archive/s3_signature.h"
#include "base/curl_library.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

struct S3Settings {
  std::string bucket;
  std::string prefix = {};    // of all keys, without a '/' at its ends; may be empty
  std::string endpoint = {};  // "https://host:port"; empty: AWS's of the region
  std::string region = "us-east-1";
  std::string credentials_file = {};  // empty: the environment
  std::string ca_file = {};           // PEM; empty: the system's authorities
  bool operator==(const S3Settings&) const = default;
};

// Calls use connections that stay open. Each call is signed (s3_signature.h). After a refusal the
// file of credentials is read again, once.
class S3Store final : public store::ObjectStore {
 public:
  // Makes no call. Once `cancel` is set, calls end within some 1 s, with kCancelled. It may be
  // nullptr; must outlive the store.
  // Errors: kFailedPrecondition  there is no libcurl, or there are no credentials.
  //         those of LoadS3Credentials().
  static absl::StatusOr<std::unique_ptr<S3Store>> Open(S3Settings settings,
                                                       RetryPolicy policy = RetryPolicy(),
                                                       RetryClock clock = RetryClock::Steady(),
                                                       const std::atomic<bool>* cancel = nullptr);

  // A store for a part of the same bucket, below this store's prefix; `part` empty: the same place.
  // It starts with this store's present credentials; making it reads no file. `cancel` as above.
  // May outlive this.
  std::unique_ptr<S3Store> Below(std::string_view part, const std::atomic<bool>* cancel)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::string Describe() const override;
  absl::Status Put(std::string_view name, store::ObjectSource& source,
                   absl::Duration timeout) override;
  absl::Status Get(std::string_view name, uint64_t offset, absl::Span<char> out,
                   absl::Duration timeout) override;
  absl::StatusOr<store::ObjectInfo> Head(std::string_view name, absl::Duration timeout) override;
  absl::StatusOr<store::ObjectPage> List(std::string_view prefix, std::string_view next,
                                         size_t limit, absl::Duration timeout) override;
  absl::Status Delete(std::string_view name, absl::Duration timeout) override;

 private:
  S3Store(S3Settings settings, RetryPolicy policy, RetryClock clock, S3Credentials credentials,
          const std::atomic<bool>* cancel);

  // One call while it is prepared.
  struct Call {
    HttpMethod method = HttpMethod::kGet;
    std::string what;  // for messages: "get files/a in s3://b"
    std::string path = "/";
    std::map<std::string, std::string> query = {};
    std::map<std::string, std::string> headers = {};
    const HttpBody* body = nullptr;
    std::string body_sha256 = kEmptySha256;
    size_t max_answer_bytes = size_t{4} << 20;
  };
  Call CallOf(HttpMethod method, std::string_view verb, std::string_view name) const;
  std::string KeyOf(std::string_view name) const;
  // Makes the call, with as many tries as the policy and `timeout` allow. Returns an answer with
  // 2xx.
  absl::StatusOr<HttpAnswer> Run(const Call& call, absl::Duration timeout);
  absl::StatusOr<HttpAnswer> TryOnce(const Call& call, absl::Duration timeout);
  // `refused`, plus a hint for the operator: the keys, the clocks or the authority.
  absl::Status Explained(const absl::Status& refused, std::string_view date) const;
  absl::Status PutOnly(Call call, const RetryPolicy& policy, absl::Duration timeout);
  // True: the file of credentials has other keys now.
  bool HasNewCredentials() ABSL_LOCKS_EXCLUDED(mutex_);
  S3Credentials credentials() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<HttpAnswer> RunWith(const RetryPolicy& policy, const Call& call,
                                     absl::Duration timeout);

  const S3Settings settings_;
  const RetryPolicy policy_;
  const RetryClock clock_;
  const std::string host_;
  const std::atomic<bool>* const cancel_;
  HttpClient client_;
  // True: the service has refused If-None-Match.
  std::atomic<bool> lacks_conditions_{false};
  absl::Mutex mutex_;
  S3Credentials credentials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_S3_STORE_H_
