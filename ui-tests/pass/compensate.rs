//! What makes up for a command: in another module, for a payload of one's own, declared apart, in a chain.

#![deny(missing_docs, unused, unreachable_pub, clippy::pedantic)]

use asynccmd::{Compensation, Handles as _, command};

/// Undoes.
pub mod undo {
    use asynccmd::{Compensation, command};

    /// Gives the money back, and is made up for itself.
    #[command(type = "order.refund", compensate(Apologize))]
    pub async fn refund(#[payload] dead: Compensation<super::Pay>) -> Result<(), String> {
        Err(format!("{} of order {}", dead.failure.kind, dead.payload.order_id))
    }

    /// The last in the chain.
    #[command(type = "order.apologize")]
    pub async fn apologize(
        #[payload] dead: Compensation<Compensation<super::Pay>>,
    ) -> Result<(), String> {
        Err(dead.payload.payload.order_id.to_string())
    }
}

/// Pays.
#[command(type = "order.pay", compensate(undo::Refund))]
pub async fn pay(order_id: i64) -> Result<(), String> {
    Err(order_id.to_string())
}

/// A payload of one's own.
#[command(type = "list.sort", compensate(r#Unsort))]
pub async fn sort(#[payload] list: Vec<u8>) -> Result<(), String> {
    Err(list.len().to_string())
}

/// And what undoes that.
#[command(type = "list.unsort", biz_key = "{id}")]
pub fn unsort(#[payload] dead: Compensation<Vec<u8>>) -> Result<(), String> {
    Err(dead.payload.len().to_string())
}

/// Declared apart from both.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, asynccmd::Command)]
#[command(type = "stock.reserve")]
pub struct Reserve {
    /// Which.
    pub item: String,
}

/// Its handler says what undoes it.
#[command(handles(Reserve), compensate(Release))]
pub async fn reserve(#[payload] reserve: Reserve) -> Result<(), String> {
    Err(reserve.item)
}

/// A command that somebody else handles.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, asynccmd::Command)]
#[command(type = "stock.release")]
pub struct Release {
    /// Which.
    pub item: String,
}

impl From<Compensation<Reserve>> for Release {
    fn from(dead: Compensation<Reserve>) -> Self {
        Self { item: dead.payload.item }
    }
}

fn main() {
    assert_eq!(format!("{:?}", Pay::SPEC.compensate.unwrap()), "Compensate(\"order.refund\")");
}
