//! A test file that names the library, and nothing of it.

use asynccmd::Registry;
use asynccmd_example_handlers as _;

#[test]
fn a_test_file_that_names_the_library_has_its_handlers() {
    let registry = Registry::collect();
    let found: Vec<_> = registry
        .specs()
        .iter()
        .map(|spec| (spec.command_type, spec.location.package, spec.location.module))
        .collect();
    assert_eq!(
        found,
        [
            ("letters.file", "asynccmd-example-handlers", "asynccmd_example_handlers::archive"),
            ("letters.send", "asynccmd-example-handlers", "asynccmd_example_handlers"),
        ]
    );
}
