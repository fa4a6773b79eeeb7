# SPDX-License-Identifier: MIT
# contrib/plots/search_curves.py draws results, or says what it misses. PYTHON, SCRIPT, WORK: where they are.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(said "\"k\":10,\"threads\":1,\"data\":\"base.u8bin\",\"n\":5000,\"d\":128,\"metric\":\"l2\"")
file(WRITE ${WORK}/results.json "{\"index\":\"NSG32\",\"recall\":0.9,\"qps\":5000.0,${said}}
{\"index\":\"NSG32\",\"recall\":0.99,\"qps\":900.0,${said}}
{\"index\":\"GNND64,NSG32\",\"recall\":0.95,\"qps\":4000.0,${said}}
")
file(WRITE ${WORK}/other.json "{\"index\":\"NSG32\"}\n")
file(WRITE ${WORK}/empty.json "")

# Runs the script, which must end as told (0, or another status with this text); `result` gets the status.
function(run text)
    execute_process(COMMAND ${PYTHON} ${SCRIPT} ${ARGN} RESULT_VARIABLE status ERROR_VARIABLE error)
    if(NOT status EQUAL 0 AND NOT error MATCHES "${text}")
        message(FATAL_ERROR "search_curves.py ${ARGN}: ${error}, not ${text}")
    endif()
    set(status ${status} PARENT_SCOPE)
endfunction()

foreach(case "other.json;is no output of index_bench" "missing.json;No such file" "empty.json;no results")
    list(GET case 0 name)
    list(GET case 1 text)
    run("${name}.*${text}|${text}.*${name}" ${WORK}/${name} -o ${WORK}/no.svg)
    if(status EQUAL 0)
        message(FATAL_ERROR "search_curves.py draws ${name}")
    endif()
endforeach()
run("needs matplotlib" ${WORK}/results.json -o ${WORK}/curves.svg)
if(status EQUAL 0)
    file(READ ${WORK}/curves.svg picture LIMIT 1000)
    if(NOT picture MATCHES "<svg")
        message(FATAL_ERROR "curves.svg is none")
    endif()
endif()
