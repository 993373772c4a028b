//! The same program without the one line, to see what it says then.

mod serve;

fn main() -> std::process::ExitCode {
    serve::main()
}
