//! The names that serde stores the fields under: two of one name would overwrite each other, of which
//! serde itself only warns.

use syn::ext::IdentExt;
use syn::{Attribute, Expr, Lit, LitStr, Meta};

use crate::args::split_at_commas;
use crate::errors::Errors;
use crate::model::{Argument, Model, Role};

/// A field as serde writes and reads it.
struct Stored {
    field: String,
    written: String,
    read: String,
    /// Where another name is given to it.
    renames: Vec<LitStr>,
}

pub(super) fn check(model: &Model, errors: &mut Errors) {
    let stored: Vec<Stored> = model.having(Role::Field).filter_map(Stored::of).collect();
    for (at, later) in stored.iter().enumerate() {
        for earlier in &stored[..at] {
            let name = match () {
                () if earlier.written == later.written => &later.written,
                () if earlier.read == later.read => &later.read,
                () => continue,
            };
            // Without a rename they are two arguments of one name, of which rustc tells.
            let blame = later.renames.iter().chain(&earlier.renames);
            if let Some(literal) = blame.into_iter().find(|literal| literal.value() == *name) {
                errors.on(
                    literal,
                    format!(
                        "`{}` and `{}` are both stored as `{name}`; a payload has one value a name, so choose another",
                        earlier.field, later.field
                    ),
                );
            }
        }
    }
}

impl Stored {
    /// None for a field that may not be there, or is not stored under a name of its own.
    fn of(argument: &Argument) -> Option<Self> {
        let field = argument.name.as_ref()?.unraw().to_string();
        if !argument.cfgs.is_empty() {
            return None;
        }
        let mut stored =
            Self { written: field.clone(), read: field.clone(), field, renames: Vec::new() };
        for meta in argument.field_attrs.iter().flat_map(serde_metas) {
            match &meta {
                Meta::Path(path) if path.is_ident("skip") || path.is_ident("flatten") => {
                    return None;
                }
                Meta::NameValue(pair) if pair.path.is_ident("rename") => {
                    stored.rename(&pair.value, true, true);
                }
                Meta::List(list) if list.path.is_ident("rename") => {
                    for meta in metas(list) {
                        if let Meta::NameValue(pair) = meta {
                            let path = &pair.path;
                            let (write, read) =
                                (path.is_ident("serialize"), path.is_ident("deserialize"));
                            stored.rename(&pair.value, write, read);
                        }
                    }
                }
                _ => {}
            }
        }
        Some(stored)
    }

    fn rename(&mut self, name: &Expr, written: bool, read: bool) {
        let Expr::Lit(name) = name else { return };
        let Lit::Str(name) = &name.lit else { return };
        if written {
            self.written = name.value();
        }
        if read {
            self.read = name.value();
        }
        self.renames.push(name.clone());
    }
}

fn serde_metas(attr: &Attribute) -> Vec<Meta> {
    match &attr.meta {
        Meta::List(list) if list.path.is_ident("serde") => metas(list),
        _ => Vec::new(),
    }
}

/// What serde understands of it; what it does not is serde's to tell.
fn metas(list: &syn::MetaList) -> Vec<Meta> {
    split_at_commas(list.tokens.clone())
        .into_iter()
        .filter_map(|meta| syn::parse2(meta).ok())
        .collect()
}
