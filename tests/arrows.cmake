# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -D root=<repository> -P arrows.cmake
#
# Passes if the includes inside the library point downwards only, from folder to folder, and in no circle, and if kernels and
# other libraries' headers stand where they have their place.

cmake_minimum_required(VERSION 3.25)  # a script has no policies but those it asks for

# The rooms, floor by floor from below. A room may include rooms of lower floors. `umbrella` is fanout.hpp and its like;
# fwd.hpp, which only declares, lies below all but base.
set(floors
  "base"
  "plan sync tree"
  "memory recovery waiting"
  "array"
  "worker"
  "collective"
  "device"
  "dispatch measure scatter cuda/runtime simulated"
  "gather cuda/transfer cuda/visible"
  "call cuda"
  "context model schedule mpi/group cuda/nccl"
  "replica mpi/reduction mpi/rendezvous"
  "parallel mpi"
  "adapt data observe stages state"
  "umbrella")
set(below_fwd base)
set(lower "")
foreach(floor IN LISTS floors)
  string(REPLACE " " ";" floor "${floor}")
  foreach(room IN LISTS floor)
    set(below_${room} "${lower}")
  endforeach()
  list(APPEND lower ${floor})
endforeach()
# Nobody includes what is not always there: cuda, mpi and simulated plug in at the side, and of adapt, data, observe, stages
# and state users include what they need. schedule is for stages alone.
foreach(room IN LISTS lower)
  if(NOT room MATCHES "^mpi")
    list(FILTER below_${room} EXCLUDE REGEX "^mpi")
  endif()
  if(NOT room MATCHES "^cuda")
    list(FILTER below_${room} EXCLUDE REGEX "^cuda")
  else()
    list(FILTER below_${room} EXCLUDE REGEX "^(scatter|gather|dispatch|call)$")
  endif()
  list(REMOVE_ITEM below_${room} adapt data observe stages state simulated schedule)
endforeach()
list(APPEND below_stages schedule)
set(below_umbrella "${lower}")
set(below_adapt/thrust.cuh cuda)
set(below_adapt/onnxruntime.hpp state)  # names of inputs are those that save() would give them
set(below_adapt/onnxruntime_port.hpp state)
set(below_cuda/nccl.hpp cuda/nccl)
set(below_mpi/nccl.hpp cuda/nccl cuda/runtime)

function(level_of file result)
  cmake_path(GET file PARENT_PATH folder)
  if(file STREQUAL "fwd.hpp")
    set(folder fwd)
  elseif(folder STREQUAL "")
    set(folder umbrella)
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

set(errors)
if(EXISTS "${root}/docs/design.md")
  file(STRINGS "${root}/docs/design.md" rows REGEX "^[|] [0-9]+ [|] `")
  foreach(room IN LISTS lower)
    set(listed ${rows})
    list(FILTER listed INCLUDE REGEX "`${room}`")
    if(NOT listed AND NOT room STREQUAL "umbrella")
      string(APPEND errors "docs/design.md says nothing of the room ${room}\n")
    endif()
  endforeach()
endif()
file(GLOB_RECURSE files RELATIVE "${root}/include/fanout"
  "${root}/include/fanout/*.hpp" "${root}/include/fanout/*.cuh")
# An .ipp has bodies of its header's functions. The header includes it at its end, so what it includes counts as the header's.
file(GLOB_RECURSE bodies RELATIVE "${root}/include/fanout" "${root}/include/fanout/*.ipp")
# Each is listed by the source.hpp of what needs its library: cuda, mpi, or neither.
set(lists)
foreach(list IN ITEMS source.hpp cuda/source.hpp mpi/source.hpp)
  set(bodies_of_${list})
  if(EXISTS "${root}/include/fanout/${list}")
    list(APPEND lists "${list}")
    file(STRINGS "${root}/include/fanout/${list}" bodies_of_${list} REGEX "^#include <fanout/.*[.]ipp>")
    list(TRANSFORM bodies_of_${list} REPLACE "^#include <fanout/(.*)>" "\\1")
  endif()
endforeach()
foreach(file IN LISTS bodies)
  string(REGEX REPLACE "[.]ipp$" ".hpp" header "${file}")
  set(ends)
  if(EXISTS "${root}/include/fanout/${header}")
    file(STRINGS "${root}/include/fanout/${header}" ends REGEX "^#include <fanout/${file}>")
  endif()
  if(NOT ends)
    string(APPEND errors "${file} is not included by ${header}\n")
  endif()
  set(list source.hpp)
  if(file MATCHES "^(cuda|mpi)/")
    set(list "${CMAKE_MATCH_1}/source.hpp")
  endif()
  if(NOT file IN_LIST bodies_of_${list})
    string(APPEND errors "${file} is not included by ${list}\n")
  endif()
endforeach()
foreach(file IN LISTS files)
  level_of("${file}" level)
  if(NOT DEFINED below_${level})
    string(APPEND errors "${file}: the folder ${level} has no place in tests/arrows.cmake yet\n")
  endif()

  file(STRINGS "${root}/include/fanout/${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<fanout/)")
  string(REGEX REPLACE "[.]hpp$" ".ipp" body "${file}")
  if(file IN_LIST lists)
    set(lines)
  elseif(body IN_LIST bodies)
    file(STRINGS "${root}/include/fanout/${body}" more REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<fanout/)")
    list(APPEND lines ${more})
    list(REMOVE_ITEM lines "#include <fanout/${body}>" "#include <fanout/${file}>")
  endif()
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
  "include <nccl" "cuda/nccl/.*|mpi/nccl[.]hpp"
  "include <mpi[.]h>" "mpi/.*"
  "include <thrust/" "adapt/thrust[.](cuh|hpp)"
  "include <cu(da)?[._]" "cuda/.*|adapt/thrust[.]cuh|mpi/nccl[.]hpp")
while(homes)
  list(POP_FRONT homes what home)
  foreach(file IN LISTS files bodies)
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
