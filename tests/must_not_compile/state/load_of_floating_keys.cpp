// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load<T>() makes no map with floating keys, since a dot in a name ends a key
#include <map>

#include <fanout/state.hpp>

int main() {
#ifdef FANOUT_CONTROL
  using Key = int;
#else
  using Key = double;
#endif
  fanout::load<std::map<Key, double>>("file");
}
