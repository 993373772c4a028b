//! The attribute as a whole: tokens in, items out.

mod declarations;
mod expansions;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{File, Item};

use crate::attribute;

/// What an expansion has, and what it says.
struct Expanded {
    items: Vec<Item>,
    errors: Vec<String>,
}

impl Expanded {
    fn of(args: TokenStream, item: TokenStream) -> Self {
        Self::read(attribute(args, item))
    }

    fn read(expansion: TokenStream) -> Self {
        let file = unwrapped(expansion);
        let (errors, items): (Vec<_>, Vec<_>) =
            file.items.into_iter().partition(|item| match item {
                Item::Macro(item) => {
                    item.mac.path.segments.last().is_some_and(|last| last.ident == "compile_error")
                }
                _ => false,
            });
        let errors = errors.iter().map(|error| error.to_token_stream().to_string()).collect();
        Self { items, errors }
    }

    fn function(&self, name: &str) -> Option<&syn::ItemFn> {
        self.items.iter().find_map(|item| match item {
            Item::Fn(item) if item.sig.ident == name => Some(item),
            _ => None,
        })
    }

    fn structure(&self, name: &str) -> Option<&syn::ItemStruct> {
        self.items.iter().find_map(|item| match item {
            Item::Struct(item) if item.ident == name => Some(item),
            _ => None,
        })
    }

    fn implements_command(&self, name: &str) -> bool {
        self.implements("Command", name) && self.implements("Handles", name)
    }

    fn implements(&self, what: &str, name: &str) -> bool {
        let wanted = format!("__rt :: {what} for {name} {{");
        self.items.iter().any(|item| item.to_token_stream().to_string().contains(&wanted))
    }
}

/// An expansion with the items that it passes through `__rt::items!`.
fn unwrapped(expansion: TokenStream) -> File {
    let mut file: File = syn::parse2(expansion).expect("an expansion is items");
    let items = std::mem::take(&mut file.items);
    file.items = items
        .into_iter()
        .flat_map(|item| match item {
            Item::Macro(item)
                if item.mac.path.segments.last().is_some_and(|s| s.ident == "items") =>
            {
                syn::parse2::<File>(item.mac.tokens).expect("there are items within").items
            }
            item => vec![item],
        })
        .collect();
    file
}

#[test]
fn a_handler_becomes_four_things() {
    let expanded = Expanded::of(
        quote!(type = "order.pay", mode = "immediate", biz_key = "{order_id}", unique),
        quote! {
            /// Pays.
            pub(crate) async fn pay_order(#[serde(default)] order_id: i64, ctx: &Context) -> Result<(), E> {
                ctx.nothing(order_id)
            }
        },
    );
    assert_eq!(expanded.errors, [""; 0]);
    assert_eq!(expanded.items.len(), 4);
    let function = expanded.function("pay_order").expect("the function");
    assert!(
        function
            .sig
            .inputs
            .iter()
            .all(|input| !input.to_token_stream().to_string().contains("serde"))
    );
    assert_eq!(function.block.to_token_stream().to_string(), "{ ctx . nothing (order_id) }");
    let payload = expanded.structure("PayOrder").expect("the payload");
    let field = payload.fields.iter().next().expect("its field").to_token_stream().to_string();
    assert!(
        field.contains("serde (default)") && field.contains("pub (crate) order_id : i64"),
        "{field}"
    );
    assert!(expanded.implements_command("PayOrder"));
    let helper = expanded.function("submit_pay_order").expect("the helper");
    assert_eq!(helper.sig.inputs.len(), 2);
}

#[test]
fn options_for_payloads_over_time_and_for_boxes_become_code() {
    let text = |args: TokenStream| {
        let item = quote!(
            async fn pay(order_id: i64) -> Result<(), E> {
                body
            }
        );
        let expanded = Expanded::of(args, item);
        assert_eq!(expanded.errors, [""; 0]);
        let items: Vec<_> = expanded.items.iter().map(|item| item.to_token_stream()).collect();
        items.iter().map(|item| item.to_string().replace(' ', "")).collect::<String>()
    };
    let plain = text(quote!(type = "order.pay"));
    for word in [".version(", ".upgrade(", "portable!"] {
        assert!(!plain.contains(word), "{word} in {plain}");
    }
    let all = text(quote!(type = "order.pay", version = 2, upgrade(old::newest), portable));
    for code in [
        ".version(2u32)",
        "__rt::upgrade(old::newest,",
        // The tag is the type's own literal.
        "__rt::portable!{Pay,\"order.pay\"}",
        "constTYPE:&'staticstr=\"order.pay\"",
    ] {
        assert!(all.contains(code), "{code} in {all}");
    }
}

#[test]
fn a_broken_attribute_leaves_function_type_and_helper() {
    let signature = quote!((order_id: i64, currency: String));
    for (args, count) in [
        (quote!(), 1),
        (quote!(type = 5), 1),
        (quote!(type = "A b"), 1),
        (quote!(tpye = "a"), 1),
        (quote!("a"), 1),
        (quote!(type = "a", = , 7), 2),
        (quote!(type = "a" mode = "immediate"), 1),
        (quote!(type = "a", portable = 1, version = 0, upgrade = newest), 3),
        (quote!(type = "a", version = 1, upgrade(newest), compensate = X), 2),
        (quote!(type = "a", type = "b"), 2),
        (quote!(type = "a", classify = judge, backoff_fn), 2),
        (
            quote!(type = "a", pool = "x", max_retry = 0, priority = 1000, timeout = "1", backoff = "no"),
            5,
        ),
        (
            quote!(type = "a", biz_key = "{none}", unique = "always", aliases("a"), retention = "x", mode = "no"),
            5,
        ),
    ] {
        let text = args.to_string();
        let expanded =
            Expanded::of(args, quote!(async fn pay #signature -> Result<(), E> { body }));
        assert_eq!(expanded.errors.len(), count, "{text}: {:#?}", expanded.errors);
        let function = expanded.function("pay").expect(&text);
        assert_eq!(function.block.to_token_stream().to_string(), "{ body }");
        let payload = expanded.structure("Pay").expect(&text);
        assert_eq!(payload.fields.len(), 2, "{text}");
        assert!(expanded.implements_command("Pay"), "{text}");
        let helper = expanded.function("submit_pay").expect(&text).to_token_stream().to_string();
        assert!(helper.contains("order_id : i64 , currency : String"), "{text}: {helper}");
        assert!(helper.contains("Submit < 'to , Pay >"), "{text}: {helper}");
    }
}

#[test]
fn a_broken_signature_leaves_function_type_and_helper() {
    for (item, count) in [
        (
            quote!(
                async fn pay(id: i64, note: &str) -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(
                async fn pay(id: i64, _: String) -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(
                async fn pay(id: i64, (a, b): (u8, u8)) {
                    body
                }
            ),
            2,
        ),
        (
            quote!(
                async fn pay<T: Send>(id: T, ids: Vec<T>) -> Result<(), E> {
                    body
                }
            ),
            1,
        ),
        (
            quote!(
                unsafe extern "C" fn pay(id: impl Send, f: fn()) -> ! {
                    body
                }
            ),
            5,
        ),
        (
            quote!(
                async fn pay(id: Self, #[form] ctx: Vec<&'a str>) -> Result<(), E>
                where
                    E: Send,
                {
                    body
                }
            ),
            4,
        ),
        (
            quote!(
                #[test]
                #[command(type = "b")]
                async fn pay(id: dyn Any, n: i64) -> Result<(), E> {
                    body
                }
            ),
            3,
        ),
        (
            quote!(
                async fn pay(id: i64, n: i64) -> Result<(), E>;
            ),
            1,
        ),
    ] {
        let text = item.to_string();
        let expanded = Expanded::of(quote!(type = "a"), item);
        assert_eq!(expanded.errors.len(), count, "{text}: {:#?}", expanded.errors);
        assert!(expanded.function("pay").is_some(), "{text}");
        assert!(expanded.structure("Pay").is_some(), "{text}");
        assert!(expanded.implements_command("Pay"), "{text}");
        let helper = expanded.function("submit_pay").expect(&text);
        assert_eq!(helper.sig.inputs.len(), 3, "{text}");
    }
}

#[test]
fn what_is_no_function_is_left_as_it_is() {
    for item in [
        quote!(
            pub struct A {
                x: i64,
            }
        ),
        quote!(impl A {}),
        quote!(
            mod m {}
        ),
        quote!(
            const X: i64 = 1;
        ),
        quote!(
            use a::b;
        ),
    ] {
        let expanded = Expanded::of(quote!(type = "a"), item.clone());
        assert_eq!(expanded.errors.len(), 1, "{:#?}", expanded.errors);
        assert_eq!(expanded.items.len(), 1);
        assert_eq!(expanded.items[0].to_token_stream().to_string(), item.to_string());
    }
}
