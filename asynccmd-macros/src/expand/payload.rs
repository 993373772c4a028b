//! The payload's type.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Ident;
use syn::ext::IdentExt;

use crate::model::{Model, Role};

/// `struct InterpretReport { … }`, or the marker for a payload from elsewhere.
pub(crate) fn item(model: &Model, name: &Ident) -> TokenStream {
    let attrs = attrs(model);
    let (vis, rt) = (&model.function.vis, &model.rt);
    if model.whole().is_some() {
        return quote! {
            #attrs
            #[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
            #vis struct #name;
        };
    }
    let serde = rt.serde();
    let fields = model.having(Role::Field).map(|argument| {
        let (ident, ty, cfgs, attrs) =
            (&argument.name, &argument.ty, &argument.cfgs, &argument.field_attrs);
        let documented = attrs.iter().any(|attr| attr.path().is_ident("doc"));
        let doc = (!documented).then(|| {
            let name = ident.as_ref().map(IdentExt::unraw).to_token_stream();
            let line = format!("The argument `{name}`.");
            quote!(#[doc = #line])
        });
        quote!(#(#cfgs)* #(#attrs)* #doc #vis #ident: #ty)
    });
    quote! {
        #attrs
        #[derive(
            ::core::fmt::Debug,
            ::core::clone::Clone,
            #rt::serde::Serialize,
            #rt::serde::Deserialize,
        )]
        #[serde(crate = #serde)]
        #vis struct #name { #(#fields),* }
    }
}

/// The attributes that the type has from the function, with a line of its own behind the docs.
pub(crate) fn attrs(model: &Model) -> TokenStream {
    let function = model.function.sig.ident.unraw();
    let line = match model.whole() {
        None => format!("This is the payload of the command that `{function}` runs."),
        Some(_) => format!("This stands for the command that `{function}` runs."),
    };
    documented(model, &line)
}

/// The attributes that what is generated has from the function, with a paragraph behind the docs.
pub(crate) fn documented(model: &Model, line: &str) -> TokenStream {
    let (docs, rest) = (&model.shared.docs, &model.shared.rest);
    let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
    quote!(#(#docs)* #gap #[doc = #line] #(#rest)*)
}
