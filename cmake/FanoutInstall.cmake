# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What `cmake --install` puts in place: the headers, the CMake package and the pkg-config file. The licence is
# not among it: each packager has a place of its own for that.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Under share/, not lib/: nothing in the packages depends on the machine.
set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/fanout")
set(pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")

# ---- the headers -----------------------------------------------------------------------------------
# Not as a FILE_SET of the target: CMake 3.25 exports one with a wrong path where the folder is absolute.
install(DIRECTORY include/fanout DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.ipp" PATTERN "*.cuh")

# ---- CMake -----------------------------------------------------------------------------------------
configure_package_config_file(cmake/fanout-config.cmake.in fanout-config.cmake
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(fanout-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(TARGETS fanout EXPORT fanout-targets INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT fanout-targets NAMESPACE fanout:: DESTINATION "${package_dir}")
install(
  FILES "${PROJECT_BINARY_DIR}/fanout-config.cmake" "${PROJECT_BINARY_DIR}/fanout-config-version.cmake"
    cmake/FanoutComponents.cmake cmake/FindNCCL.cmake
  DESTINATION "${package_dir}")

# ---- pkg-config ------------------------------------------------------------------------------------
# The prefix is found from where the file lies, so that the installation can be moved; not so where a packager
# gave an absolute folder.
if(IS_ABSOLUTE "${pkgconfig_dir}")
  set(pkgconfig_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${pkgconfig_dir}" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pkgconfig_prefix "\${pcfiledir}/${up}")
endif()
set(pkgconfig_includedir "\${prefix}")
cmake_path(APPEND pkgconfig_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/fanout.pc.in fanout.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/fanout.pc" DESTINATION "${pkgconfig_dir}")
