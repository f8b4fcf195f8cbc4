# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D compiler=... -D include=... -D source=... [-D flags=...] [-D together=...] -P check.cmake
#
# Passes if `source` is refused with one error, whose line has the text of its `// expect:` comment, and compiles
# when FANOUT_CONTROL is defined: so nothing but what is meant can be what fails, and nothing follows it. What
# further `// expect:` comments say, a type or a place, stands anywhere in what the compiler prints.
#
# `together` is the folder that together.sh wrote. If it shows all that, the case is not compiled once more.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

file(READ "${source}" text)
if(NOT text MATCHES "// expect: ([^\n]+)")
  message(FATAL_ERROR "${source} has no line `// expect: <text of the error>`")
endif()

# Sets `wrong` to what is wrong with what the compiler said, or to nothing.
function(judge output)
  set(wrong "" PARENT_SCOPE)
  string(REGEX MATCH "error: [^\n]*" searched "${output}")
  set(rest "${text}")
  while(rest MATCHES "// expect: ([^\n]+)(.*)")  # no list of them, since a sentence may have a semicolon
    set(expected "${CMAKE_MATCH_1}")
    set(rest "${CMAKE_MATCH_2}")
    string(FIND "${searched}" "${expected}" found)
    if(found EQUAL -1)
      set(wrong "is refused, but not with the words\n  ${expected}" PARENT_SCOPE)
      return()
    endif()
    set(searched "${output}")
  endwhile()
  string(REGEX MATCHALL "error: " errors "${output}")
  list(LENGTH errors count)
  if(NOT count EQUAL 1)
    set(wrong "is refused with ${count} errors, and should be with one" PARENT_SCOPE)
  endif()
endfunction()

cmake_path(GET source STEM name)
if(together AND EXISTS "${together}/controls" AND EXISTS "${together}/${name}.txt"
   AND NOT EXISTS "${together}/unclear")
  file(READ "${together}/${name}.txt" output)
  judge("${output}")
  if(NOT wrong)
    return()
  endif()
endif()

separate_arguments(flags)

# The C locale: else a quotation mark in a message depends on the machine.
set(command "${CMAKE_COMMAND}" -E env LC_ALL=C "${compiler}" -std=c++20 "-I${include}" ${flags} -fsyntax-only
    -fdiagnostics-color=never -fmessage-length=0)

if(together AND EXISTS "${together}/fanout.hpp.gch" AND text MATCHES "#include <fanout/fanout.hpp>")
  list(APPEND command -include "${together}/fanout.hpp")
endif()

set(controls "")
if(together AND EXISTS "${together}/controls")
  file(READ "${together}/controls.cpp" controls)
endif()
if(NOT controls MATCHES "namespace case_${name} ")
  execute_process(COMMAND ${command} -DFANOUT_CONTROL "${source}" RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(NOTICE "${output}")
    message(FATAL_ERROR "with FANOUT_CONTROL, ${source} should compile")
  endif()
endif()

execute_process(COMMAND ${command} "${source}" RESULT_VARIABLE status
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${source} compiles, and should not")
endif()
judge("${output}")
if(wrong)
  message(NOTICE "${output}")
  message(FATAL_ERROR "${source} ${wrong}")
endif()
