# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# In a clone of fanout, an overlay port, which packages that clone. In a registry, archive.cmake lies beside it and
# downloads a version: see packaging/registries.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/archive.cmake")
  include("${CMAKE_CURRENT_LIST_DIR}/archive.cmake")
  vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${archive}")
else()
  get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
endif()

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
