# SPDX-License-Identifier: MIT
# Checks that cmake/FindFaiss.cmake finds the right FAISS when one is installed between two configurations of a folder.
# FIND_FAISS is that file, WORK a folder to work in; SETTINGS are passed on.
file(REMOVE_RECURSE ${WORK})
set(system ${WORK}/system)
set(ENV{XDG_CACHE_HOME} ${WORK}/cache)
unset(ENV{CMAKE_PREFIX_PATH})
set(script_made ${WORK}/cache/gnnd/faiss-gpu)

# A package of headers only, with GPU support or without, and with CAGRA or without.
function(write_faiss prefix on_gpu with_cagra)
    file(WRITE ${prefix}/lib/cmake/faiss/faiss-config.cmake
        "add_library(faiss INTERFACE IMPORTED)\n"
        "target_include_directories(faiss INTERFACE \${CMAKE_CURRENT_LIST_DIR}/../../../include)\n")
    file(MAKE_DIRECTORY ${prefix}/include)
    if(on_gpu)
        file(WRITE ${prefix}/include/faiss/gpu/StandardGpuResources.h
            "namespace faiss::gpu { struct StandardGpuResources { int* getResources() { return nullptr; } }; }\n")
    endif()
    if(with_cagra)
        file(WRITE ${prefix}/include/faiss/gpu/GpuIndexCagra.h
            "namespace faiss::gpu { struct GpuIndexCagra { GpuIndexCagra(void*, int) {} long ntotal = 0; }; }\n")
    endif()
endfunction()

# Configures BUILD anew with the settings given; `prefix` must be where FAISS is found, on GPUs or not, with CAGRA or
# without.
function(expect_found build prefix on_gpu with_cagra)
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/${build} ${SETTINGS}
                            -DFIND_FAISS=${FIND_FAISS} -DSYSTEM_FAISS=${system} ${ARGN}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${WORK}/${build}/found found)
    if(NOT found STREQUAL "${prefix}/lib/cmake/faiss ${on_gpu} ${with_cagra}")
        message(FATAL_ERROR "${build}: found ${found}, expected ${prefix} ${on_gpu} ${with_cagra}")
    endif()
endfunction()

write_faiss(${system} OFF ON)
expect_found(searched ${system} OFF OFF)
expect_found(named ${system} OFF OFF -Dfaiss_DIR=${system}/lib/cmake/faiss)
write_faiss(${script_made} ON OFF)
expect_found(searched ${script_made} ON OFF -DGNND_FAISS_GPU=ON)
expect_found(searched ${script_made} ON OFF)
expect_found(named ${system} OFF OFF)
file(REMOVE_RECURSE ${script_made})
expect_found(searched ${system} OFF OFF -DGNND_FAISS_GPU=AUTO)
write_faiss(${WORK}/cuvs ON ON)
expect_found(cuvs ${WORK}/cuvs ON ON -Dfaiss_DIR=${WORK}/cuvs/lib/cmake/faiss)
