//! `impl Command`: what is said of a command apart from its handler.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Ident, LitStr};

use crate::check::{Declared, Mode, Unique};
use crate::model::{Rt, local, located};
use crate::template::{self, Part};

/// A command's parts.
pub(super) struct Command<'a> {
    pub rt: &'a Rt,
    pub name: &'a Ident,
    pub payload: TokenStream,
    pub declared: &'a Declared,
    pub aliases: &'a [LitStr],
    /// None if the handler, somewhere else, says it.
    pub mode: Option<Mode>,
    /// The payload's fields as they are written; empty for a foreign one.
    pub fields: Vec<Ident>,
}

impl Command<'_> {
    /// The implementation.
    pub(super) fn implementation(&self) -> TokenStream {
        let Self { rt, name, payload, declared, .. } = self;
        let command_type = &declared.command_type;
        let options = self.options();
        let key = self.key();
        quote! {
            impl #rt::Command for #name {
                type Payload = #payload;
                const TYPE: &'static str = #command_type;
                const DECLARATION: #rt::Declaration = #rt::Declaration::DEFAULT #(#options)*;
                #key
            }
        }
    }

    /// What differs from the default.
    fn options(&self) -> Vec<TokenStream> {
        let Self { rt, declared, aliases, .. } = self;
        let mut options = Vec::new();
        if !aliases.is_empty() {
            options.push(quote!(.aliases(&[#(#aliases),*])));
        }
        options.extend(declared.max_retry.map(|failures| quote!(.max_retry(#failures))));
        options.extend(declared.priority.map(|level| quote!(.priority(#level))));
        options.extend(declared.unique.map(|unique| match unique {
            Unique::UntilFinished => quote!(.unique(#rt::Unique::UntilFinished)),
            Unique::UntilStarted => quote!(.unique(#rt::Unique::UntilStarted)),
        }));
        options.extend(self.mode.map(|mode| {
            let mode = mode_value(rt, mode);
            quote!(.mode(#mode))
        }));
        options
    }

    fn key(&self) -> Option<TokenStream> {
        let (literal, parts) = self.declared.biz_key.as_ref()?;
        let rt = self.rt;
        let span = located(literal.span());
        let payload = local("payload", span);
        let key = local("key", span);
        let parts = parts.iter().map(|part| match part {
            Part::Text(text) => quote!(#key.push_str(#text);),
            Part::Field(field) => {
                let rt = rt.at(span);
                let field = self.field(field, span);
                quote_spanned!(span=> #rt::key_part(&mut #key, &#payload.#field);)
            }
        });
        Some(quote! {
            fn biz_key(#payload: &Self::Payload) -> #rt::String {
                let mut #key = #rt::String::new();
                #(#parts)*
                #key
            }
        })
    }

    /// A field as the user spells it, and placed in the template. A foreign payload's is spelt by the
    /// template alone.
    fn field(&self, name: &str, span: Span) -> Option<Ident> {
        let own = self.fields.iter().find(|ident| ident.unraw() == name).cloned();
        let mut ident = own.or_else(|| template::ident(name))?;
        ident.set_span(span.resolved_at(ident.span()));
        Some(ident)
    }
}

/// A mode as a value.
pub(super) fn mode_value(rt: &Rt, mode: Mode) -> TokenStream {
    match mode {
        Mode::Scheduled => quote!(#rt::Mode::Scheduled),
        Mode::AsyncPool => quote!(#rt::Mode::AsyncPool),
        Mode::Immediate => quote!(#rt::Mode::Immediate),
    }
}
