# twagent_text(TARGET FILE...): TARGET's sources may include eval/cuda/NAME_EXT_text.h (the path of
# this folder in src), where FILE's lines stand as the C array NAME_EXT.
function(twagent_text target)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REGEX REPLACE "([^\n]*)\n" "    \"\\1\\\\n\",\n" text "${text}")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/text/${folder}/${id}_text.h
         CONTENT "static const char *const ${id}[] = {\n${text}};\n" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/text)
endfunction()
