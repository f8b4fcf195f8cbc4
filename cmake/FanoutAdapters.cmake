# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The libraries whose types include/fanout/adapt/ adapts, for our own tests and examples: FANOUT_ADAPTERS_FOUND are those
# of FANOUT_ADAPTERS that are there, each with a target fanout_own_NAME; FANOUT_NO_NAME says why another one is not.
# Users of fanout need none of this: they include the header and link what they link anyway.

set(FANOUT_ADAPTERS "eigen;mdspan;dlpack;thrust;torch;onnxruntime" CACHE STRING
  "Adapters to build tests and examples of, where their libraries are found")
set(FANOUT_ADAPTERS_FOUND)

# fanout_adapter(NAME LIBRARY VARIABLE...): the library is there if all variables are true.
macro(fanout_adapter name library)
  set(found TRUE)
  foreach(variable IN ITEMS ${ARGN})
    if(NOT ${variable})
      set(found FALSE)
    endif()
  endforeach()
  if(found)
    list(APPEND FANOUT_ADAPTERS_FOUND ${name})
    add_library(fanout_own_${name} INTERFACE)
    target_link_libraries(fanout_own_${name} INTERFACE fanout_own)
  else()
    set(FANOUT_NO_${name} "${library} was not found")
  endif()
endmacro()

if("eigen" IN_LIST FANOUT_ADAPTERS)
  find_package(Eigen3 3.3 QUIET NO_MODULE)
  fanout_adapter(eigen "Eigen 3.3" Eigen3_FOUND)
  if(TARGET fanout_own_eigen)
    target_link_libraries(fanout_own_eigen INTERFACE Eigen3::Eigen)
  endif()
endif()

# The compiler's own std::mdspan, or that of a clang with libc++, whose programs fanout_mdspan_executable() then makes by
# its own command, since a build has one compiler.
if("mdspan" IN_LIST FANOUT_ADAPTERS)
  if(NOT DEFINED FANOUT_MDSPAN_COMPILER)
    set(trial "${CMAKE_CURRENT_BINARY_DIR}/has_mdspan")
    file(WRITE "${trial}.cpp" "#include <mdspan>\nint main() { return std::mdspan<int, std::dextents<int, 1>>().rank() - 1; }\n")
    foreach(compiler IN ITEMS "${CMAKE_CXX_COMPILER}" clang++ clang++-21 clang++-20 clang++-19)
      foreach(library IN ITEMS "" "-stdlib=libc++")
        execute_process(COMMAND "${compiler}" -std=c++23 ${library} "${trial}.cpp" -o "${trial}"
          RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(status STREQUAL "0" AND NOT FANOUT_MDSPAN_COMPILER)
          set(FANOUT_MDSPAN_COMPILER "${compiler};-std=c++23;${library}"
            CACHE STRING "A compiler with std::mdspan, and its flags")
        endif()
      endforeach()
    endforeach()
  endif()
  fanout_adapter(mdspan "a compiler with std::mdspan" FANOUT_MDSPAN_COMPILER)
endif()

if("dlpack" IN_LIST FANOUT_ADAPTERS)
  find_path(FANOUT_DLPACK_INCLUDE dlpack/dlpack.h)
  mark_as_advanced(FANOUT_DLPACK_INCLUDE)
  fanout_adapter(dlpack "dlpack/dlpack.h" FANOUT_DLPACK_INCLUDE)
  if(TARGET fanout_own_dlpack)
    target_include_directories(fanout_own_dlpack SYSTEM INTERFACE "${FANOUT_DLPACK_INCLUDE}")
  endif()
endif()

# The CUDA toolkit's, else one that the system has.
if("thrust" IN_LIST FANOUT_ADAPTERS)
  find_package(CUDAToolkit QUIET)
  list(TRANSFORM CUDAToolkit_INCLUDE_DIRS APPEND "/cccl" OUTPUT_VARIABLE folders)
  find_path(FANOUT_THRUST_INCLUDE thrust/version.h HINTS ${folders})
  mark_as_advanced(FANOUT_THRUST_INCLUDE)
  fanout_adapter(thrust Thrust FANOUT_THRUST_INCLUDE)
  if(TARGET fanout_own_thrust)
    target_include_directories(fanout_own_thrust SYSTEM INTERFACE "${FANOUT_THRUST_INCLUDE}")
    target_compile_definitions(fanout_own_thrust INTERFACE THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)
  endif()
endif()

# Not by find_package(Torch), which looks for all that libtorch may have been built with, and says so.
if("torch" IN_LIST FANOUT_ADAPTERS)
  find_path(FANOUT_TORCH_INCLUDE torch/csrc/api/include/torch/types.h)
  find_library(FANOUT_TORCH_LIBRARY torch)
  find_library(FANOUT_TORCH_CPU_LIBRARY torch_cpu)
  find_library(FANOUT_C10_LIBRARY c10)
  mark_as_advanced(FANOUT_TORCH_INCLUDE FANOUT_TORCH_LIBRARY FANOUT_TORCH_CPU_LIBRARY FANOUT_C10_LIBRARY)
  fanout_adapter(torch libtorch
    FANOUT_TORCH_INCLUDE FANOUT_TORCH_LIBRARY FANOUT_TORCH_CPU_LIBRARY FANOUT_C10_LIBRARY)
  if(TARGET fanout_own_torch)
    target_include_directories(fanout_own_torch SYSTEM INTERFACE
      "${FANOUT_TORCH_INCLUDE}" "${FANOUT_TORCH_INCLUDE}/torch/csrc/api/include")
    target_link_libraries(fanout_own_torch INTERFACE
      "${FANOUT_TORCH_LIBRARY}" "${FANOUT_TORCH_CPU_LIBRARY}" "${FANOUT_C10_LIBRARY}")
  endif()
endif()

# Not a package of Debian's: FANOUT_ONNXRUNTIME_INCLUDE and FANOUT_ONNXRUNTIME_LIBRARY say where it is.
if("onnxruntime" IN_LIST FANOUT_ADAPTERS)
  find_path(FANOUT_ONNXRUNTIME_INCLUDE onnxruntime_cxx_api.h PATH_SUFFIXES onnxruntime onnxruntime/core/session)
  find_library(FANOUT_ONNXRUNTIME_LIBRARY onnxruntime)
  mark_as_advanced(FANOUT_ONNXRUNTIME_INCLUDE FANOUT_ONNXRUNTIME_LIBRARY)
  fanout_adapter(onnxruntime "ONNX Runtime" FANOUT_ONNXRUNTIME_INCLUDE FANOUT_ONNXRUNTIME_LIBRARY)
  if(TARGET fanout_own_onnxruntime)
    target_include_directories(fanout_own_onnxruntime SYSTEM INTERFACE "${FANOUT_ONNXRUNTIME_INCLUDE}")
    target_link_libraries(fanout_own_onnxruntime INTERFACE "${FANOUT_ONNXRUNTIME_LIBRARY}")
  endif()
endif()

foreach(name IN LISTS FANOUT_ADAPTERS)
  if(NOT name IN_LIST FANOUT_ADAPTERS_FOUND)
    message(STATUS "fanout: the adapter ${name} is not tested: ${FANOUT_NO_${name}}")
  endif()
endforeach()
if(FANOUT_ADAPTERS_FOUND)
  list(JOIN FANOUT_ADAPTERS_FOUND ", " found)
  message(STATUS "fanout: adapters that are tested: ${found}")
endif()

# fanout_mdspan_executable(NAME SOURCE...): an executable of these, made by the compiler with std::mdspan.
function(fanout_mdspan_executable name)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}${CMAKE_EXECUTABLE_SUFFIX}")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/fanout/*.hpp")
  set(warnings -Wall -Wextra -Wconversion -Wshadow -Wpedantic)
  if(FANOUT_WERROR)
    list(APPEND warnings -Werror)
  endif()
  add_custom_command(OUTPUT "${program}"
    COMMAND ${FANOUT_MDSPAN_COMPILER} ${warnings} -O1 -g1 "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests"
      -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS ${ARGN} -pthread -o "${program}"
    DEPENDS ${ARGN} ${headers} COMMENT "Building ${name}" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${name}_program ALL DEPENDS "${program}")
  set(${name}_program "${program}" PARENT_SCOPE)
endfunction()
