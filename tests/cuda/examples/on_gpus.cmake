# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# on_gpus(SOURCE LAUNCHER RESULT): the text of an example, changed so.
function(on_gpus source launcher result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  file(READ "${source}" text)
  foreach(change IN ITEMS
      "#include <fanout/fanout.hpp>=#include <fanout/cuda.hpp>\n#include <${launcher}>"
      "fanout::host_devices(devices)=fanout::cuda_devices({.count = devices, .oversubscribe = true})")
    string(REGEX MATCH "^([^=]*)=(.*)$" found "${change}")
    set(changed "${CMAKE_MATCH_2}")
    string(FIND "${text}" "${CMAKE_MATCH_1}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${source} has no `${CMAKE_MATCH_1}`, which is to be changed for GPUs")
    endif()
    string(REPLACE "${CMAKE_MATCH_1}" "${changed}" text "${text}")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
