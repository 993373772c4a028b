//! Whole expansions, held as files in `expansions/`, as a reviewer would read them.
//!
//! To renew them run with `ASYNCCMD_EXPANSIONS=overwrite`, and read what changes.

use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;

use super::unwrapped;
use crate::{attribute, derive};

fn held(name: &str, expansion: TokenStream) {
    let found = prettyplease::unparse(&unwrapped(expansion));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("expansions").join(name);
    if std::env::var_os("ASYNCCMD_EXPANSIONS").is_some_and(|mode| mode == "overwrite") {
        std::fs::write(&path, &found).expect("the file can be written");
        return;
    }
    let wanted = std::fs::read_to_string(&path).expect("the file is there");
    if let Some((line, (found, wanted))) =
        found.lines().zip(wanted.lines()).enumerate().find(|(_, (found, wanted))| found != wanted)
    {
        panic!("expansions/{name}:{}\nwanted: {wanted}\nfound:  {found}", line + 1);
    }
    assert_eq!(found, wanted, "expansions/{name} is longer, or shorter");
}

#[test]
fn an_async_function_with_state_context_and_key() {
    let args = quote!(type = "report.interpret", biz_key = "report:{report_id}", unique);
    let item = quote! {
        /// Interprets one lab report.
        pub async fn interpret_report(
            report_id: i64,
            #[serde(default)] locale: String,
            #[state] model: Model,
            ctx: &Context,
        ) -> Result<Summary, AiError> {
            model.read(report_id, &locale, ctx).await
        }
    };
    held("interpret_report.rs", attribute(args, item));
}

#[test]
fn a_plain_function_with_options() {
    let args = quote! {
        type = "order.pay",
        mode = "async_pool",
        pool = "bank",
        max_retry = 7,
        backoff = "exponential(5s, 1h, jitter = 0.5)",
        priority = -5,
        aliases("order.charge"),
        retention = "7d",
        classify(judge)
    };
    let item = quote! {
        #[cfg(feature = "pay")]
        #[expect(clippy::too_many_lines)]
        fn r#pay(r#type: String) -> Result<(), PayError> {
            bank(r#type)
        }
    };
    held("pay.rs", attribute(args, item));
}

#[test]
fn a_handler_with_a_payload_from_elsewhere() {
    let item = quote! {
        pub(crate) async fn ship(#[payload] order: shop::Order) -> Result<Outcome<()>, String> {
            Ok(Outcome::Success(()))
        }
    };
    held("ship.rs", attribute(quote!(type = "order.ship", biz_key = "{id}"), item));
}

#[test]
fn a_declaration_and_its_handler() {
    let declaration = quote! {
        /// Closes an order.
        #[command(type = "order.close", biz_key = "order:{id}", unique = "until_started", max_retry = 3)]
        pub struct CloseOrder {
            pub id: i64,
            note: String,
        }
    };
    held("close_order.rs", derive(declaration));
    let args = quote!(handles(shop::CloseOrder), mode = "immediate", timeout = "30s");
    let handler = quote! {
        async fn close(#[payload] order: CloseOrder, #[state] bank: Bank) -> Result<(), BankError> {
            bank.close(order).await
        }
    };
    held("close.rs", attribute(args, handler));
}
