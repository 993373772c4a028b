//! Type, fields and helper are as visible as the function.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

mod inner {
    use asynccmd::{Client, command};

    #[command(type = "a")]
    pub(crate) async fn shown(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "b")]
    pub(super) async fn shown_above(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "c")]
    pub(in super::inner) async fn shown_here(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "d")]
    async fn private(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    pub(crate) fn ids() -> [i64; 2] {
        let _ = |client: &Client| {
            drop(submit_private(client, 1));
            drop(submit_shown_here(client, 1));
        };
        [ShownHere { id: 3 }.id, Private { id: 4 }.id]
    }

    mod within {
        pub(super) fn sees_what_is_private_above() -> i64 {
            super::Private { id: 5 }.id
        }
    }

    pub(crate) fn more() -> i64 {
        within::sees_what_is_private_above()
    }
}

fn main() {
    let _ = |client: &asynccmd::Client| {
        drop(inner::submit_shown(client, 1));
        drop(inner::submit_shown_above(client, 1));
    };
    let _ = (inner::shown, inner::shown_above);
    assert_eq!(inner::Shown { id: 1 }.id + inner::ShownAbove { id: 2 }.id, 3);
    assert_eq!(inner::ids(), [3, 4]);
    assert_eq!(inner::more(), 5);
}
