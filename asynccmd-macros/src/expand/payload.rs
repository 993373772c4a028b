//! The payload's type.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;

use crate::model::{Model, Role, Shared};

/// `struct InterpretReport { … }`, or the marker for a payload from elsewhere.
pub(crate) fn item(model: &Model, name: &Ident) -> TokenStream {
    let attrs = attrs(model);
    let (vis, rt) = (&model.function.vis, &model.rt);
    if model.args.handles.is_some() {
        // Placed at the command's name: there rustc tells of a second handler.
        return quote_spanned!(name.span()=> #attrs #vis struct #name;);
    }
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
    let line = match (model.whole(), &model.args.handles) {
        (_, Some(_)) => format!("This stands for the handler `{function}`."),
        (None, _) => format!("This is the payload of the command that `{function}` runs."),
        (Some(_), _) => format!("This stands for the command that `{function}` runs."),
    };
    documented(&model.shared, &line)
}

/// The attributes that what is generated has from what it is made of, with a paragraph behind the docs.
pub(crate) fn documented(shared: &Shared, line: &str) -> TokenStream {
    let Shared { docs, rest, .. } = shared;
    let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
    quote!(#(#docs)* #gap #[doc = #line] #(#rest)*)
}
