# A tarball that runs where there is glibc and nothing else: the program with every other library.
# DT_RPATH and not DT_RUNPATH: it holds for the libraries' own needs too, and LD_LIBRARY_PATH (of a
# conda environment, say) does not come before it. Children, compilers among them, see none of it.
set_target_properties(twagent PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
target_link_options(twagent PRIVATE -Wl,--disable-new-dtags)

# glibc is the machine's own: its parts belong together, and to the kernel and the name service.
set(glibc "^ld-linux" "^lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|nsl|nss_.*|BrokenLocale)\\.so")
install(RUNTIME_DEPENDENCY_SET libraries PRE_EXCLUDE_REGEXES ${glibc} LIBRARY DESTINATION lib)
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/licenses.cmake)

string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
