# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D port=<folder of a port> -D out=<empty folder> -P stand_in.cmake
#
# Runs a port for headers as vcpkg would, with small stand-ins for those of vcpkg's functions that ours calls,
# and leaves the package in <out>/packages. They do what vcpkg's do to a package like ours, and no more; a
# function that is not here, or whose helper port vcpkg.json does not name, is an error.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

file(READ "${port}/vcpkg.json" manifest)
string(JSON PORT GET "${manifest}" name)
string(JSON VERSION GET "${manifest}" version)
set(TARGET_TRIPLET x64-linux)
set(VCPKG_TARGET_IS_LINUX ON)
set(CURRENT_PORT_DIR "${port}")
set(CURRENT_BUILDTREES_DIR "${out}/buildtrees")
set(CURRENT_PACKAGES_DIR "${out}/packages")
set(CURRENT_INSTALLED_DIR "${out}/installed")
set(build "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-rel")

set(helpers)
string(JSON count LENGTH "${manifest}" dependencies)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON name GET "${manifest}" dependencies ${i} name)
  string(JSON host GET "${manifest}" dependencies ${i} host)
  if(host)
    list(APPEND helpers "${name}")
  endif()
endforeach()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_download_distfile path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILENAME;SHA512" "URLS")
  set("${path}" "${out}/downloads/${arg_FILENAME}" PARENT_SCOPE)
  file(DOWNLOAD "${arg_URLS}" "${out}/downloads/${arg_FILENAME}" EXPECTED_HASH "SHA512=${arg_SHA512}")
endfunction()

function(vcpkg_extract_source_archive path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${CURRENT_BUILDTREES_DIR}/src")
  file(GLOB root "${CURRENT_BUILDTREES_DIR}/src/*")
  set("${path}" "${root}" PARENT_SCOPE)
endfunction()

if("vcpkg-cmake" IN_LIST helpers)
  function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
      message(FATAL_ERROR "the stand-ins build releases only")
    endif()
    run("${CMAKE_COMMAND}" -G Ninja -S "${arg_SOURCE_PATH}" -B "${build}"
      -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
  endfunction()

  function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --build "${build}" --target install)
  endfunction()
endif()

if("vcpkg-cmake-config" IN_LIST helpers)
  # Moves the CMake package to where vcpkg wants it, and mends the way from there to the prefix.
  function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
    set(from "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
    set(to "${CURRENT_PACKAGES_DIR}/share/${PORT}")
    file(GLOB files "${from}/*")
    file(COPY ${files} DESTINATION "${to}")
    file(REMOVE_RECURSE "${from}")
    cmake_path(GET from PARENT_PATH parent)
    if(parent MATCHES "/cmake$")
      file(REMOVE_RECURSE "${parent}")
    endif()

    set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    file(GLOB files "${to}/*.cmake")
    foreach(file IN LISTS files)
      file(READ "${file}" text)
      string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
      string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
      string(REPLACE "${CURRENT_PACKAGES_DIR}" "\${_IMPORT_PREFIX}" text "${text}")
      file(WRITE "${file}" "${text}")
    endforeach()
  endfunction()
endif()

# Makes the pkg-config files of a package movable, and tries them.
function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files "${CURRENT_PACKAGES_DIR}/*.pc")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REPLACE "${CURRENT_PACKAGES_DIR}" "\${prefix}" text "${text}")
    string(REPLACE "\nprefix=\${prefix}" "\nprefix=\${pcfiledir}/../.." text "${text}")
    file(WRITE "${file}" "${text}")
    run(pkg-config --print-errors --exists "${file}")
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${port}/portfile.cmake")
