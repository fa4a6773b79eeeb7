# SPDX-License-Identifier: MIT
# What contrib/build_faiss_gpu.sh builds of FAISS, included where FAISS's own CMake files have listed all they would
# compile: in the CPU half's (GNND_PART cpu), where target faiss is not there yet, and in the GPU half's (gpu).
# Compiled as it stands, nvcc spends most of its time on reading the same headers for each of 60 files, and ptxas a third
# of the rest on a scan of inverted lists for 2,048 neighbours.

if("${GNND_PART}" STREQUAL "cpu" AND NOT "${GNND_FAISS_CPU}" STREQUAL "")
    # Debian's package holds the CPU half, compiled from the same source.
    set(FAISS_SRC)
endif()

if("${GNND_PART}" STREQUAL "gpu")
    if(NOT "${GNND_FAISS_CPU}" STREQUAL "")
        target_link_libraries(faiss PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${GNND_FAISS_CPU}>")
        # BLAS stands before the archive that needs it, and would be dropped where linkers keep what is needed so far.
        target_link_options(faiss PRIVATE LINKER:--no-as-needed)
    endif()
    # Nothing else refers to these: binary vectors, and the encoder of local search quantizers.
    list(FILTER FAISS_GPU_SRC EXCLUDE REGEX "Binary|Icm")
    set(kernels ${FAISS_GPU_SRC})
    list(FILTER kernels INCLUDE REGEX "[.]cu$")
    list(FILTER FAISS_GPU_SRC EXCLUDE REGEX "[.]cu$")
    # Groups that take about as long as each other are compiled as one file each; the others come last.
    foreach(group scan:impl/scan/ block:utils/blockselect/ warp:utils/warpselect/ lists:impl/IVF indexes:Gpu others:)
        string(REGEX REPLACE ":.*" "" name ${group})
        string(REGEX REPLACE ".*:" "^" pattern ${group})
        set(members ${kernels})
        list(FILTER members INCLUDE REGEX "${pattern}")
        list(FILTER kernels EXCLUDE REGEX "${pattern}")
        list(TRANSFORM members REPLACE "(.+)" "#include <faiss/gpu/\\1>\n")
        string(CONCAT text ${members})
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu "${text}")
        list(APPEND FAISS_GPU_SRC ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu)
    endforeach()
    # The search of GpuIndexIVFFlat and GpuIndexIVFScalarQuantizer, which nothing here measures, for a tenth of the time.
    set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/scan.cu TARGET_DIRECTORY faiss
                                PROPERTIES COMPILE_OPTIONS -Ofc=min)
endif()
