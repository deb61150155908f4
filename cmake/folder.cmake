# twagent_room(ROOM ROOMS...): a static library of every .c file in the folder ROOM, which uses those of
# ROOMS; eval_data is the one of eval/data.
function(twagent_room room)
  string(REPLACE "/" "_" name ${room})
  string(REPLACE "/" "_" uses "${ARGN}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.c)
  list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/cli/main.c) # the program's entry
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${uses})
endfunction()

# twagent_tests(FOLDER LIBRARIES...): every test_*.c of FOLDER is a program and a test of its own,
# with a time limit; LIBRARIES are what it links besides cmocka.
function(twagent_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/test_*.c)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    string(REPLACE "/" "_" prefix ${folder})
    set(target ${prefix}_${stem})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${ARGN} PkgConfig::CMOCKA)
    target_compile_definitions(${target} PRIVATE
      TEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TEST_BINARY_DIR="${CMAKE_BINARY_DIR}")
    add_test(NAME ${folder}/${stem} COMMAND ${target})
    set_tests_properties(${folder}/${stem} PROPERTIES TIMEOUT 300)
  endforeach()
endfunction()
