# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and the files by which others find it.
include(CMakePackageConfigHelpers)

install(TARGETS headrace headrace-trace EXPORT headrace-targets)
install(TARGETS headrace-cli)
install(DIRECTORY include/headrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT headrace-targets NAMESPACE headrace:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_BINARY_DIR}/share/headrace.1 ${CMAKE_BINARY_DIR}/share/headrace-run.1
    ${CMAKE_BINARY_DIR}/share/headrace-audit.1 ${CMAKE_BINARY_DIR}/share/headrace-bench.1
    ${CMAKE_BINARY_DIR}/share/headrace-info.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/share/headrace.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME headrace)

configure_package_config_file(cmake/headrace-config.cmake.in headrace-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
write_basic_package_version_file(headrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/headrace-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/headrace-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)

# The prefix counted from where the .pc file lies, so that the folder may be moved.
file(RELATIVE_PATH PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(library headrace headrace-trace)
    set(PC_NAME ${library})
    configure_file(cmake/library.pc.in ${library}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
