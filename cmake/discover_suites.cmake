# Run by ctest, before its tests: each suite of a GoogleTest program is one test, "PROGRAM.Suite". A
# process for each of some two thousand tests would take longer to start than the tests to run.

# h5m_add_suites(NAME PROGRAM LIST ENVIRONMENT)
#
# LIST is a file for the names of the suites; it is written when PROGRAM is newer. ENVIRONMENT is a
# list of VARIABLE=VALUE.
function(h5m_add_suites name program list environment)
  if(NOT EXISTS "${program}")
    # As gtest_discover_tests does: a test that fails, and says why.
    add_test("${name}_NOT_BUILT" "${name}_NOT_BUILT")
    set_tests_properties("${name}_NOT_BUILT" PROPERTIES LABELS unit)
    return()
  endif()
  if(NOT EXISTS "${list}" OR "${program}" IS_NEWER_THAN "${list}")
    execute_process(COMMAND "${program}" --gtest_list_tests
      OUTPUT_VARIABLE said RESULT_VARIABLE failed TIMEOUT 60)
    if(failed)
      message(FATAL_ERROR "${program} --gtest_list_tests: ${failed}\n${said}")
    endif()
    string(RANDOM LENGTH 8 mark)   # Two runs of ctest may get here at once.
    file(WRITE "${list}.${mark}" "${said}")
    file(RENAME "${list}.${mark}" "${list}")
  endif()
  file(STRINGS "${list}" suites REGEX "^[^ ]+\\.( |$)")
  if(NOT suites)
    message(FATAL_ERROR "${list} names no suite: remove it")
  endif()
  foreach(suite IN LISTS suites)
    string(REGEX REPLACE "\\..*" "" suite "${suite}")
    add_test("${name}.${suite}" "${program}" "--gtest_filter=${suite}.*"
      --gtest_brief=1)
    set_tests_properties("${name}.${suite}" PROPERTIES
      LABELS unit TIMEOUT 300 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
