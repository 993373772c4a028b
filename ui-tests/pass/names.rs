//! No name of the user's meets one of the macro's.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]
#![allow(non_upper_case_globals, reason = "it is what is tested")]

use asynccmd::{Client, Command, Context, Submit, command};

const payload: &str = "a constant, where a pattern could take it for one";
static ctx: i32 = 7;
const argument_0: u8 = 0;
const glue: u8 = 0;

#[command(type = "a", biz_key = "{to}{text}{context}{argument_1}")]
async fn taken(
    to: i64,
    text: i64,
    context: i64,
    argument_1: i64,
    attempt: &Context,
) -> Result<i64, String> {
    let _ = attempt;
    Ok(to + text + context + argument_1)
}

#[command(type = "b")]
async fn spec(r#type: i64, name: i64, key: i64) -> Result<i64, String> {
    Ok(r#type + name + key)
}

mod shadows {
    #![allow(dead_code, reason = "it is there to be in the way")]
    #![allow(non_camel_case_types, reason = "it is what is tested")]
    struct Option;
    struct Result;
    struct String;
    struct Vec;
    struct Duration;
    struct Into;
    trait Send {}
    trait Clone {}
    mod core {}
    mod std {}
    mod asynccmd {}

    #[::asynccmd::command(
        type = "c",
        max_retry = 3,
        timeout = "1s",
        biz_key = "{id}",
        backoff = "steps(1s)",
        aliases("cc")
    )]
    pub(super) async fn shadowed(
        id: ::core::primitive::i64,
        #[state] rate: ::core::primitive::f64,
    ) -> ::std::result::Result<(), ::std::string::String> {
        let _ = (id, rate);
        ::std::result::Result::Ok(())
    }
}

fn submits(client: &Client) -> Submit<'_, Taken> {
    let to = 1;
    submit_taken(client, to, 2, 3, 4)
}

fn main() {
    #[command(type = "d")]
    async fn within(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    let key = Taken { to: 1, text: 2, context: 3, argument_1: 4 };
    assert_eq!(Taken::biz_key(&key), "1234");
    let _ = (payload, ctx, argument_0, taken, glue, spec, submits, within);
    let _ = |client: &Client| {
        drop(submit_within(client, 1));
        drop(submit_spec(client, 1, 2, 3));
        drop(shadows::submit_shadowed(client, 1));
    };
    let _ = shadows::shadowed;
    assert_eq!(asynccmd::Registry::collect().specs().len(), 4);
}
