//! Runs the handlers of the library.

mod serve;

use asynccmd_example_handlers as _;

fn main() -> std::process::ExitCode {
    serve::main()
}
