# SPDX-License-Identifier: MIT
# Turns CUDA on where it is wanted and there is a compiler: sets GNND_WITH_CUDA.
set(GNND_WITH_CUDA OFF)
if(NOT GNND_CUDA STREQUAL "OFF")
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
        set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)  # often not on the PATH
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        # Machine code for the A100 and (with its own matrix instructions) the H100 and H200, PTX that later GPUs compile.
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real;90-virtual" CACHE STRING "GPU architectures")
        endif()
        enable_language(CUDA)
        find_package(CUDAToolkit REQUIRED)
        set(CMAKE_CUDA_STANDARD 20)
        set(CMAKE_CUDA_STANDARD_REQUIRED ON)
        if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc can
            set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
            set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
        endif()
        set(GNND_WITH_CUDA ON)
    elseif(GNND_CUDA STREQUAL "ON")
        message(FATAL_ERROR "GNND_CUDA=ON, but there is no CUDA compiler (nvcc)")
    endif()
endif()
message(STATUS "CUDA backend: ${GNND_WITH_CUDA}")
