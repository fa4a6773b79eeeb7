# Finds FAISS, target faiss. FAISS's own package names libraries that it does not look for, so they are found first.
# Used by this build, which cannot go on without, and by the installed package, which leaves that to its user.
if(NOT CMAKE_FIND_PACKAGE_NAME)
    set(_gnnd_required REQUIRED)
endif()
find_package(OpenMP ${_gnnd_required} COMPONENTS CXX)
find_package(BLAS ${_gnnd_required})
find_package(LAPACK ${_gnnd_required})
find_package(faiss CONFIG ${_gnnd_required})
unset(_gnnd_required)
