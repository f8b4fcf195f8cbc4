// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the keys of a map that is saved or loaded are texts or numbers
#include <map>

#include <fanout/state.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const std::map<short, float> tree;
#else
  enum class Key { one };
  const std::map<Key, float> tree;
#endif
  fanout::save("file", tree);
}
