# SPDX-License-Identifier: MIT
# benchs/index_bench prints lines that contrib/plots/search_curves.py draws. PYTHON, BENCH, SCRIPT, BASE, WORK: where they
# are.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(index GNND32,HNSW16)

# Runs the bench in `mode` under `metric`; `lines` gets what it printed.
function(run mode metric)
    execute_process(COMMAND ${BENCH} ${BASE} ${mode} --rows 3000 --queries 200 --repeat 1 --metric ${metric} --index ${index}
                            ${ARGN}
                    OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" printed "${printed}")
    set(lines "${printed}" PARENT_SCOPE)
endfunction()

function(expect_at_least least line)
    string(JSON value GET "${line}" ${ARGN})
    if(value LESS least)
        message(FATAL_ERROR "${ARGN} is ${value}, expected ${least} or more, in ${line}")
    endif()
endfunction()

foreach(metric l2 ip cosine)
    run(search ${metric} --beams 16,64)
    list(LENGTH lines count)
    if(NOT count EQUAL 2)
        message(FATAL_ERROR "${count} lines of two beams")
    endif()
    list(GET lines 1 last)
    string(JSON said GET "${last}" metric)
    if(NOT said STREQUAL metric)
        message(FATAL_ERROR "metric ${said}, not ${metric}")
    endif()
    expect_at_least(0.9 "${last}" recall)
    expect_at_least(1 "${last}" qps)
    list(JOIN lines "\n" text)
    file(WRITE ${WORK}/${metric}.json "${text}\n")
endforeach()

run(grow cosine --adds 4 --step 50 --lines 2 --removed 0.3 --beams 64)
foreach(line IN LISTS lines)
    expect_at_least(0.9 "${line}" recall 64)
endforeach()
run(merge cosine --beams 64)
expect_at_least(0.9 "${lines}" recall 64)

execute_process(COMMAND ${BENCH} ${BASE} search --metric l1 RESULT_VARIABLE status ERROR_VARIABLE error)
if(status EQUAL 0 OR NOT error MATCHES "l2, ip and cosine are measured")
    message(FATAL_ERROR "--metric l1: ${status}, ${error}")
endif()

execute_process(COMMAND ${PYTHON} ${SCRIPT} ${WORK}/cosine.json -o ${WORK}/curve.svg RESULT_VARIABLE status
                ERROR_VARIABLE error)
if(NOT status EQUAL 0 AND NOT error MATCHES "needs matplotlib")
    message(FATAL_ERROR "search_curves.py: ${error}")
endif()
