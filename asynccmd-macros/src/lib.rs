//! skeleton
mod args;
mod backoff;
mod check;
mod duration;
mod errors;
mod expand;
mod fallback;
mod input;
mod model;
mod names;
mod template;

use proc_macro::TokenStream;
use quote::quote;

/// skeleton
#[proc_macro_attribute]
pub fn command(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), item.into()).into()
}

fn attribute(
    args: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = errors::Errors::default();
    let function = input::Function::parse(item.clone(), &mut errors);
    let args = args::Args::parse(args, &mut errors);
    let Some(function) = function else {
        let errors = errors.to_tokens();
        return quote!(#errors #item);
    };
    let model = model::Model::new(function, args);
    match (check::check(&model, &mut errors), &model.payload) {
        (Some(settings), Some(name)) => expand::handler(&model, &settings, name),
        _ => fallback::broken(&model, &errors),
    }
}
