// Tells whether a tree (base/env.h) keeps names in order across a crash. base/machine.h has other
// facts of that kind.
#ifndef H5MIRROR_BASE_NAMES_IN_ORDER_H_
#define H5MIRROR_BASE_NAMES_IN_ORDER_H_

#include "base/env.h"

namespace h5mirror {

// Implemented by an EnvTree that knows its file system's journal.
class KnowsNameOrder {
 public:
  virtual ~KnowsNameOrder() = default;
  // True: if a change of a name survives a crash, so do all earlier changes of names in its
  // directory. A rename is a change in both of its directories, and survives as a whole. So a
  // durable rename also makes durable all earlier names in the directory that the file left.
  virtual bool KeepsNamesInOrder() = 0;
};

// False if the tree does not know.
inline bool KeepsNamesInOrder(EnvTree& tree) {
  auto* const knows = dynamic_cast<KnowsNameOrder*>(&tree);
  return knows != nullptr && knows->KeepsNamesInOrder();
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_NAMES_IN_ORDER_H_
