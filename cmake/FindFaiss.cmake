# FAISS's own package names libraries that it does not look for; find them first. Used by the build and by the
# installed package.
include(CMakeFindDependencyMacro)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(BLAS)
find_dependency(LAPACK)
find_dependency(faiss CONFIG)
