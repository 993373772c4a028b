//! The rules for a command that is declared apart from its handler: which option stands where, and what
//! the two have to be.

use quote::ToTokens;
use syn::Meta;
use syn::ext::IdentExt;

use super::options::{self, Declared, Names};
use crate::args::is_declared;
use crate::declaration::{Declaration, Kind};
use crate::errors::Errors;
use crate::model::Model;

/// Checks a function with `handles(X)`.
pub(super) fn handler(model: &Model, errors: &mut Errors) {
    let Some(path) = &model.args.handles else { return };
    let command = path.to_token_stream().to_string().replace(' ', "");
    for (name, place) in model.args.written() {
        if is_declared(name) {
            errors.on(place, format!("`{name}` belongs to the declaration: write it in the `#[command(…)]` of `{command}`, below its `#[derive(Command)]`"));
        } else if name == "payload" {
            errors.on(place, format!("the payload of this handler is `{command}`, which has its name; remove `payload`"));
        }
    }
    if model.whole().is_none() {
        let fields = model.having(crate::model::Role::Field).next();
        let place = fields.map_or(path.to_token_stream(), |field| field.pat.to_token_stream());
        errors.on(place, format!("a handler of `{command}` takes it as a whole; write `#[payload] name: {command}` in the place of its fields"));
    }
}

/// Checks a type with `#[derive(Command)]`; gives what its options mean if nothing is wrong.
pub(super) fn declaration(declaration: &Declaration, errors: &mut Errors) -> Option<Declared> {
    let args = &declaration.args;
    let name = &declaration.ident;
    if let Kind::Union = declaration.kind {
        errors.on(name, "a union cannot be stored; use a struct or an enum");
    }
    if !declaration.generics.params.is_empty() {
        errors.on(
            &declaration.generics,
            "a stored command is one concrete type; declare one without generics",
        );
    }
    for (option, place) in args.written() {
        if option == "payload" {
            errors.on(
                place,
                format!("the payload of this command is `{name}` itself; remove `payload`"),
            );
        } else if option != "crate" && !is_declared(option) {
            errors.on(place, format!("`{option}` belongs to the handler: write it in `#[command(handles({name}), …)]`"));
        }
    }
    for second in declaration.options.iter().skip(1) {
        errors.on(second, "a second `#[command]`; write all options in one");
    }
    let Some(options) = declaration.options.first() else {
        errors.on(name, "a command needs a type, the key that its rows are routed by; add `#[command(type = \"order.pay\")]` below the derive");
        return None;
    };
    if !matches!(options.meta, Meta::List(_)) {
        errors.on(options, "the options of a command stand in parentheses, its type among them; write `#[command(type = \"order.pay\")]`");
        return None;
    }
    let fields = declaration.fields.iter().map(|field| field.unraw().to_string()).collect();
    let names = Names { fields: Some(fields), others: Vec::new() };
    options::declared(args, &names, errors)
}
