//! `impl Handles`: the constants, the glue, and the registration.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Ident, ReturnType};

use super::command::{Command, mode_value};
use crate::backoff::Backoff;
use crate::check::{Declared, Settings};
use crate::model::{Argument, Model, Role, local, located};

/// The command, if it is declared here, its handler, and the registration of both.
pub(crate) fn registered(model: &Model, settings: &Settings, name: &Ident) -> TokenStream {
    let rt = &model.rt;
    let rest = &model.shared.rest;
    let deprecated = model.shared.allow_deprecated();
    let cfgs: Vec<_> = rest.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let lints: Vec<_> = rest
        .iter()
        .filter(|attr| !attr.path().is_ident("cfg") && !attr.path().is_ident("deprecated"))
        .collect();
    let command = match &settings.declared {
        Some(declared) => Some(implementation(model, settings, declared, name)),
        None => apart(model, name),
    };
    let handled = handled(model, name);
    let spec = spec(model, settings, name);
    quote! {
        #(#cfgs)*
        #deprecated
        #(#lints)*
        const _: () = {
            #command

            impl #rt::Handles for #name {
                type Command = #handled;
                const SPEC: #rt::CommandSpec = #spec;
            }

            #rt::inventory::submit! { #rt::Registration::of::<#name>() }
        };
    }
}

/// The command that the function handles.
fn handled(model: &Model, name: &Ident) -> TokenStream {
    match &model.args.handles {
        Some(path) => path.to_token_stream(),
        None => name.to_token_stream(),
    }
}

fn implementation(
    model: &Model,
    settings: &Settings,
    declared: &Declared,
    name: &Ident,
) -> TokenStream {
    let payload = match model.whole() {
        Some(argument) => argument.ty.to_token_stream(),
        None => name.to_token_stream(),
    };
    let fields = model.having(Role::Field).filter_map(|field| field.name.clone()).collect();
    let command = Command {
        rt: &model.rt,
        name,
        payload,
        declared,
        args: &model.args,
        mode: Some(settings.mode),
        fields,
    };
    command.implementation()
}

/// Asks rustc, at the name of the command, whether that is declared apart.
fn apart(model: &Model, name: &Ident) -> Option<TokenStream> {
    let path = model.args.handles.as_ref()?;
    let span = located(path.segments.last()?.ident.span());
    let rt = model.rt.at(span);
    let message = format!(
        "`{0}` has its handler already; `handles` takes a type with `#[derive(Command)]`",
        path.to_token_stream().to_string().replace(' ', "")
    );
    Some(quote_spanned! {span=>
        const _: () = ::core::assert!(#rt::is_apart::<#name>(), #message);
    })
}

fn spec(model: &Model, settings: &Settings, name: &Ident) -> TokenStream {
    let rt = &model.rt;
    let function = model.function.sig.ident.unraw();
    let label = function.to_string();
    // Spanned at the function's name, which is the place that they then give.
    let location = quote_spanned! {function.span()=>
        (
            match ::core::option_env!("CARGO_PKG_NAME") {
                ::core::option::Option::Some(package) => package,
                ::core::option::Option::None => "",
            },
            ::core::module_path!(),
            ::core::file!(),
            ::core::line!(),
            ::core::column!(),
        )
    };
    let (glue, handler) = glue(model, name);
    let setters = setters(model, settings, name);
    quote! {{
        #glue
        #rt::CommandSpec::of::<#name>(
            #label,
            #rt::Location::new #location,
            #handler,
        )
        #(#setters)*
    }}
}

/// What differs from the default.
fn setters(model: &Model, settings: &Settings, name: &Ident) -> Vec<TokenStream> {
    let (rt, args) = (&model.rt, &model.args);
    let mut setters = Vec::new();
    // The command's own declaration says it otherwise.
    if settings.declared.is_none() {
        let mode = mode_value(rt, settings.mode);
        setters.push(quote!(.mode(#mode)));
    }
    setters.extend(args.pool.as_ref().map(|pool| quote!(.pool(#pool))));
    setters.extend(settings.backoff.as_ref().map(|backoff| {
        let backoff = backoff_value(model, backoff);
        quote!(.backoff(#backoff))
    }));
    setters.extend(args.backoff_fn.as_ref().map(|path| {
        let custom = Ident::new("Custom", located(path.span()));
        quote!(.backoff(#rt::Backoff::#custom(#path)))
    }));
    setters.extend(settings.timeout.map(|millis| {
        let timeout = duration(model, millis);
        quote!(.timeout(#timeout))
    }));
    setters.extend(settings.retention.map(|millis| {
        let retention = duration(model, millis);
        quote!(.retention(#retention))
    }));
    setters.extend(args.compensate.as_ref().map(|path| {
        // Where rustc should say that it is no such command.
        let span = located(path.span());
        let rt = rt.at(span);
        let by = quote_spanned!(span=> #rt::Compensate::by::<#name, #path>());
        quote!(.compensate(#by))
    }));
    let needs = model.having(Role::State).map(|argument| {
        let (ty, cfgs) = (&argument.ty, &argument.cfgs);
        quote!(#(#cfgs)* #rt::StateNeed::of::<#ty>())
    });
    if model.having(Role::State).next().is_some() {
        setters.push(quote!(.needs(const { &[#(#needs),*] })));
    }
    setters
}

fn duration(model: &Model, millis: u64) -> TokenStream {
    let rt = &model.rt;
    quote!(#rt::Duration::from_millis(#millis))
}

fn backoff_value(model: &Model, backoff: &Backoff) -> TokenStream {
    let rt = &model.rt;
    match backoff {
        Backoff::Exponential { base, cap, jitter } => {
            let (base, cap) = (duration(model, *base), duration(model, *cap));
            match jitter {
                None => quote!(#rt::Backoff::exponential(#base, #cap)),
                Some(jitter) => {
                    quote!(#rt::Backoff::Exponential { base: #base, cap: #cap, jitter: #jitter })
                }
            }
        }
        Backoff::Fixed(wait) => {
            let wait = duration(model, *wait);
            quote!(#rt::Backoff::Fixed(#wait))
        }
        Backoff::Steps(steps) => {
            let steps = steps.iter().map(|wait| duration(model, *wait));
            quote!(#rt::Backoff::Steps(const { &[#(#steps),*] }))
        }
    }
}

/// The function between a payload's text and the handler, and the `Handler` that holds it.
fn glue(model: &Model, name: &Ident) -> (TokenStream, TokenStream) {
    let rt = &model.rt;
    let glue = local("glue", Span::call_site());
    let text = local("payload", Span::call_site());
    let ctx = local("ctx", Span::call_site());
    let decode = decode(model, name, &text);
    let states = model.arguments.iter().enumerate().filter(|(_, a)| a.role == Role::State).map(
        |(at, argument)| {
            let (value, ty, cfgs) = (value(at, argument), &argument.ty, &argument.cfgs);
            let state = model.rt.at(located(ty.span()));
            quote!(#(#cfgs)* let #value = #state::state::<#ty>(#ctx)?;)
        },
    );
    let call = call(model);
    if model.function.sig.asyncness.is_some() {
        let life = quote_spanned!(Span::mixed_site()=> 'a);
        let function = quote! {
            fn #glue<#life>(#text: &str, #ctx: &#life #rt::Context) -> #rt::Prepared<#life> {
                #decode
                #(#states)*
                ::core::result::Result::Ok(#call)
            }
        };
        (function, quote!(#rt::Handler::Async(#glue)))
    } else {
        let function = quote! {
            fn #glue(
                #text: &str,
                #ctx: &#rt::Context,
            ) -> ::core::result::Result<#rt::Done, #rt::PrepareError> {
                #decode
                #(#states)*
                ::core::result::Result::Ok(#call)
            }
        };
        (function, quote!(#rt::Handler::Blocking(#glue)))
    }
}

/// The local variable that an argument's value waits in.
fn value(at: usize, argument: &Argument) -> Ident {
    local(&format!("argument_{at}"), argument.ty.span())
}

fn decode(model: &Model, name: &Ident, text: &Ident) -> TokenStream {
    let rt = &model.rt;
    let numbered = || model.arguments.iter().enumerate();
    if model.args.handles.is_some()
        && let Some((at, argument)) = numbered().find(|(_, a)| a.role == Role::Payload)
    {
        let (value, ty) = (value(at, argument), &argument.ty);
        let rt = rt.at(located(ty.span()));
        return quote!(let #value = #rt::decode_for::<#name, #ty>(#text)?;);
    }
    let pattern = match numbered().find(|(_, argument)| argument.role == Role::Payload) {
        Some((at, argument)) => value(at, argument).into_token_stream(),
        None => {
            let fields = numbered().filter(|(_, a)| a.role == Role::Field).map(|(at, argument)| {
                let (field, value, cfgs) = (&argument.name, value(at, argument), &argument.cfgs);
                quote!(#(#cfgs)* #field: #value)
            });
            quote!(#name { #(#fields),* })
        }
    };
    quote!(let #pattern = #rt::decode::<#name>(#text)?;)
}

/// The handler's call inside of what turns its return into an end.
///
/// Every part is placed where rustc should report what is wrong with it: the bound on the return at the
/// return type, and at no call of which it would be an argument; the bound on the future at the function's
/// name; an argument at its type. The return type is not named again: a name in it that is nowhere to be
/// found would be two errors.
fn call(model: &Model) -> TokenStream {
    let sig = &model.function.sig;
    let returned = match &sig.output {
        ReturnType::Type(_, ty) => quote_spanned!(ty.span()=> _),
        ReturnType::Default => quote!(()),
    };
    let arguments = model.arguments.iter().enumerate().map(|(at, argument)| {
        let cfgs = &argument.cfgs;
        if argument.role == Role::Context {
            let ctx = local("ctx", argument.ty.span());
            return quote!(#ctx);
        }
        let value = value(at, argument);
        quote!(#(#cfgs)* #value)
    });
    let function = &sig.ident;
    let call = quote_spanned!(function.span()=> #function(#(#arguments),*));
    let future = quote_spanned!(function.span()=> _);
    let classify = model.args.classify.iter();
    let end = match (sig.asyncness.is_some(), &model.args.classify) {
        (true, None) => quote!(run::<#returned, #future>),
        (true, Some(_)) => quote!(run_classified::<#returned, #future>),
        (false, None) => quote!(done::<#returned>),
        (false, Some(_)) => quote!(done_classified::<#returned>),
    };
    let rt = model.rt.at(located(function.span()));
    let into_end = local("into_end", function.span());
    quote! {{
        let #into_end = #rt::#end;
        #into_end(#call #(, #classify)*)
    }}
}
