//! All rules: what the compiler would accept and a command is not.
//!
//! Every broken rule is an error on the smallest token that breaks it. What only the types know is left
//! to the bounds of `asynccmd::__rt`.

mod function;
mod options;
mod sides;
mod stored;

use crate::declaration::Declaration;
use crate::errors::Errors;
use crate::model::Model;
pub(crate) use function::{is_refused, taken_by};
pub(crate) use options::{Declared, Mode, Settings, Unique};

/// Checks a handler; gives what its options mean if nothing is wrong.
pub(crate) fn check(model: &Model, errors: &mut Errors) -> Option<Settings> {
    function::check(model, errors);
    stored::check(model, errors);
    sides::handler(model, errors);
    let settings = options::check(model, errors);
    if errors.is_empty() { settings } else { None }
}

/// Checks a declaration; gives what its options mean if nothing is wrong.
pub(crate) fn declaration(declaration: &Declaration, errors: &mut Errors) -> Option<Declared> {
    let declared = sides::declaration(declaration, errors);
    if errors.is_empty() { declared } else { None }
}
