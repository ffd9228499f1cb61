# cmake -DLOWDOWN= -DSOURCE= -DPAGE= -DTITLE= -DSECTION= -DDATE= -DRELEASE= -P man_page.cmake
#
# Makes a man page of Markdown whose first line is "# title(section)", which man writes by itself, and
# whose sections are of the second level.
file(READ "${SOURCE}" text)
if(NOT text MATCHES "^# ${TITLE}\\(${SECTION}\\)\n")
  message(FATAL_ERROR "${SOURCE} does not begin with '# ${TITLE}(${SECTION})'")
endif()
string(LENGTH "# ${TITLE}(${SECTION})\n" beginning)
string(SUBSTRING "${text}" ${beginning} -1 text)
string(REGEX REPLACE "\n##" "\n#" text "${text}")
file(WRITE "${PAGE}.md" "${text}")
execute_process(
  COMMAND "${LOWDOWN}" -s -Tman -M "title=${TITLE}" -M "section=${SECTION}" -M "date=${DATE}"
          -M "source=${RELEASE}" -o "${PAGE}" "${PAGE}.md"
  COMMAND_ERROR_IS_FATAL ANY)

# Long words of tables: not stretched, which troff would warn of.
file(READ "${PAGE}" page)
string(REGEX REPLACE "(\n\\.TH [^\n]*\n)" "\\1.ad l\n" page "${page}")
file(WRITE "${PAGE}" "${page}")
