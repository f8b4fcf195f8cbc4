# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The components of a fanout that is built from its sources. Those that FANOUT_COMPONENTS names have to be there; if it names
# none, each is there if what it needs is, and a message says why another one is not. If fanout is only installed, nothing
# here uses them, and none is looked for.

set(FANOUT_COMPONENTS "" CACHE STRING "Components that have to be there, of `cuda`, `nccl` and `mpi`; `none`: look for none of them")
include("${CMAKE_CURRENT_LIST_DIR}/FanoutComponents.cmake")

set(is_used ON)
if(PROJECT_IS_TOP_LEVEL AND NOT (FANOUT_BUILD_TESTS OR FANOUT_BUILD_EXAMPLES OR FANOUT_BUILD_BENCHMARKS))
  set(is_used OFF)
endif()

set(wanted ${FANOUT_COMPONENTS})
if(FANOUT_COMPONENTS STREQUAL "" AND is_used)
  set(wanted ${fanout_components})
elseif(FANOUT_COMPONENTS STREQUAL "none")
  set(wanted)
endif()
if(is_used)
  list(APPEND wanted compiled)  # it needs nothing, and is built if something links it
endif()
foreach(component IN LISTS wanted)
  fanout_find_component(${component})
  if(fanout_${component}_FOUND)
    continue()
  endif()
  set(message "fanout ${PROJECT_VERSION} has no component `${component}` here: ${fanout_${component}_NOT_FOUND_MESSAGE}")
  if(FANOUT_COMPONENTS STREQUAL "")
    message(STATUS "${message}")
  else()
    message(FATAL_ERROR "${message}.")
  endif()
endforeach()
