# SPDX-License-Identifier: MIT
# Compiler settings that all of the project's own targets share: link gnnd_options privately. It also gives them the
# private headers, by their path from the root.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(gnnd_options INTERFACE)
target_include_directories(gnnd_options INTERFACE ${PROJECT_SOURCE_DIR})
# A switch over an enumeration names every value: who adds one is told of all places.
# No compiler joins products and sums on its own: it would here and not there, and a pair would have two distances.
# Kernels say where they want it; device code is nvcc's.
set(arithmetic -ffp-contract=off)
set(warnings -Wall -Wextra -Werror=switch -Werror=switch-enum $<$<BOOL:${GNND_WERROR}>:-Werror>)
target_compile_options(gnnd_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:${arithmetic};${warnings}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${arithmetic},-Wall,-Wextra,-Werror=switch,-Werror=switch-enum;$<$<BOOL:${GNND_WERROR}>:-Werror=all-warnings>>")
