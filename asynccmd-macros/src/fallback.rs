//! What is emitted beside the errors: the function, its payload type and its helper, so that one mistake
//! is one error, elsewhere too, and editors keep working. None of it ever runs.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{FnArg, GenericParam, Generics, Ident, Type, TypeReference};

use crate::check;
use crate::errors::Errors;
use crate::expand::{payload, submit};
use crate::input::Function;
use crate::model::{Argument, Model, Role, bare, mentions};

/// The errors, and whatever can stand beside them.
pub(crate) fn broken(model: &Model, errors: &Errors) -> TokenStream {
    let errors = errors.to_tokens();
    let function = function(&model.function);
    // What a broken `handles` stands for is not known, and so is no name.
    let handles = model.args.handles.is_some() || !model.args.has("handles");
    let nameable = handles && model.receiver.is_none() && check::taken_by(model).is_none();
    let generated = model.payload.as_ref().filter(|_| nameable).map(|name| {
        let item = item(model, name);
        let command = command(model, name);
        let helper = (!model.args.has("handles")).then(|| helper(model, name));
        model.rt.items(quote!(#item #command #helper))
    });
    quote!(#errors #function #generated)
}

/// The function, without what rustc would refuse a second time.
fn function(function: &Function) -> TokenStream {
    let mut function = function.clone();
    function.attrs.retain(|attr| !check::is_refused(attr));
    let mut hollow = function.body.is_empty();
    hollow |= function.sig.variadic.take().is_some();
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input
            && !stands_in_a_signature(&typed.ty)
        {
            *typed.ty = syn::parse_quote!(());
            hollow = true;
        }
    }
    if hollow {
        function.attrs.push(syn::parse_quote!(#[allow(unused, reason = "the body is left out")]));
        function.body = quote!({ ::core::unreachable!() });
    }
    function.into_token_stream()
}

fn item(model: &Model, name: &Ident) -> TokenStream {
    let attrs = payload::attrs(model);
    let vis = &model.function.vis;
    if model.whole().is_some() || model.args.handles.is_some() {
        return quote!(#attrs #vis struct #name;);
    }
    let generics = &model.function.sig.generics;
    let fields = model.having(Role::Field).filter_map(|argument| {
        let (ident, ty) = (argument.name.as_ref()?, field_type(&argument.ty, generics));
        let cfgs = &argument.cfgs;
        Some(quote!(#(#cfgs)* #vis #ident: #ty))
    });
    let rt = &model.rt;
    quote! {
        #attrs
        #vis struct #name { #(#fields),* }

        impl ::core::fmt::Debug for #name {
            fn fmt(&self, _: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::unreachable!()
            }
        }

        impl ::core::clone::Clone for #name {
            fn clone(&self) -> Self {
                ::core::unreachable!()
            }
        }

        impl #rt::serde::Serialize for #name {
            fn serialize<S: #rt::serde::Serializer>(
                &self,
                _: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                ::core::unreachable!()
            }
        }

        impl<'de> #rt::serde::Deserialize<'de> for #name {
            fn deserialize<D: #rt::serde::Deserializer<'de>>(
                _: D,
            ) -> ::core::result::Result<Self, D::Error> {
                ::core::unreachable!()
            }
        }
    }
}

fn command(model: &Model, name: &Ident) -> TokenStream {
    let rt = &model.rt;
    let payload = match model.whole() {
        Some(argument) => field_type(&argument.ty, &model.function.sig.generics),
        None => name.to_token_stream(),
    };
    let command_type = model.args.command_type.as_ref().map_or(String::new(), syn::LitStr::value);
    let (command, handled) = match &model.args.handles {
        Some(path) => (None, path.to_token_stream()),
        None => {
            let command = quote! {
                impl #rt::Command for #name {
                    type Payload = #payload;
                    const TYPE: &'static str = #command_type;
                    const DECLARATION: #rt::Declaration = #rt::Declaration::DEFAULT;
                }
            };
            (Some(command), name.to_token_stream())
        }
    };
    quote! {
        #command
        impl #rt::Handles for #name {
            type Command = #handled;
            const SPEC: #rt::CommandSpec = #rt::CommandSpec::of::<#name>(
                "",
                #rt::Location::new("", "", "", 0, 0),
                #rt::Handler::Blocking(|_, _| ::core::unreachable!()),
            );
        }
    }
}

fn helper(model: &Model, name: &Ident) -> TokenStream {
    let types = |argument: &Argument| match stands_in_a_signature(&argument.ty) {
        true => argument.ty.to_token_stream(),
        false => quote!(()),
    };
    let generics = &model.function.sig.generics;
    submit::signature(model, name, generics, types, quote!(::core::unreachable!()))
}

/// Whether a function can have an argument of this type, which is what rustc asks of it.
fn stands_in_a_signature(ty: &Type) -> bool {
    match bare(ty) {
        Type::TraitObject(_) | Type::Infer(_) | Type::Never(_) => false,
        ty => !mentions(ty.to_token_stream(), "Self"),
    }
}

/// The type as a field can have it: itself, its `'static` form, or nothing.
fn field_type(ty: &Type, generics: &Generics) -> TokenStream {
    let tokens = || ty.to_token_stream();
    let generic = generics.params.iter().any(|param| match param {
        GenericParam::Type(param) => mentions(tokens(), &param.ident.to_string()),
        GenericParam::Const(param) => mentions(tokens(), &param.ident.to_string()),
        GenericParam::Lifetime(_) => false,
    });
    let unnameable = generic || ["Self", "impl"].iter().any(|word| mentions(tokens(), word));
    match bare(ty) {
        Type::Reference(TypeReference { elem, .. }) => match bare(elem) {
            Type::Path(path) if path.path.is_ident("str") => quote!(&'static str),
            _ => quote!(()),
        },
        Type::TraitObject(_)
        | Type::ImplTrait(_)
        | Type::Infer(_)
        | Type::Never(_)
        | Type::FnPtr(_)
        | Type::Ptr(_) => quote!(()),
        _ if unnameable || borrows(tokens()) => quote!(()),
        ty => ty.to_token_stream(),
    }
}

/// Whether a reference or a lifetime stands anywhere within.
fn borrows(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), '&' | '\''),
        TokenTree::Group(group) => borrows(group.stream()),
        _ => false,
    })
}
