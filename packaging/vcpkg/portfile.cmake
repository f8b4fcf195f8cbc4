# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# An overlay port, which packages the clone of fanout that it lies in. There is no release to download yet: a port
# for vcpkg's own collection takes its SOURCE_PATH from vcpkg_from_github, with the hash of one.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

set(VCPKG_BUILD_TYPE release)  # headers only: a debug build would install the same
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DFANOUT_BUILD_TESTS=OFF
    -DFANOUT_BUILD_EXAMPLES=OFF
    -DFANOUT_BUILD_BENCHMARKS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/fanout)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
