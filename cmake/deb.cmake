# A Debian package: libraries are the system's, found by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# `eval` and `run` need a compiler and, for numpy references, numpy; the rest works without.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc, libc6-dev, python3-numpy, libopenblas0-pthread, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, clang, libomp-dev")

# What Debian's policy wants of every package: a licence, a changelog, and both it and man pages gzipped.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where it is set
configure_file(packaging/debian/changelog.in ${CMAKE_BINARY_DIR}/changelog @ONLY)
install(FILES packaging/debian/copyright ${CMAKE_BINARY_DIR}/changelog DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE "
  set(share \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share)
  execute_process(COMMAND gzip -9nf \${share}/man/man1/twagent.1 \${share}/doc/twagent/changelog
                  COMMAND_ERROR_IS_FATAL ANY)")
