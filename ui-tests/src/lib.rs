//! The attribute as users meet it: `pass/` has what must compile without a warning, `fail/` what must
//! not, with the compiler's words beside it. `tests/ui.rs` compiles both.
//!
//! rustc knows nothing of clippy's lints, so clippy meets `pass/` here.
#![cfg_attr(clippy, allow(dead_code, reason = "each module is a program of its own"))]

#[cfg(clippy)]
#[path = "../pass/cfg.rs"]
pub mod cfg;
#[cfg(clippy)]
#[path = "../pass/crate_path.rs"]
pub mod crate_path;
#[cfg(clippy)]
#[path = "../pass/declared.rs"]
pub mod declared;
#[cfg(clippy)]
#[path = "../pass/deprecated.rs"]
pub mod deprecated;
#[cfg(clippy)]
#[path = "../pass/docs.rs"]
pub mod docs;
#[cfg(clippy)]
#[path = "../pass/errors.rs"]
pub mod errors;
#[cfg(clippy)]
#[path = "../pass/errors_anyhow.rs"]
pub mod errors_anyhow;
#[cfg(clippy)]
#[path = "../pass/errors_eyre.rs"]
pub mod errors_eyre;
#[cfg(clippy)]
#[path = "../pass/errors_own.rs"]
pub mod errors_own;
#[cfg(clippy)]
#[path = "../pass/every_lint.rs"]
pub mod every_lint;
#[cfg(clippy)]
#[path = "../pass/lint_levels.rs"]
pub mod lint_levels;
#[cfg(clippy)]
#[path = "../pass/macro_rules.rs"]
pub mod macro_rules;
#[cfg(clippy)]
#[path = "../pass/names.rs"]
pub mod names;
#[cfg(clippy)]
#[path = "../pass/payload.rs"]
pub mod payload;
#[cfg(clippy)]
#[path = "../pass/places.rs"]
pub mod places;
#[cfg(clippy)]
#[path = "../pass/plain.rs"]
pub mod plain;
#[cfg(clippy)]
#[path = "../pass/raw.rs"]
pub mod raw;
#[cfg(clippy)]
#[path = "../pass/re_exported.rs"]
pub mod re_exported;
#[cfg(clippy)]
#[path = "../pass/serde.rs"]
pub mod serde;
#[cfg(clippy)]
#[path = "../pass/submit.rs"]
pub mod submit;
#[cfg(clippy)]
#[path = "../pass/visibility.rs"]
pub mod visibility;
#[cfg(clippy)]
#[path = "../pass/wide.rs"]
pub mod wide;
