//! The rules for the function: its qualifiers, arguments, return and names.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Pat, ReturnType, Safety, Type, TypeReference};

use crate::errors::Errors;
use crate::model::{Argument, Model, Role, bare};

/// Names that every module has, and that a payload type of that name would hide.
const PRELUDE: [&str; 43] = [
    "AsMut",
    "AsRef",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "Box",
    "Clone",
    "Copy",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

pub(super) fn check(model: &Model, errors: &mut Errors) {
    signature(model, errors);
    attributes(&model.function.attrs, errors);
    for argument in &model.arguments {
        name(argument, errors);
        match argument.role {
            Role::Field => field(argument, errors),
            Role::State => state(argument, errors),
            Role::Payload => payload(argument, errors),
            Role::Context => context(argument, errors),
        }
        argument_attributes(argument, errors);
    }
    together(model, errors);
    returned(model, errors);
    payload_name(model, errors);
}

fn signature(model: &Model, errors: &mut Errors) {
    let sig = &model.function.sig;
    if let Some(receiver) = &model.receiver {
        errors.on(
            receiver,
            "`#[command]` goes on a free function, not on a method; take the value by `#[state]`",
        );
    }
    if let Some(token) = &sig.constness {
        errors.on(token, "a command runs later, not at compile time; remove `const`");
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.on(token, "a command is called by the runtime, which can keep no contract of an `unsafe fn`; wrap this in a safe function");
    }
    if let Some(abi) = &sig.abi {
        errors.on(abi, "a command is called by the runtime; remove the ABI");
    }
    if !sig.generics.params.is_empty() {
        let only_lifetimes = sig.generics.lifetimes().count() == sig.generics.params.len();
        let message = if only_lifetimes {
            "a command borrows nothing but its context, which needs no name for it; write `ctx: &Context`"
        } else {
            "a stored command is one concrete type; wrap this in a handler without generics"
        };
        errors.on(&sig.generics, message);
    }
    if let Some(clause) = &sig.generics.where_clause {
        errors.on(
            clause,
            "a command has no generics, so there is nothing to bound; remove the `where`",
        );
    }
    if let Some(variadic) = &sig.variadic {
        errors.on(variadic, "a stored command has a fixed number of fields; use a `Vec`");
    }
}

fn attributes(attrs: &[Attribute], errors: &mut Errors) {
    for attr in attrs {
        let Some(last) = attr.path().segments.last() else { continue };
        match last.ident.to_string().as_str() {
            "command" => errors.on(attr, "a second `#[command]`: one function handles one type; add `aliases(\"…\")` to the first, or write a second function"),
            "test" | "main" => errors.on(attr, "the runtime calls a command; call this one from a function of its own for that"),
            _ => {}
        }
    }
}

/// Attributes that [`attributes`] refuses.
pub(crate) fn is_refused(attr: &Attribute) -> bool {
    attr.path()
        .segments
        .last()
        .is_some_and(|last| ["command", "test", "main"].iter().any(|word| last.ident == word))
}

fn name(argument: &Argument, errors: &mut Errors) {
    if argument.name.is_some() {
        return;
    }
    let message = match &argument.pat {
        Pat::Wild(_) if argument.role == Role::Field => {
            "name this argument; the name is the stored field"
        }
        Pat::Wild(_) => "name this argument",
        Pat::Ident(pat) if pat.by_ref.is_some() => "an argument is stored by value; remove `ref`",
        _ => {
            "give this argument one plain name and take it apart in the body; the name is the stored field"
        }
    };
    errors.on(&argument.pat, message);
}

fn field(argument: &Argument, errors: &mut Errors) {
    match bare(&argument.ty) {
        Type::Reference(reference) => errors.on(reference, owned(reference)),
        Type::ImplTrait(ty) => errors
            .on(ty, "a stored field has one concrete type; write the type in the place of `impl`"),
        Type::TraitObject(ty) => errors
            .on(ty, "a stored field has one concrete type, which `dyn` hides; write that type"),
        Type::FnPtr(ty) => {
            errors.on(ty, "a function cannot be stored; store what selects it, as an enum")
        }
        Type::Ptr(ty) => {
            errors.on(ty, "a pointer means nothing in another process; store what it points to")
        }
        Type::Infer(ty) => errors.on(ty, "a stored field has a type; write it"),
        Type::Never(ty) => errors.on(ty, "there is no value of type `!` to store"),
        ty => within(ty.to_token_stream(), errors),
    }
}

fn owned(reference: &TypeReference) -> String {
    let target = &*reference.elem;
    let instead = match target {
        Type::Path(path) if path.path.is_ident("str") => "String".into(),
        Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
        Type::TraitObject(_) => return "a stored field must be owned; take what the runtime has by `#[state]`, and the attempt as `ctx: &Context`".into(),
        _ => {
            let owned = text(target);
            return format!(
                "a stored field must be owned; use `{owned}`, marked `#[state]` if the runtime has it (the attempt's own context is written `&Context`, under that name)"
            );
        }
    };
    format!("a stored field must be owned; use `{instead}`")
}

/// A type as text, without the spaces that printing puts between its tokens.
fn text(ty: &Type) -> String {
    let spaced = ty.to_token_stream().to_string();
    let mut text = String::new();
    let mut letters = spaced.chars().peekable();
    while let Some(letter) = letters.next() {
        let between_words = |next: &char| {
            text.ends_with(|last: char| last.is_alphanumeric()) && next.is_alphanumeric()
        };
        if letter != ' ' || text.ends_with(',') || letters.peek().is_some_and(between_words) {
            text.push(letter);
        }
    }
    text
}

/// What no type of a stored field contains at any depth.
fn within(tokens: TokenStream, errors: &mut Errors) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => within(group.stream(), errors),
            TokenTree::Ident(ident) if ident == "Self" => {
                errors.on(ident, "`Self` has no meaning on a free function; write the type");
            }
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                let message = match tokens.peek() {
                    Some(TokenTree::Ident(ident)) if ident == "Context" => {
                        "every attempt has its context; write `ctx: &Context`"
                    }
                    _ => "a stored field must be owned, all the way down; remove the reference",
                };
                errors.on(punct, message);
                // The lifetime behind it belongs to the same mistake.
                if matches!(tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '\'') {
                    tokens.nth(1);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                if let Some(lifetime) = tokens.next()
                    && lifetime.to_string() != "static"
                {
                    let message =
                        "a stored field must be owned, so it has no lifetime; use an owned type";
                    errors.on(
                        [TokenTree::Punct(punct), lifetime].into_iter().collect::<TokenStream>(),
                        message,
                    );
                }
            }
            _ => {}
        }
    }
}

fn state(argument: &Argument, errors: &mut Errors) {
    if let Type::Reference(reference) = bare(&argument.ty) {
        errors.on(
            reference,
            format!(
                "state is handed over as a clone, not by reference; use `{}`, or an `Arc` of it",
                text(&reference.elem)
            ),
        );
    } else if let Type::ImplTrait(ty) = bare(&argument.ty) {
        errors.on(ty, "state is found by its type; write the concrete one");
    }
}

fn payload(argument: &Argument, errors: &mut Errors) {
    match bare(&argument.ty) {
        Type::Reference(reference) => errors
            .on(reference, format!("a handler owns its payload; use `{}`", text(&reference.elem))),
        Type::ImplTrait(ty) => errors.on(ty, "a payload has one concrete type; write it"),
        _ => {}
    }
}

fn context(argument: &Argument, errors: &mut Errors) {
    match bare(&argument.ty) {
        Type::Reference(reference) => {
            if let Some(token) = &reference.mutability {
                errors.on(token, "the context is shared with the runtime; write `&Context`");
            }
        }
        ty => errors.on(
            ty,
            format!(
                "the context is the runtime's; write `&{}` (a type of your own by this name needs a path before it)",
                text(ty)
            ),
        ),
    }
    let markers = &argument.markers;
    for attr in markers.iter().chain(&argument.field_attrs).chain(&argument.cfgs) {
        errors.on(attr, "the context takes no attribute; remove it");
    }
}

fn argument_attributes(argument: &Argument, errors: &mut Errors) {
    for attr in &argument.foreign {
        let name = attr.path().to_token_stream().to_string().replace(' ', "");
        errors.on(attr, format!("`{name}` has no meaning on an argument of a command; there are `state`, `payload`, `serde`, `doc`, `cfg`, `cfg_attr` and lint levels"));
    }
    if argument.role == Role::Context {
        return;
    }
    for marker in &argument.markers {
        if !matches!(marker.meta, syn::Meta::Path(_)) {
            let name = marker.path().to_token_stream();
            errors.on(marker, format!("`{name}` takes no value; write `#[{name}]`"));
        }
    }
    for marker in argument.markers.iter().skip(1) {
        errors.on(marker, "an argument is one of state, payload or field; remove one attribute");
    }
    if matches!(argument.role, Role::State | Role::Payload) {
        for attr in argument.field_attrs.iter().filter(|attr| !attr.path().is_ident("doc")) {
            errors.on(attr, "this argument is no field of the payload; remove the attribute");
        }
    }
    if argument.role == Role::Payload {
        for attr in &argument.cfgs {
            errors.on(attr, "a handler either has a payload of its own type or not; put the `cfg` on the function");
        }
    }
}

/// What the arguments are to each other.
fn together(model: &Model, errors: &mut Errors) {
    for second in model.having(Role::Context).skip(1) {
        errors.on(&second.ty, "a second context; an attempt has one");
    }
    let mut wholes = model.having(Role::Payload);
    if wholes.next().is_some() {
        for second in wholes {
            errors.on(
                &second.ty,
                "a second `#[payload]`; a command has one, so make one type of both",
            );
        }
        for field in model.having(Role::Field) {
            errors.on(
                &field.pat,
                "`#[payload]` is the whole payload, and this argument would be a field beside it; move it into that type, or mark it `#[state]`",
            );
        }
    }
}

fn returned(model: &Model, errors: &mut Errors) {
    let sig = &model.function.sig;
    const INSTEAD: &str = "write `-> Result<(), asynccmd::CommandError>`";
    match &sig.output {
        ReturnType::Default => {
            errors.on(&sig.ident, format!("a command says how its attempt ended; {INSTEAD}"));
        }
        ReturnType::Type(_, ty) => {
            match bare(ty) {
                Type::ImplTrait(ty) => {
                    errors.on(ty, "a command returns a `Result` of concrete types, not `impl …`; write the types");
                }
                Type::Never(ty) => {
                    errors.on(
                        ty,
                        format!("a command that never returns holds its row for ever; {INSTEAD}"),
                    );
                }
                _ => {}
            }
        }
    }
}

fn payload_name(model: &Model, errors: &mut Errors) {
    let name = &model.function.sig.ident;
    if model.payload.is_none() {
        return errors.on(name, "this name makes no name of a type; write `payload(Name)`");
    }
    let blame = model.args.payload.as_ref().unwrap_or(name);
    // There the name is of a marker, and `handles` alone says for what.
    if model.args.has("handles") {
        return;
    }
    if let Some(taken) = taken_by(model) {
        errors.on(
            blame,
            format!("the payload type would {taken}; write `payload(Name)` with another name"),
        );
    }
}

/// What the name of the payload type would do to a name that is there already, as far as the signature
/// shows.
pub(crate) fn taken_by(model: &Model) -> Option<String> {
    let payload = model.payload.as_ref()?;
    if PRELUDE.iter().any(|name| payload == name) {
        return Some(format!("hide the prelude's `{payload}`"));
    }
    let sig = &model.function.sig;
    let types = model.arguments.iter().map(|argument| argument.ty.to_token_stream());
    types
        .chain([sig.output.to_token_stream()])
        .any(|tokens| names_plainly(tokens, payload))
        .then(|| format!("be called `{payload}`, like a type of this signature"))
}

/// Whether a name stands in tokens without a path before it.
fn names_plainly(tokens: TokenStream, name: &syn::Ident) -> bool {
    let mut behind_colons = false;
    tokens.into_iter().any(|token| {
        let found = match &token {
            TokenTree::Ident(ident) => ident == name && !behind_colons,
            TokenTree::Group(group) => names_plainly(group.stream(), name),
            _ => false,
        };
        behind_colons = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':');
        found
    })
}
