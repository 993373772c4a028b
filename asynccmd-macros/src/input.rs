//! The annotated item: signature parsed, body kept as tokens.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Ident, Signature, Token, Visibility};

use crate::errors::Errors;

/// A function as it was written.
#[derive(Clone)]
pub(crate) struct Function {
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub sig: Signature,
    /// The block with its braces; nothing for `fn f();`.
    pub body: TokenStream,
}

impl Function {
    /// Reads an item; anything but a function is an error on its keyword.
    pub(crate) fn parse(item: TokenStream, errors: &mut Errors) -> Option<Self> {
        let function = errors.keep(Self::parser.parse2(item))?;
        if function.body.is_empty() {
            errors.on(
                &function.sig.ident,
                "this function has no body, so there is nothing to run; write `{ … }`",
            );
        }
        Some(function)
    }

    fn parser(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        if !is_function(input) {
            let (span, found) = keyword(input);
            let _: TokenStream = input.parse()?;
            let instead = match found.as_str() {
                "a `struct`" | "an `enum`" => {
                    "; to declare a command apart from its handler, write `#[derive(Command)]` above this"
                }
                _ => "",
            };
            return Err(syn::Error::new(
                span,
                format!("`#[command]` goes on a free function, not on {found}{instead}"),
            ));
        }
        let sig = input.parse()?;
        let mut body: TokenStream = input.parse()?;
        let has_block = body.clone().into_iter().any(
            |token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
        );
        if !has_block {
            body = TokenStream::new();
        }
        Ok(Self { attrs, vis, sig, body })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, sig, body } = self;
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

fn is_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    let qualifiers = |input: ParseStream<'_>| -> syn::Result<()> {
        let _: Option<Token![const]> = input.parse()?;
        let _: Option<Token![async]> = input.parse()?;
        let _: Option<Token![unsafe]> = input.parse()?;
        let _: Option<syn::Abi> = input.parse()?;
        Ok(())
    };
    qualifiers(&ahead).is_ok() && ahead.peek(Token![fn])
}

/// The item's keyword and its name in a sentence.
fn keyword(input: ParseStream<'_>) -> (Span, String) {
    let ahead = input.fork();
    let Ok(word) = ahead.call(Ident::parse_any) else {
        return (input.span(), "this".into());
    };
    let found = match word.to_string().as_str() {
        word @ ("impl" | "enum") => format!("an `{word}`"),
        "mod" => "a module".into(),
        word => format!("a `{word}`"),
    };
    (word.span(), found)
}
