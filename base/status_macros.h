// Passes errors up: the only macros of the project.
//
//   H5M_RETURN_IF_ERROR(file->Sync());
//   H5M_ASSIGN_OR_RETURN(FileStat stat, StatFile(path));
//
// Both return the absl::Status from the enclosing function, which returns absl::Status or
// absl::StatusOr.
#ifndef H5MIRROR_BASE_STATUS_MACROS_H_
#define H5MIRROR_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define H5M_CONCAT_INNER(a, b) a##b
#define H5M_CONCAT(a, b) H5M_CONCAT_INNER(a, b)

#define H5M_RETURN_IF_ERROR(expression)                                              \
  do {                                                                               \
    if (absl::Status h5m_status = (expression); !h5m_status.ok()) return h5m_status; \
  } while (false)

// `target` may declare a variable or name one. A type with a comma in it needs parentheses
// around nothing: use an alias or `auto`.
#define H5M_ASSIGN_OR_RETURN(target, expression) \
  H5M_ASSIGN_OR_RETURN_INNER(H5M_CONCAT(h5m_result_, __LINE__), target, expression)

#define H5M_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return std::move(result).status();         \
  target = *std::move(result)

#endif  // H5MIRROR_BASE_STATUS_MACROS_H_
