# SPDX-License-Identifier: MIT
# Installs the libraries, public headers, the tool and a CMake package: find_package(gnnd) gives gnnd::gnnd, and gnnd::faiss_ext
# where it was built. What needs FAISS is exported apart, so that the rest can be used without.
# FAISS and CUDA may lie where the system does not look: their folders are kept. The relative paths matter with
# BUILD_SHARED_LIBS only: an installed library is found wherever the prefix lies.
include(CMakePackageConfigHelpers)
set(GNND_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gnnd)

install(TARGETS gnnd EXPORT gnndTargets FILE_SET HEADERS)
install(EXPORT gnndTargets NAMESPACE gnnd:: DESTINATION ${GNND_CMAKE_DIR})
if(GNND_FAISS)
    set_target_properties(faiss_ext PROPERTIES INSTALL_RPATH $ORIGIN INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS faiss_ext EXPORT gnndFaissTargets FILE_SET HEADERS)
    install(EXPORT gnndFaissTargets NAMESPACE gnnd:: DESTINATION ${GNND_CMAKE_DIR})
    install(FILES cmake/FindFaiss.cmake DESTINATION ${GNND_CMAKE_DIR})
endif()
if(TARGET gnnd_cli)
    set_target_properties(gnnd_cli PROPERTIES INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR}
                                              INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS gnnd_cli)
endif()

configure_package_config_file(cmake/gnndConfig.cmake.in ${PROJECT_BINARY_DIR}/gnndConfig.cmake
                              INSTALL_DESTINATION ${GNND_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gnndConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gnndConfig.cmake ${PROJECT_BINARY_DIR}/gnndConfigVersion.cmake
        DESTINATION ${GNND_CMAKE_DIR})
