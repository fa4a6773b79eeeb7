# SPDX-License-Identifier: MIT
# gnnd_make_manylinux(TARGET): lets a module load on systems with glibc 2.28 and later, whatever this machine's is.
#   libstdc++ is linked statically, since an older one lacks what a newer compiler's code calls
#   shims.c has what 2.28 lacks of functions
#   lower_versions.py lets the module ask for the versions that 2.28 has
# OpenMP's runtime is wheels.sh's matter.
enable_language(C)
function(gnnd_make_manylinux target)
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/shims.c)
    # The compiler takes stat() and others for built-in ones with other types.
    set_source_files_properties(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/shims.c PROPERTIES COMPILE_OPTIONS -fno-builtin)
    target_link_options(${target} PRIVATE -static-libstdc++)
    add_custom_command(TARGET ${target} POST_BUILD
        COMMAND Python::Interpreter ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/lower_versions.py $<TARGET_FILE:${target}>
        VERBATIM)
endfunction()
