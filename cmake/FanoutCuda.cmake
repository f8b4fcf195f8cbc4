# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Enables the CUDA language for our own tests and examples where there is an nvcc that can do C++20, and sets
# FANOUT_HAS_CUDA_LANGUAGE. A file to include, not a function: enable_language may only stand in the scope of a file, and has to
# stand above all folders that use the language. Who uses fanout needs none of this: fanout::cuda brings along what nvcc needs.

set(FANOUT_HAS_CUDA_LANGUAGE OFF)
find_program(FANOUT_NVCC nvcc PATHS /usr/local/cuda PATH_SUFFIXES bin)  # often not on the PATH
if(FANOUT_NVCC AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} "${FANOUT_NVCC}")
endif()
include(CheckLanguage)
check_language(CUDA)

if(CMAKE_CUDA_COMPILER)
  # One virtual architecture, the oldest that nvcc 13 knows: quick to build, and made into code for
  # whatever GPU is there. `native` would fail on a machine without one.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75-virtual)
  endif()
  enable_language(CUDA)

  if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
    message(STATUS "fanout: nvcc ${CMAKE_CUDA_COMPILER_VERSION} is not used: it is older than 13")
  else()
    set(FANOUT_HAS_CUDA_LANGUAGE ON)
    # CMake 3.25 does not know that nvcc can do C++20; newer ones do and are left alone.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      list(APPEND CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  endif()
endif()
