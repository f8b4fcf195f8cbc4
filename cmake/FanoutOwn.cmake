# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The target `fanout_own`: fanout with the warnings and sanitizers that our own tests, examples and
# benchmarks are built with. It is never installed, so that no consumer inherits a flag from it. With
# FANOUT_TEST_COMPILED it is fanout::compiled; `fanout_own_headers` is the headers in any case.

option(FANOUT_TEST_COMPILED "Build fanout's own tests and examples against fanout::compiled, which takes less time" OFF)

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(fanout_own_headers INTERFACE)
target_link_libraries(fanout_own_headers INTERFACE fanout::fanout)
add_library(fanout_own INTERFACE)
target_link_libraries(fanout_own INTERFACE fanout_own_headers $<$<BOOL:${FANOUT_TEST_COMPILED}>:fanout::compiled>)

# nvcc hands its host warnings through -Xcompiler. -Wpedantic is left out there: the code that nvcc
# generates for the host compiler is full of GNU line directives.
set(warnings -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor)
list(JOIN warnings "," warnings_of_nvcc)
target_compile_options(fanout_own_headers INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings};-Wpedantic;$<IF:$<CXX_COMPILER_ID:GNU>,-Wcast-align=strict,-Wcast-align>>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${warnings_of_nvcc}>")

if(FANOUT_WERROR)
  target_compile_options(fanout_own_headers INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror;-Werror=all-warnings>")
endif()

if(FANOUT_SANITIZE)
  target_compile_options(fanout_own_headers INTERFACE
    "-fsanitize=${FANOUT_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fanout_own_headers INTERFACE "-fsanitize=${FANOUT_SANITIZE}")
endif()

# fanout_own_cuda and fanout_own_mpi: fanout_own with that component, if it is there.
foreach(component IN ITEMS cuda mpi)
  if(TARGET fanout::${component})
    add_library(fanout_own_${component} INTERFACE)
    target_link_libraries(fanout_own_${component} INTERFACE
      fanout_own fanout::${component} $<$<BOOL:${FANOUT_TEST_COMPILED}>:fanout::compiled_${component}>)
  endif()
endforeach()
if(FANOUT_TEST_COMPILED)
  foreach(bodies IN ITEMS fanout_compiled fanout_compiled_cuda fanout_compiled_mpi)
    if(TARGET ${bodies})
      target_compile_options(${bodies} PRIVATE $<TARGET_PROPERTY:fanout_own_headers,INTERFACE_COMPILE_OPTIONS>)
    endif()
  endforeach()
endif()

# fanout_test(NAME COMMAND...): a test of CTest's that cannot hang for ever.
function(fanout_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()
