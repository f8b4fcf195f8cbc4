# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The target `fanout_own`: fanout with the warnings and sanitizers that our own tests, examples and
# benchmarks are built with. It is never installed, so that no consumer inherits a flag from it.

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(fanout_own INTERFACE)
target_link_libraries(fanout_own INTERFACE fanout::fanout)

# nvcc hands its host warnings through -Xcompiler. -Wpedantic is left out there: the code that nvcc
# generates for the host compiler is full of GNU line directives.
set(warnings -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor)
list(JOIN warnings "," warnings_of_nvcc)
target_compile_options(fanout_own INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic;$<IF:$<CXX_COMPILER_ID:GNU>,-Wcast-align=strict,-Wcast-align>>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${warnings_of_nvcc}>")

if(FANOUT_WERROR)
  target_compile_options(fanout_own INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror;-Werror=all-warnings>")
endif()

if(FANOUT_SANITIZE)
  target_compile_options(fanout_own INTERFACE
    "-fsanitize=${FANOUT_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fanout_own INTERFACE "-fsanitize=${FANOUT_SANITIZE}")
endif()

# fanout_test(NAME COMMAND...): a test of CTest's that cannot hang for ever.
function(fanout_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()
