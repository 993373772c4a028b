//! Handlers in a library of their own, as larger programs have them.
//!
//! A linker takes from a library what is asked for by name, and handlers are asked for by nobody: they are
//! found when the program starts. So every binary that is to run them, and every test file, names the
//! crate once, as `bin/worker.rs` does:
//!
//! ```
//! use asynccmd_example_handlers as _;
//! ```
//!
//! `bin/forgotten.rs` does not, and says at its start what is missing. The tests build both, in every
//! profile that could leave something out.

use asynccmd::{CommandError, Context, command};

/// Sends a letter.
#[command(type = "letters.send", mode = "immediate", biz_key = "{to}")]
async fn send_letter(to: String, ctx: &Context) -> Result<String, CommandError> {
    Ok(format!("letter {} to {to}", ctx.id()))
}

mod archive {
    use super::{CommandError, command};

    /// Files a letter: not named by anything, not even by the crate's root.
    #[command(type = "letters.file")]
    fn file_letter(to: String) -> Result<String, CommandError> {
        Ok(format!("filed for {to}"))
    }
}
