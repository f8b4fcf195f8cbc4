# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -D version=<of the header> -P version.cmake
#
# Passes if the files that have to repeat the version agree with include/fanout/base/version.hpp.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

# agrees(FILE REGEX EXPECTED): the number after the first match of REGEX is EXPECTED.
function(agrees file regex expected)
  file(READ "${root}/${file}" text)
  if(NOT text MATCHES "${regex}([0-9]+(\\.[0-9]+)*)")
    message(SEND_ERROR "${file} has no version after `${regex}`")
  elseif(NOT CMAKE_MATCH_1 STREQUAL expected)
    message(SEND_ERROR "${file} says ${CMAKE_MATCH_1}, but this is fanout ${expected}")
  endif()
endfunction()

string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor_version "${version}")
agrees(packaging/vcpkg/vcpkg.json "\"version\": \"" ${version})
agrees(packaging/conda/recipe.yaml "\n  version: \"" ${version})
agrees(tests/consumer/conan/conanfile.txt "\nfanout/" ${version})
agrees(tests/consumer/fetch_content/CMakeLists.txt "GIT_TAG v" ${version})
agrees(tests/consumer/find_package/CMakeLists.txt "find_package\\(fanout " ${minor_version})
agrees(CITATION.cff "\nversion: " ${version})
agrees(CHANGELOG.md "\n## \\[[^0-9]*" ${version})  # the newest section begins with its number
