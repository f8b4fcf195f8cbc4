# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D program=<program of tests> -D lists=<pattern of files of CTest> -P discovered.cmake
#
# Passes if CTest has all tests of the program: they are discovered by room, and one of no room would be lost.

cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND "${program}" --count --no-intro OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "current filters: ([0-9]+)" found "${said}")
set(count "${CMAKE_MATCH_1}")
set(discovered 0)
file(GLOB files "${lists}")
foreach(file IN LISTS files)
  file(STRINGS "${file}" tests REGEX "^add_test")
  list(LENGTH tests more)
  math(EXPR discovered "${discovered} + ${more}")
endforeach()
if(NOT count OR discovered LESS count)
  message(FATAL_ERROR "${program} has ${count} tests, of which ${discovered} were discovered")
endif()
message(STATUS "${count} tests")
