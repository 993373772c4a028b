//! Compiles `pass/` and `fail/`.
//!
//! The `.stderr` files are the words of one compiler, so another one is held to `pass/` alone, and the
//! test says so. To renew them run it with `TRYBUILD=overwrite`, and read each one as a user would.

use std::io::Write as _;
use std::process::Command;

/// The compiler whose words the `.stderr` files are.
const OWNER: &str = "rustc 1.95.";

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("pass/*.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc tells its version");
    let version = String::from_utf8_lossy(&version.stdout);
    if version.starts_with(OWNER) {
        cases.compile_fail("fail/*/*.rs");
    } else {
        // Not by `eprintln!`, which the harness would keep to itself.
        writeln!(
            std::io::stderr(),
            "fail/ is skipped: its .stderr files are the words of {OWNER}x, this is {version}"
        )
        .expect("stderr is open");
    }
}
