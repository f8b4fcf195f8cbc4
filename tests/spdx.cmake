# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -P spdx.cmake
#
# Passes if every file of the repository that takes comments names its license in its first lines.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

set(without_comments "(^|/)(LICENSE|usage|debian/source/format)$|\\.(md|json|csv|txt|png|svg|onnx)$")
set(with_comments "(^|/)CMakeLists\\.txt$")
set(wanted "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception")

# Files that are new count too, so that a fault shows before the commit.
set(files)
find_program(git git)
if(git)
  execute_process(COMMAND "${git}" -c core.quotePath=off ls-files --cached --others --exclude-standard
                  WORKING_DIRECTORY "${root}" OUTPUT_VARIABLE files ERROR_QUIET)
  string(REPLACE "\n" ";" files "${files}")
endif()
if(NOT files)  # an archive, or no git
  file(GLOB_RECURSE files RELATIVE "${root}" "${root}/*")
  list(FILTER files EXCLUDE REGEX "^(build|\\.git)/")
endif()

set(errors)
set(count 0)
foreach(file IN LISTS files)
  if(NOT EXISTS "${root}/${file}" OR IS_DIRECTORY "${root}/${file}"
     OR (file MATCHES "${without_comments}" AND NOT file MATCHES "${with_comments}"))
    continue()
  endif()
  math(EXPR count "${count} + 1")
  file(READ "${root}/${file}" start LIMIT 300)
  string(FIND "${start}" "${wanted}" found)
  if(found EQUAL -1)
    string(APPEND errors "${file}\n")
  endif()
endforeach()

if(errors)
  message(NOTICE "${errors}")
  message(FATAL_ERROR "the files above lack the line `${wanted}` at their top")
endif()
if(count EQUAL 0)
  message(FATAL_ERROR "found no files in ${root}")
endif()
message(STATUS "${count} files name their license")
