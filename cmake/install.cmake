# What users get: `cmake --install` to any prefix, and what cpack makes of it (docs/install.md).
# The program finds ../share/twagent from where it lies, so that a prefix may be moved.

set(data ${CMAKE_INSTALL_DATADIR}/twagent)
install(TARGETS twagent RUNTIME_DEPENDENCY_SET libraries DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY problems templates libexec rag DESTINATION ${data} PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY tests/adversarial DESTINATION ${data}/tests)
install(FILES models.yaml DESTINATION ${data})
install(FILES docs/problem-format.md DESTINATION ${data}/docs) # `twagent mcp` shows it
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

# The man page and the completion come from the program's own tables.
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/twagent.1 ${CMAKE_BINARY_DIR}/twagent.bash
  COMMAND twagent --man > ${CMAKE_BINARY_DIR}/twagent.1
  COMMAND twagent --completion > ${CMAKE_BINARY_DIR}/twagent.bash
  DEPENDS twagent VERBATIM)
add_custom_target(documents ALL DEPENDS ${CMAKE_BINARY_DIR}/twagent.1)
install(FILES ${CMAKE_BINARY_DIR}/twagent.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/twagent.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME twagent)

if(BUILD_TESTING)
  add_test(NAME packaging/install COMMAND ${CMAKE_SOURCE_DIR}/packaging/test-install ${CMAKE_BINARY_DIR})
  set_tests_properties(packaging/install PROPERTIES TIMEOUT 120)
endif()

if(TWAGENT_PACKAGE)
  set(CPACK_PACKAGE_VENDOR twagent)
  set(CPACK_PACKAGE_CONTACT "twagent <root@localhost>") # whoever packs it for others: DEBEMAIL
  if(DEFINED ENV{DEBEMAIL})
    set(CPACK_PACKAGE_CONTACT "twagent <$ENV{DEBEMAIL}>")
  endif()
  set(CPACK_PACKAGE_DESCRIPTION_FILE ${CMAKE_SOURCE_DIR}/packaging/description)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
  include(cmake/${TWAGENT_PACKAGE}.cmake)
  include(CPack)
endif()
