# SPDX-License-Identifier: MIT
# Builds and runs the consumer: against the build tree BUILD, installed to a prefix below WORK, and with the sources SOURCE
# as a subdirectory. SETTINGS are passed on, so that it is compiled as the libraries were. TOOL is where the tool must be.
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(consume folder)
    run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/${folder} ${SETTINGS} ${ARGN})
    run(${CMAKE_COMMAND} --build ${WORK}/${folder})
    run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/${folder} --output-on-failure)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
consume(installed -DCMAKE_PREFIX_PATH=${WORK}/prefix)
if(TOOL)
    run(${WORK}/prefix/${TOOL} --version)
endif()

# The public headers are installed, and nothing else.
file(GLOB_RECURSE public RELATIVE ${BUILD}/include ${BUILD}/include/*)
file(GLOB_RECURSE installed RELATIVE ${WORK}/prefix/${INCLUDES} ${WORK}/prefix/${INCLUDES}/*)
if(NOT public OR NOT public STREQUAL installed)
    message(FATAL_ERROR "Public headers: ${public}\nInstalled: ${installed}")
endif()

# Without a build type, which must stay so, and without what would take long to compile.
consume(subdirectory -DGNND_SOURCE=${SOURCE} -DCMAKE_BUILD_TYPE= -DGNND_CUDA=OFF -DGNND_FAISS=OFF)
