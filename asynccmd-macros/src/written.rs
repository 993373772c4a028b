//! One option as it is written, and its value in the form that the option takes.
//!
//! Literals stand behind `=`, types and paths in parentheses. What is written in another form is read as
//! well as it can be, so that the error says what to write with the user's own words.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, Lit, LitInt, LitStr, Path, Token};

/// A whole number as written.
pub(crate) struct Number {
    pub tokens: TokenStream,
    /// None if it fits no `i64`.
    pub value: Option<i64>,
}

/// One option as it stands between two commas.
pub(crate) struct Written {
    pub name: Ident,
    pub value: Value,
}

pub(crate) enum Value {
    Nothing,
    /// What stands behind `=`.
    Assigned(TokenStream),
    /// What stands in parentheses.
    Listed(Group),
    /// What begins with neither.
    Strange(TokenTree),
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(error.span(), "expected an option, as in `type = \"order.pay\"`")
        })?;
        if input.is_empty() {
            return Ok(Self { name, value: Value::Nothing });
        }
        if input.peek(Token![=]) {
            let _: Token![=] = input.parse()?;
            return Ok(Self { name, value: Value::Assigned(input.parse()?) });
        }
        let value = match input.parse()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                Value::Listed(group)
            }
            other => {
                let _: TokenStream = input.parse()?;
                return Ok(Self { name, value: Value::Strange(other) });
            }
        };
        match input.parse::<Option<TokenTree>>()? {
            None => Ok(Self { name, value }),
            Some(other) => {
                let _: TokenStream = input.parse()?;
                Err(unexpected(&name, &other))
            }
        }
    }
}

fn unexpected(name: &Ident, token: &TokenTree) -> syn::Error {
    syn::Error::new(token.span(), format!("expected `,` behind `{}`", name.unraw()))
}

impl Written {
    fn wrong(&self, tokens: impl ToTokens, what: &str, example: &str) -> syn::Error {
        syn::Error::new_spanned(
            tokens,
            format!("`{}` takes {what}; write `{example}`", self.name.unraw()),
        )
    }

    /// The value behind `=`, or an error where it stands or should stand.
    pub(crate) fn assigned<T: Parse>(&self, what: &str, example: &str) -> syn::Result<T> {
        let Value::Assigned(tokens) = &self.value else {
            return Err(self.wrong(&self.name, &format!("{what} behind `=`"), example));
        };
        let blame = if tokens.is_empty() { self.name.to_token_stream() } else { tokens.clone() };
        let parser = |input: ParseStream<'_>| -> syn::Result<(T, TokenStream)> {
            Ok((input.parse()?, input.parse()?))
        };
        let (value, behind) =
            parser.parse2(tokens.clone()).map_err(|_| self.wrong(blame, what, example))?;
        match behind.into_iter().next() {
            None => Ok(value),
            Some(token) => Err(unexpected(&self.name, &token)),
        }
    }

    /// The option itself, which takes no value.
    pub(crate) fn word(self, example: &str) -> syn::Result<Ident> {
        match &self.value {
            Value::Nothing => Ok(self.name),
            Value::Assigned(tokens) if !tokens.is_empty() => {
                Err(self.wrong(tokens, "no value", example))
            }
            Value::Assigned(_) | Value::Strange(_) => {
                Err(self.wrong(&self.name, "no value", example))
            }
            Value::Listed(group) => Err(self.wrong(group, "no value", example)),
        }
    }

    pub(crate) fn text(&self, example: &str) -> syn::Result<LitStr> {
        let quoted = self.quoted();
        self.assigned("a string", quoted.as_deref().unwrap_or(example))
    }

    /// The option with its value as a string, if what was written is a word, a string in parentheses or
    /// a number with a unit.
    fn quoted(&self) -> Option<String> {
        let tokens = match &self.value {
            Value::Assigned(tokens) => tokens.clone(),
            Value::Listed(group) => group.stream(),
            Value::Nothing | Value::Strange(_) => return None,
        };
        let text = match syn::parse2::<Ident>(tokens.clone()) {
            Ok(word) => Some(word.to_string()).filter(|word| *word == word.to_lowercase())?,
            Err(_) => match syn::parse2::<Lit>(tokens).ok()? {
                Lit::Str(text) => text.value(),
                Lit::Int(number) if !number.suffix().is_empty() => number.to_string(),
                _ => return None,
            },
        };
        Some(format!("{} = {text:?}", self.name.unraw()))
    }

    pub(crate) fn number(&self, example: &str) -> syn::Result<Number> {
        struct Signed(Option<Token![-]>, LitInt);
        impl Parse for Signed {
            fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
                Ok(Self(input.parse()?, input.parse()?))
            }
        }
        let Signed(minus, digits) = self.assigned("a whole number", example)?;
        let value = digits.base10_parse::<i64>().ok().map(|value| match minus {
            Some(_) => -value,
            None => value,
        });
        Ok(Number { tokens: quote!(#minus #digits), value })
    }

    /// What stands in the parentheses.
    pub(crate) fn inner<P: Parser + Copy>(
        &self,
        parser: P,
        example: &str,
    ) -> syn::Result<P::Output> {
        let what = "its value in parentheses";
        let instead = |tokens: &TokenStream| {
            let fits = |tokens: &TokenStream| parser.parse2(tokens.clone()).is_ok();
            match forms(tokens).into_iter().find(fits) {
                Some(value) => format!("{}({})", self.name.unraw(), compact(&value)),
                None => example.to_owned(),
            }
        };
        match &self.value {
            Value::Listed(group) if !group.stream().is_empty() => {
                let (what, tokens) = ("another value in its parentheses", group.stream());
                parser
                    .parse2(tokens.clone())
                    .map_err(|_| self.wrong(&tokens, what, &instead(&tokens)))
            }
            Value::Listed(group) => Err(self.wrong(group, what, example)),
            Value::Assigned(tokens) if !tokens.is_empty() => {
                Err(self.wrong(tokens, what, &instead(tokens)))
            }
            _ => Err(self.wrong(&self.name, what, example)),
        }
    }

    pub(crate) fn path(&self, example: &str) -> syn::Result<Path> {
        // In the style of an expression, so that generic functions are written as they are called.
        self.inner(|input: ParseStream<'_>| Ok(input.parse::<syn::ExprPath>()?.path), example)
    }

    pub(crate) fn texts(&self, example: &str) -> syn::Result<Vec<LitStr>> {
        let texts = self.inner(Punctuated::<LitStr, Token![,]>::parse_terminated, example)?;
        Ok(texts.into_iter().collect())
    }
}

/// A value, and what it is without the quotes or the brackets that other macros ask for.
fn forms(tokens: &TokenStream) -> Vec<TokenStream> {
    let mut forms = vec![tokens.clone()];
    match syn::parse2::<TokenTree>(tokens.clone()) {
        Ok(TokenTree::Group(group)) => forms.push(group.stream()),
        Ok(TokenTree::Literal(literal)) => {
            let text = syn::parse2::<LitStr>(TokenTree::from(literal).into());
            forms.extend(text.ok().and_then(|text| text.value().parse().ok()));
        }
        _ => {}
    }
    forms
}

/// Tokens as text, without the spaces that printing puts between them.
fn compact(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}
