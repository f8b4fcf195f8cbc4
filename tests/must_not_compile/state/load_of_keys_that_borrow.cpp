// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load<T>() makes the keys of a map from names in a file that is gone afterwards
#include <map>
#include <string>
#include <string_view>

#include <fanout/state.hpp>

int main() {
#ifdef FANOUT_CONTROL
  using Key = std::string;
#else
  using Key = std::string_view;
#endif
  fanout::load<std::map<Key, double>>("file");
}
