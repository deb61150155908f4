# twagent_text(ROOM FILE...): the sources of ROOM may include ROOM/NAME_EXT_text.h, where FILE's lines stand
# as the C array NAME_EXT.
function(twagent_text room)
  string(REPLACE "/" "_" target ${room})
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REGEX REPLACE "([^\n]*)\n" "    \"\\1\\\\n\",\n" text "${text}")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/text/${room}/${id}_text.h
         CONTENT "static const char *const ${id}[] = {\n${text}};\n" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/text)
endfunction()
