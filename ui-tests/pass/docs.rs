//! A public command needs no docs but its own, and passes on its lint levels and its deprecation.
#![deny(missing_docs, unused, deprecated, unreachable_pub, clippy::all, clippy::pedantic)]

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
    pub fn wide(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8) -> Result<u8, String> {
        Ok([a, b, c, d, e, f, g, h].iter().sum())
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
    #[allow(clippy::unused_async, reason = "it is what is tested")]
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
    let payload = commands::Wide { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1 };
    assert_eq!(payload.clone().h, 1);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 5);
}
