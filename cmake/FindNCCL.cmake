# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds NCCL, which comes without a CMake package: NCCL_FOUND, NCCL_VERSION and the target NCCL::nccl. Looks where NCCL_ROOT
# says, in the CUDA toolkit if find_package(CUDAToolkit) was called before, and where systems keep such things.

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  set(NCCL_VERSION)
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" line REGEX "^#define NCCL_${part} +[0-9]+")
    if(line MATCHES "([0-9]+)")
      list(APPEND NCCL_VERSION "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN NCCL_VERSION "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES
    IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
