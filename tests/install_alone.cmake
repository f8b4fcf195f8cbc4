# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -D scratch=<a folder of its own> -D compiler=<of C++> -P install_alone.cmake
#
# Passes if fanout looks for nothing but threads when it is configured only to be installed: neither for CUDA nor for the
# libraries that its tests use.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

# looks_only_for_threads(ARGUMENT...): configures fanout so.
function(looks_only_for_threads)
  file(REMOVE_RECURSE "${scratch}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" ${ARGN} -S "${root}" -B "${scratch}" "-DCMAKE_CXX_COMPILER=${compiler}"
      --trace-expand "--trace-redirect=${scratch}.trace"
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "configuring with ${ARGN} fails:\n${output}")
  endif()
  file(STRINGS "${scratch}.trace" lines REGEX ": *(find_package|find_path|find_library|check_language|enable_language)\\(")
  list(FILTER lines INCLUDE REGEX "^${root}/")
  list(TRANSFORM lines REPLACE "^.*[)]: *" "")
  if(NOT lines STREQUAL "find_package(Threads REQUIRED )")
    list(JOIN lines "\n  " found)
    message(SEND_ERROR "configured with ${ARGN}, fanout looks for\n  ${found}")
  endif()
endfunction()

looks_only_for_threads(--preset install)
looks_only_for_threads(-D FANOUT_BUILD_TESTS=OFF -D FANOUT_BUILD_EXAMPLES=OFF)
file(REMOVE_RECURSE "${scratch}" "${scratch}.trace")
