# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# fanout's components are targets that join its headers with what they need of the machine, so they are made where fanout is
# used, not where it was installed: both by its installed package and by an add_subdirectory of it.
#
# fanout_find_component(NAME): makes the target fanout::NAME, if what it needs is there, and sets fanout_NAME_FOUND; else
# fanout_NAME_NOT_FOUND_MESSAGE says why not. To be called where find_package() may be: not before project().
#
#   cuda  the headers fanout/cuda.hpp and fanout/cuda/: the CUDA toolkit
#   nccl  the header fanout/cuda/nccl.hpp: NCCL, and the component cuda
#   mpi   the headers fanout/mpi.hpp and fanout/mpi/: an MPI with a compiler wrapper for C++; mpi/nccl.hpp needs nccl, too
#   compiled  the bodies of fanout's functions that are no templates, as a static library of the project that uses it, so with
#             its flags; what is linked with it is compiled with FANOUT_SEPARATE_COMPILATION. If the component cuda or mpi is
#             there, too, the target fanout::compiled_cuda or fanout::compiled_mpi has the bodies of its headers

set(fanout_components cuda nccl mpi compiled)

# The targets can be seen in the whole project: add_subdirectory may stand anywhere in it.
macro(fanout_make_component name)
  if(NOT TARGET fanout::${name})
    add_library(fanout::${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(fanout::${name} INTERFACE ${ARGN})
  endif()
  set(fanout_${name}_FOUND TRUE PARENT_SCOPE)
  set(fanout_${name}_NOT_FOUND_MESSAGE "" PARENT_SCOPE)
endmacro()

# Ends the function that calls it where the project has no C++.
macro(fanout_need_cxx name)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "CXX" IN_LIST languages)
    set(fanout_${name}_NOT_FOUND_MESSAGE "it needs C++ as a language of the project" PARENT_SCOPE)
    return()
  endif()
endmacro()

function(fanout_find_cuda)
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart)
    set(fanout_cuda_NOT_FOUND_MESSAGE
      "the CUDA toolkit was not found; set CUDAToolkit_ROOT to its folder" PARENT_SCOPE)
    return()
  endif()
  if(CUDAToolkit_VERSION VERSION_LESS 12)
    set(fanout_cuda_NOT_FOUND_MESSAGE
      "the CUDA toolkit ${CUDAToolkit_VERSION} is older than 12; set CUDAToolkit_ROOT to the folder of a newer one" PARENT_SCOPE)
    return()
  endif()

  # The shared runtime, so that a program and its libraries have one: a second would know nothing of what the first does. Where
  # there are CUDA sources, CMake adds the static one behind it, of which nothing is taken then.
  fanout_make_component(cuda fanout::fanout CUDA::cudart)

  # nvcc finds Thrust by itself. Other compilers may find an old one in /usr/include, if nobody tells them.
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS "${folder}/cccl/thrust/version.h")
      target_include_directories(fanout::cuda INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${folder}/cccl>")
    endif()
  endforeach()

  # That fanout::fanout asks for C++20 tells CMake nothing about CUDA, and CMake 3.25 does not know that nvcc can do it. An option
  # that is given twice is none too many for nvcc.
  if(CMAKE_VERSION VERSION_LESS 3.28)
    target_compile_options(fanout::cuda INTERFACE "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20>")
  else()
    target_compile_features(fanout::cuda INTERFACE "$<$<BOOL:$<CUDA_COMPILER_ID>>:cuda_std_20>")
  endif()
endfunction()

function(fanout_find_nccl)
  fanout_find_cuda()
  if(NOT TARGET fanout::cuda)
    set(fanout_nccl_NOT_FOUND_MESSAGE "it needs the component cuda, and ${fanout_cuda_NOT_FOUND_MESSAGE}" PARENT_SCOPE)
    return()
  endif()
  find_package(CUDAToolkit QUIET)  # its folders are hints
  # Ours, and no other project's of that name, which may make no target.
  list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  find_package(NCCL QUIET MODULE)
  if(NOT TARGET NCCL::nccl)
    set(fanout_nccl_NOT_FOUND_MESSAGE "NCCL was not found; set NCCL_ROOT to its folder" PARENT_SCOPE)
    return()
  endif()
  fanout_make_component(nccl fanout::cuda NCCL::nccl)
endfunction()

function(fanout_find_mpi)
  fanout_need_cxx(mpi)
  set(MPI_CXX_SKIP_MPICXX TRUE)  # the C++ bindings, which MPI 3 has no more
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)
  find_package(MPI 3 QUIET COMPONENTS CXX)
  if(NOT TARGET MPI::MPI_CXX)
    set(fanout_mpi_NOT_FOUND_MESSAGE
      "no MPI of version 3 was found; set MPI_HOME to its folder, or MPI_CXX_COMPILER to its mpicxx" PARENT_SCOPE)
    return()
  endif()
  fanout_make_component(mpi fanout::fanout MPI::MPI_CXX)
endfunction()

# One static library of bodies: fanout::TARGET, of <fanout/HEADER>, which needs LIBRARY...
function(fanout_add_bodies target header)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/fanout_${target}/source.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include <fanout/${header}>\n")
  add_library(fanout_${target} STATIC EXCLUDE_FROM_ALL "${source}")
  add_library(fanout::${target} ALIAS fanout_${target})
  target_link_libraries(fanout_${target} PUBLIC ${ARGN})
  # It may go into shared libraries, which do not export it.
  set_target_properties(fanout_${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# The component `compiled` and the others may be asked for in any order.
function(fanout_add_bodies_of_components)
  if(NOT TARGET fanout::compiled)
    return()
  endif()
  foreach(name IN ITEMS cuda mpi)
    if(TARGET fanout::${name} AND NOT TARGET fanout::compiled_${name})
      fanout_add_bodies(compiled_${name} ${name}/source.hpp fanout::compiled fanout::${name})
    endif()
  endforeach()
endfunction()

function(fanout_find_compiled)
  fanout_need_cxx(compiled)
  if(NOT TARGET fanout::compiled)
    fanout_add_bodies(compiled source.hpp fanout::fanout)
    target_compile_definitions(fanout_compiled PUBLIC FANOUT_SEPARATE_COMPILATION)
  endif()
  set(fanout_compiled_FOUND TRUE PARENT_SCOPE)
  set(fanout_compiled_NOT_FOUND_MESSAGE "" PARENT_SCOPE)
endfunction()

# A macro, since what it calls sets variables in the scope of its caller.
macro(fanout_find_component name)
  set(fanout_${name}_FOUND FALSE)
  if("${name}" STREQUAL "cuda")
    fanout_find_cuda()
  elseif("${name}" STREQUAL "nccl")
    fanout_find_nccl()
  elseif("${name}" STREQUAL "mpi")
    fanout_find_mpi()
  elseif("${name}" STREQUAL "compiled")
    fanout_find_compiled()
  else()
    list(JOIN fanout_components "` and `" fanout_${name}_NOT_FOUND_MESSAGE)
    set(fanout_${name}_NOT_FOUND_MESSAGE "there is no such component: there are `${fanout_${name}_NOT_FOUND_MESSAGE}`")
  endif()
  fanout_add_bodies_of_components()
endmacro()
