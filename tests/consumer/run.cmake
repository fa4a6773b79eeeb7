# Installs the build tree BUILD to a prefix below WORK, then configures, builds and runs the consumer against it.
# SETTINGS are passed on, so that the consumer is compiled as the libraries were. TOOL is where the tool must be then.
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix ${SETTINGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure)
if(TOOL)
    run(${WORK}/prefix/${TOOL} --version)
endif()
