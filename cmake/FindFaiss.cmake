# SPDX-License-Identifier: MIT
# Finds FAISS, target faiss. FAISS's own package names libraries that it does not look for, so they are found first.
# Used by this build, which cannot go on without, and by the installed package, which leaves that to its user.
# GNND_FAISS_GPU: OFF, or AUTO or ON to prefer one with GPU support where contrib/build_faiss_gpu.sh left it; one that
# CMAKE_PREFIX_PATH names comes first all the same. Sets GNND_WITH_FAISS_GPU, and GNND_WITH_FAISS_CAGRA where its GPU
# support is one with cuVS.
if(NOT CMAKE_FIND_PACKAGE_NAME)
    set(_gnnd_required REQUIRED)
endif()
find_package(OpenMP ${_gnnd_required} COMPONENTS CXX)
find_package(BLAS ${_gnnd_required})
find_package(LAPACK ${_gnnd_required})
set(_gnnd_hints)
set(_gnnd_gpu ON)
if(GNND_FAISS_GPU STREQUAL "OFF" OR (NOT CMAKE_FIND_PACKAGE_NAME AND NOT GNND_WITH_CUDA))
    set(_gnnd_gpu OFF)
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(_gnnd_hints $ENV{XDG_CACHE_HOME}/gnnd/faiss-gpu)
else()
    set(_gnnd_hints $ENV{HOME}/.cache/gnnd/faiss-gpu)
endif()
# What a search found before is searched for again, since contrib/build_faiss_gpu.sh may have run meanwhile; a faiss_DIR
# that the user set stays.
if(DEFINED faiss_DIR AND faiss_DIR STREQUAL GNND_FOUND_FAISS_DIR)
    unset(faiss_DIR CACHE)
endif()
if(NOT faiss_DIR)
    set(_gnnd_searched ON)
endif()
find_package(faiss CONFIG ${_gnnd_required} HINTS ${_gnnd_hints})
if(_gnnd_searched)
    set(GNND_FOUND_FAISS_DIR "${faiss_DIR}" CACHE INTERNAL "faiss_DIR as a search set it")
endif()

if(faiss_FOUND)
    # The headers of 1.7.3 predate compilers whose own (GCC 13) no longer bring <cstdint> along.
    set_property(TARGET faiss APPEND PROPERTY INTERFACE_COMPILE_OPTIONS
                 "$<$<COMPILE_LANGUAGE:CXX,CUDA>:SHELL:-include cstdint>")
endif()

# GPU headers may be there without what they declare, so a program is linked.
set(GNND_WITH_FAISS_GPU OFF)
set(GNND_WITH_FAISS_CAGRA OFF)
if(faiss_FOUND AND TARGET CUDA::cublas AND _gnnd_gpu)
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_LIBRARIES faiss CUDA::cudart CUDA::cublas)
    set(CMAKE_REQUIRED_QUIET ON)
    # A result for one FAISS says nothing of another.
    file(TIMESTAMP ${faiss_DIR}/faiss-config.cmake _gnnd_faiss)
    string(MD5 _gnnd_faiss "${faiss_DIR} ${_gnnd_faiss}")
    check_cxx_source_compiles("
        #include <faiss/gpu/StandardGpuResources.h>
        int main() { return faiss::gpu::StandardGpuResources().getResources() == nullptr; }"
        GNND_FAISS_HAS_GPU_${_gnnd_faiss})
    check_cxx_source_compiles("
        #include <faiss/gpu/GpuIndexCagra.h>
        #include <faiss/gpu/StandardGpuResources.h>
        int main() {
            faiss::gpu::StandardGpuResources resources;
            return int(faiss::gpu::GpuIndexCagra(&resources, 4).ntotal);
        }"
        GNND_FAISS_HAS_CAGRA_${_gnnd_faiss})
    unset(CMAKE_REQUIRED_LIBRARIES)
    unset(CMAKE_REQUIRED_QUIET)
    if(GNND_FAISS_HAS_GPU_${_gnnd_faiss})
        set(GNND_WITH_FAISS_GPU ON)
        if(GNND_FAISS_HAS_CAGRA_${_gnnd_faiss})
            set(GNND_WITH_FAISS_CAGRA ON)
        endif()
    endif()
    unset(_gnnd_faiss)
endif()
if(GNND_FAISS_GPU STREQUAL "ON" AND NOT GNND_WITH_FAISS_GPU)
    message(FATAL_ERROR "GNND_FAISS_GPU=ON, but ${faiss_DIR} has no GPU support (and it needs GNND_CUDA); "
                        "contrib/build_faiss_gpu.sh builds one that has")
endif()
if(NOT CMAKE_FIND_PACKAGE_NAME)
    message(STATUS "FAISS: ${faiss_DIR}, on GPUs: ${GNND_WITH_FAISS_GPU}, CAGRA: ${GNND_WITH_FAISS_CAGRA}")
endif()
unset(_gnnd_required)
unset(_gnnd_hints)
unset(_gnnd_searched)
unset(_gnnd_gpu)
