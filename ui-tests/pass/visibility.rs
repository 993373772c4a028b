//! Type, fields and helper are as visible as the function.
#![deny(missing_docs, unused, unreachable_pub)]

mod inner {
    use asynccmd::command;

    #[command(type = "a")]
    pub(crate) async fn shown(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "b")]
    pub(super) async fn shown_above(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "c")]
    pub(in crate::inner) async fn shown_here(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    #[command(type = "d")]
    async fn private(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    pub(crate) fn ids() -> [i64; 2] {
        let _ = (submit_private, submit_shown_here);
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
    let _ = (inner::shown, inner::submit_shown);
    let _ = (inner::shown_above, inner::submit_shown_above);
    assert_eq!(inner::Shown { id: 1 }.id + inner::ShownAbove { id: 2 }.id, 3);
    assert_eq!(inner::ids(), [3, 4]);
    assert_eq!(inner::more(), 5);
}
