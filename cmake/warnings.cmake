# Warnings for every target; errors they are in the presets that developers and CI use: what another compiler or
# another level of optimization warns of is no reason to have no program.
option(TWAGENT_WERROR "treat warnings as errors" OFF)
option(TWAGENT_COVERAGE "instrument for gcov" OFF)
set(TWAGENT_SANITIZE "" CACHE STRING "-fsanitize= list for all of twagent's own code")

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-overflow=2 -Wwrite-strings
                    -fno-strict-aliasing -fno-common)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
                    $<$<C_COMPILER_ID:Clang>:-Wno-enum-float-conversion>) # numbers that have a name
if(TWAGENT_WERROR)
  add_compile_options(-Werror)
endif()
if(TWAGENT_SANITIZE)
  add_compile_options(-fsanitize=${TWAGENT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TWAGENT_SANITIZE})
  if(TWAGENT_SANITIZE MATCHES address) # what gcc says by itself
    add_compile_options($<$<C_COMPILER_ID:Clang>:-D__SANITIZE_ADDRESS__=1>)
  endif()
endif()
find_program(TWAGENT_LLD ld.lld)
if(TWAGENT_LLD AND CMAKE_BUILD_TYPE STREQUAL "Debug") # half of the time of 170 links, a third with a sanitizer
  add_link_options(-fuse-ld=lld)
endif()
if(TWAGENT_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
