//! The submit helper.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Generics, Ident};

use super::payload::documented;
use crate::model::{Argument, Model, Role, located};

/// `fn submit_interpret_report(to, report_id, locale) -> Submit<'_, InterpretReport>`.
pub(crate) fn helper(model: &Model, name: &Ident) -> TokenStream {
    let rt = &model.rt;
    let fields = model.having(Role::Field).map(|argument| {
        let (ident, cfgs) = (&argument.name, &argument.cfgs);
        quote!(#(#cfgs)* #ident)
    });
    let payload = match model.whole() {
        Some(argument) => {
            let ident = &argument.name;
            quote!(#ident)
        }
        None => quote!(#name { #(#fields),* }),
    };
    let to = quote_spanned!(Span::mixed_site()=> to);
    let stored = model.having(Role::Field).filter(|field| field.is_plain()).map(|field| {
        let (ty, cfgs) = (&field.ty, &field.cfgs);
        let rt = rt.at(located(ty.span()));
        quote!(#(#cfgs)* #rt::stored::<#ty>();)
    });
    let body = quote!(#(#stored)* #rt::submit::<#name>(#to, #payload));
    let types = |argument: &Argument| argument.ty.to_token_stream();
    signature(model, name, &Generics::default(), types, body)
}

/// The helper around a body.
pub(crate) fn signature(
    model: &Model,
    name: &Ident,
    generics: &Generics,
    types: impl Fn(&Argument) -> TokenStream,
    body: TokenStream,
) -> TokenStream {
    let function = model.function.sig.ident.unraw();
    let attrs = documented(
        &model.shared,
        &format!(
            "Submits the command that `{function}` runs. If `to` is a transaction, it exists once that commits."
        ),
    );
    let (vis, rt, helper) = (&model.function.vis, &model.rt, &model.helper);
    let deprecated = model.shared.allow_deprecated();
    let arguments = model
        .arguments
        .iter()
        .filter(|argument| matches!(argument.role, Role::Field | Role::Payload))
        .map(|argument| {
            let (ty, cfgs) = (types(argument), &argument.cfgs);
            let pat = argument.name.as_ref().map_or(quote!(_), ToTokens::to_token_stream);
            quote!(#(#cfgs)* #pat: #ty)
        });
    let (params, bounds) = (&generics.params, &generics.where_clause);
    // Both have the macro's hygiene: an argument of the user's may be called `to` as well.
    let (to, life) =
        (quote_spanned!(Span::mixed_site()=> to), quote_spanned!(Span::mixed_site()=> 'to));
    quote! {
        #attrs
        #deprecated
        #vis fn #helper<#life, #params>(
            #to: impl #rt::IntoTarget<#life>,
            #(#arguments),*
        ) -> #rt::Submit<#life, #name> #bounds {
            #body
        }
    }
}
