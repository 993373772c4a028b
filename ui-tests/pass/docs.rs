//! A public command needs no docs but its own, and passes on its lint levels and its deprecation.
#![deny(missing_docs, deprecated, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

/// Commands.
pub mod commands {
    use asynccmd::command;

    /// Pays an order.
    ///
    /// It is paid once.
    #[command(type = "order.pay")]
    pub async fn pay_order(
        /// The order's number.
        order_id: i64,
        amount: u64,
    ) -> Result<u64, String> {
        Ok(amount + order_id.unsigned_abs())
    }

    /// Has eight arguments.
    #[command(type = "wide")]
    #[expect(clippy::too_many_arguments, reason = "it is what is tested")]
    pub async fn wide(
        one: u8,
        two: u8,
        three: u8,
        four: u8,
        five: u8,
        six: u8,
        seven: u8,
        eight: u8,
    ) -> Result<u8, String> {
        Ok([one, two, three, four, five, six, seven, eight].iter().sum())
    }

    /// Is not used any more.
    #[command(type = "old", unique, biz_key = "{id}")]
    #[deprecated(note = "use `pay_order`")]
    pub async fn old(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    /// Is not used any more, and keeps its payload elsewhere.
    #[command(type = "older")]
    #[deprecated]
    #[allow(clippy::unused_async, clippy::missing_errors_doc, reason = "it is what is tested")]
    pub async fn older(#[payload] order: u64) -> Result<u64, String> {
        Ok(order)
    }

    #[doc(hidden)]
    #[command(type = "bad_name")]
    #[allow(non_snake_case, reason = "it is what is tested")]
    pub async fn not_Snake(Camel_: i64) -> Result<i64, String> {
        Ok(Camel_)
    }
}

fn main() {
    let _ = (commands::wide, commands::pay_order, commands::not_Snake);
    let payload =
        commands::Wide { one: 1, two: 1, three: 1, four: 1, five: 1, six: 1, seven: 1, eight: 1 };
    assert_eq!(payload.clone().eight, 1);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 5);
}
