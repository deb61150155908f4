# A Debian package: libraries are the system's, found by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# `eval` and `run` need a compiler and, for numpy references, numpy; the rest works without.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc, libc6-dev, python3-numpy, libopenblas0-pthread, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, clang, libomp-dev")
