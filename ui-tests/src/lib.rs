//! The attribute as users meet it: `pass/` has what must compile without a warning, `fail/` what must
//! not, with the compiler's words beside it. `tests/ui.rs` compiles both.
