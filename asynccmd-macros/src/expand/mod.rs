//! A checked handler as code.
//!
//! Names of ours are found through `asynccmd::__rt` alone, names of the standard library by absolute
//! paths. Local variables have the macro's own hygiene, so no name of the user's meets them. Nothing is
//! named `allow` that does not have to be: a user's `forbid` would be an error against it.

mod command;
pub(crate) mod declaration;
pub(crate) mod payload;
mod spec;
pub(crate) mod submit;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::check::Settings;
use crate::model::Model;

/// The function as it was written, and what is made of it.
pub(crate) fn handler(model: &Model, settings: &Settings, name: &Ident) -> TokenStream {
    let function = &model.function;
    let payload = payload::item(model, name);
    let command = spec::registered(model, settings, name);
    // Of a command that is declared elsewhere the helper is there as well.
    let helper = settings.declared.is_some().then(|| submit::helper(model, name));
    let items = model.rt.items(quote!(#payload #command #helper));
    quote!(#function #items)
}
