# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -P arrows.cmake
#
# Passes if the includes inside the library point downwards only, from folder to folder, and in no circle, and if kernels and
# other libraries' headers stand where they have their place.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

# Which folders each folder may include, besides itself. `umbrella` is fanout.hpp and its like; fwd.hpp, which only
# declares, lies below all but base.
set(below_fwd base)
set(below_base "")
set(below_sync base)
set(below_tree base)
set(below_plan base)
set(below_memory base sync tree plan)
set(below_device base sync tree plan memory)
set(below_parallel base sync tree plan memory device)
set(below_cuda base sync memory device)  # plugs in at the side
set(below_adapt base sync tree plan memory device parallel)  # nobody includes it: what it adapts is not always there
# Thrust's adapter for GPUs adds to the one for hosts, and like it is included by users alone: a .cu of theirs needs both.
set(below_cuda/thrust.cuh adapt)
set(below_umbrella base sync tree plan memory device parallel cuda)

function(level_of file result)
  string(REGEX MATCH "^[^/]+/" folder "${file}")
  if(folder)
    string(REPLACE "/" "" folder "${folder}")
  elseif(file STREQUAL "fwd.hpp")
    set(folder fwd)
  else()
    set(folder umbrella)
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

set(errors)
file(GLOB_RECURSE files RELATIVE "${root}/include/fanout"
  "${root}/include/fanout/*.hpp" "${root}/include/fanout/*.cuh")
foreach(file IN LISTS files)
  level_of("${file}" level)
  if(NOT DEFINED below_${level})
    string(APPEND errors "${file}: the folder ${level} has no place in tests/arrows.cmake yet\n")
  endif()

  file(STRINGS "${root}/include/fanout/${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<fanout/)")
  set(includes_${file})
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "<fanout/([^>]+)>")
      string(APPEND errors "${file}: ${line}: the library's headers are included as <fanout/...>\n")
      continue()
    endif()
    set(included "${CMAKE_MATCH_1}")
    level_of("${included}" other)
    if(NOT included IN_LIST files)
      string(APPEND errors "${file} includes ${included}, which does not exist\n")
    elseif(other STREQUAL "umbrella" AND NOT level STREQUAL "umbrella")
      string(APPEND errors "${file} includes the umbrella ${included}: nothing inside may\n")
    elseif(NOT other STREQUAL level AND NOT other STREQUAL "fwd" AND NOT other IN_LIST below_${level}
           AND NOT other IN_LIST below_${file})
      string(APPEND errors "${file} includes ${included}: ${level} may not know ${other}\n")
    endif()
    list(APPEND includes_${file} "${included}")
  endforeach()
endforeach()

# What has one home, or one folder, each of them a regular expression: kernels, and the headers of others.
set(homes
  "__global__|<<<" "cuda/launch[.]cuh"
  "include <nccl" "cuda/nccl[.]hpp"
  "include <thrust/" "cuda/thrust[.]cuh|adapt/thrust[.]hpp"
  "include <cu(da)?[._]" "cuda/.*")
while(homes)
  list(POP_FRONT homes what home)
  foreach(file IN LISTS files)
    file(STRINGS "${root}/include/fanout/${file}" lines REGEX "^[^/]*(${what})")
    if(lines AND NOT file MATCHES "^(${home})$")
      string(APPEND errors "${file} has what matches `${what}`, whose place is `${home}`\n")
    endif()
  endforeach()
endwhile()

# Circles: take away files that include nothing that is left, until nothing changes. What stays is a
# circle, or above one.
set(left ${files})
set(changed TRUE)
while(changed)
  set(changed FALSE)
  foreach(file IN LISTS left)
    set(waits FALSE)
    foreach(included IN LISTS includes_${file})
      if(included IN_LIST left)
        set(waits TRUE)
      endif()
    endforeach()
    if(NOT waits)
      list(REMOVE_ITEM left "${file}")
      set(changed TRUE)
    endif()
  endforeach()
endwhile()
if(left)
  list(JOIN left ", " left)
  string(APPEND errors "these include each other in a circle, or include such: ${left}\n")
endif()

list(LENGTH files count)
if(errors)
  message(NOTICE "${errors}")
  message(FATAL_ERROR "the headers above break the order of the folders")
endif()
message(STATUS "${count} headers, all arrows point downwards")
