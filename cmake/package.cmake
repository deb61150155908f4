# What is built to be carried away; cmake/install.cmake says what is in it.
set(TWAGENT_PACKAGE "" CACHE STRING "what cpack makes: bundle (with its libraries), deb, or nothing")
set_property(CACHE TWAGENT_PACKAGE PROPERTY STRINGS "" bundle deb)
if(TWAGENT_PACKAGE) # names no folder of the machine that built it; hardened as distributions do
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fstack-protector-strong
                      -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()
