//! Types with `#[derive(Command)]`, and handlers with `handles`.

use quote::{ToTokens, quote};

use super::Expanded;
use crate::{attribute, derive};

#[test]
fn a_declaration_gets_two_things() {
    let expanded = Expanded::read(derive(quote! {
        #[derive(Command)]
        #[command(type = "order.pay", biz_key = "{id}", aliases("order.charge"))]
        pub(crate) struct PayOrder {
            id: i64,
        }
    }));
    assert_eq!(expanded.errors, [""; 0]);
    assert!(expanded.implements("Command", "PayOrder"));
    assert!(!expanded.implements("Handles", "PayOrder"));
    let helper = expanded.function("submit_pay_order").expect("the helper");
    assert_eq!(helper.vis.to_token_stream().to_string(), "pub (crate)");
    assert_eq!(helper.sig.inputs.len(), 2);
}

#[test]
fn what_is_the_payloads_is_declared() {
    let text = derive(quote! {
        #[command(type = "a", version = 2, upgrade(old::newest), portable)]
        struct Pay {
            id: i64,
        }
    });
    let text = text.to_string().replace(' ', "");
    for code in [".version(2u32)", "__rt::upgrade(old::newest,", "__rt::portable!{Pay,\"a\"}"] {
        assert!(text.contains(code), "{code} in {text}");
    }
}

#[test]
fn a_broken_declaration_leaves_command_and_helper() {
    for (options, count) in [
        (quote!(), 1),
        (quote!(#[command]), 1),
        (quote!(#[command()]), 1),
        (quote!(#[command(type = "A b")]), 1),
        (quote!(#[command(tpye = "a")]), 1),
        (quote!(#[command(type = "a", pool = "x", timeout = "1")]), 2),
        (quote!(#[command(type = "a", payload(Name))]), 1),
        (quote!(#[command(type = "a", handles(X))]), 1),
        (quote!(#[command(type = "a", compensate(X))]), 1),
        (quote!(#[command(type = "a", biz_key = "{none}", max_retry = 0, aliases("a"))]), 3),
        (quote!(#[command(type = "a")] #[command(unique)]), 1),
        (quote!(#[command(type = "a", unique)]), 1),
    ] {
        let text = options.to_string();
        let expanded = Expanded::read(derive(quote!(#options pub struct Pay { id: i64 })));
        assert_eq!(expanded.errors.len(), count, "{text}: {:#?}", expanded.errors);
        assert!(expanded.implements("Command", "Pay"), "{text}");
        let helper = expanded.function("submit_pay").expect(&text).to_token_stream().to_string();
        assert!(helper.contains("Submit < 'to , Pay >"), "{text}: {helper}");
    }
}

#[test]
fn a_handler_of_a_declared_command_has_a_marker_and_no_helper() {
    for (args, item, count) in [
        (
            quote!(handles(a::X)),
            quote!(
                async fn f(#[payload] x: X) -> Result<(), E> {
                    body
                }
            ),
            0,
        ),
        (
            quote!(handles(X), type = "a", biz_key = "{x}"),
            quote!(
                fn f(#[payload] x: X) -> Result<(), E> {
                    body
                }
            ),
            2,
        ),
        (
            quote!(handles(X), payload(Y)),
            quote!(
                fn f(#[payload] x: X) -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(handles(X)),
            quote!(
                fn f(id: i64) -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(handles(X)),
            quote!(
                fn f() -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(handles(X), mode = "no", timeout = "0s"),
            quote!(
                async fn f(#[payload] x: X) {
                    body
                }
            ),
            3,
        ),
    ] {
        let text = format!("{args} {item}");
        let expanded = Expanded::read(attribute(args, item));
        assert_eq!(expanded.errors.len(), count, "{text}: {:#?}", expanded.errors);
        assert!(expanded.function("f").is_some(), "{text}");
        assert!(expanded.structure("XHandler").is_some(), "{text}");
        assert!(expanded.implements("Handles", "XHandler"), "{text}");
        assert!(!expanded.implements("Command", "XHandler"), "{text}");
        assert!(expanded.function("submit_f").is_none(), "{text}");
    }
}
