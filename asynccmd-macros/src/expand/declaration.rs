//! What `#[derive(Command)]` adds to a type.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;

use super::command::Command;
use super::payload::documented;
use crate::check::Declared;
use crate::declaration::{Declaration, Kind};
use crate::model::local;

/// The implementation and the submit helper.
pub(crate) fn declaration(declaration: &Declaration, declared: &Declared) -> TokenStream {
    let command = Command {
        rt: &declaration.rt,
        name: &declaration.ident,
        payload: quote!(Self),
        declared,
        args: &declaration.args,
        mode: None,
        fields: declaration.fields.clone(),
    };
    let implementation = command.implementation();
    let (rt, name) = (&declaration.rt, &declaration.ident);
    let to = to();
    let payload = payload();
    let helper = helper(declaration, quote!(#rt::submit::<#name>(#to, #payload)));
    let deprecated = declaration.shared.allow_deprecated();
    rt.items(quote! {
        #deprecated
        const _: () = {
            #implementation
        };
        #helper
    })
}

/// What stands beside the errors, so that nothing said of the command elsewhere is another one.
pub(crate) fn fallback(declaration: &Declaration) -> TokenStream {
    if !declaration.generics.params.is_empty() || matches!(declaration.kind, Kind::Union) {
        return TokenStream::new();
    }
    let (rt, name) = (&declaration.rt, &declaration.ident);
    let command_type = declaration.args.command_type.as_ref();
    let command_type = command_type.map_or(String::new(), syn::LitStr::value);
    let helper = helper(declaration, quote!(::core::unreachable!()));
    let deprecated = declaration.shared.allow_deprecated();
    rt.items(quote! {
        #deprecated
        const _: () = {
            impl #rt::Command for #name {
                type Payload = Self;
                const TYPE: &'static str = #command_type;
                const DECLARATION: #rt::Declaration = #rt::Declaration::DEFAULT;
            }
        };
        #helper
    })
}

/// `fn submit_interpret_report(to, payload: InterpretReport) -> Submit<'_, InterpretReport>`.
fn helper(declaration: &Declaration, body: TokenStream) -> TokenStream {
    let Declaration { vis, ident, rt, helper, shared, .. } = declaration;
    let line = format!(
        "Submits the command `{}`. If `to` is a transaction, it exists once that commits.",
        ident.unraw()
    );
    let attrs = documented(shared, &line);
    let deprecated = shared.allow_deprecated();
    let (to, payload) = (to(), payload());
    let life = quote_spanned!(Span::mixed_site()=> 'to);
    quote! {
        #attrs
        #deprecated
        #vis fn #helper<#life>(
            #to: impl #rt::IntoTarget<#life>,
            #payload: #ident,
        ) -> #rt::Submit<#life, #ident> {
            #body
        }
    }
}

fn to() -> TokenStream {
    quote_spanned!(Span::mixed_site()=> to)
}

fn payload() -> syn::Ident {
    local("payload", Span::call_site())
}
