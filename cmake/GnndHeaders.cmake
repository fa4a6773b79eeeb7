# SPDX-License-Identifier: MIT
# gnnd_public_headers(TARGET HEADER...): the headers that others may include, relative to the target's folder; all others
# are private. They are linked into include/ of the build tree, so that a project that adds this one as a subdirectory
# sees what it would see installed. GnndInstall.cmake installs them. With GNND_TESTS each is compiled alone, as by
# somebody who links TARGET.
set(GNND_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(REMOVE_RECURSE ${GNND_INCLUDE_DIR})

function(gnnd_public_headers target)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    foreach(header ${ARGN})
        cmake_path(GET header PARENT_PATH subfolder)
        file(MAKE_DIRECTORY ${GNND_INCLUDE_DIR}/${folder}/${subfolder})
        file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${header} ${GNND_INCLUDE_DIR}/${folder}/${header} SYMBOLIC)
        list(APPEND files ${GNND_INCLUDE_DIR}/${folder}/${header})
    endforeach()
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${GNND_INCLUDE_DIR} FILES ${files})
    if(GNND_TESTS)
        set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
        add_custom_target(${target}_public_headers ALL)
        add_dependencies(${target}_public_headers ${target}_verify_interface_header_sets)
    endif()
    # The sources themselves come first in this project, so that editors and messages name them.
    target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
