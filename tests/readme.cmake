# The example in the README is the one that is compiled.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "${example}" at)
if(at EQUAL -1)
    message(FATAL_ERROR "${README} does not hold ${EXAMPLE} as it is")
endif()
