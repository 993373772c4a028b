#[cfg(feature = "pay")]
#[expect(clippy::too_many_lines)]
fn r#pay(r#type: String) -> Result<(), PayError> {
    bank(r#type)
}
///This is the payload of the command that `pay` runs.
#[cfg(feature = "pay")]
#[allow(clippy::too_many_lines)]
#[derive(
    ::core::fmt::Debug,
    ::core::clone::Clone,
    ::asynccmd::__rt::serde::Serialize,
    ::asynccmd::__rt::serde::Deserialize,
)]
#[serde(crate = "::asynccmd::__rt::serde")]
struct Pay {
    ///The argument `type`.
    r#type: String,
}
#[cfg(feature = "pay")]
#[allow(clippy::too_many_lines)]
const _: () = {
    impl ::asynccmd::__rt::Command for Pay {
        type Payload = Pay;
        const TYPE: &'static str = "order.pay";
        const DECLARATION: ::asynccmd::__rt::Declaration = ::asynccmd::__rt::Declaration::DEFAULT
            .aliases(&["order.charge"])
            .max_retry(7u16)
            .priority(-5i8)
            .mode(::asynccmd::__rt::Mode::AsyncPool);
    }
    impl ::asynccmd::__rt::Handles for Pay {
        type Command = Pay;
        const SPEC: ::asynccmd::__rt::CommandSpec = {
            fn __asynccmd_glue(
                __asynccmd_payload: &str,
                __asynccmd_ctx: &::asynccmd::__rt::Context,
            ) -> ::core::result::Result<
                ::asynccmd::__rt::Done,
                ::asynccmd::__rt::PrepareError,
            > {
                let Pay { r#type: __asynccmd_argument_0 } = ::asynccmd::__rt::decode::<
                    Pay,
                >(__asynccmd_payload)?;
                ::core::result::Result::Ok({
                    let __asynccmd_into_end = ::asynccmd::__rt::done_classified::<_>;
                    __asynccmd_into_end(r#pay(__asynccmd_argument_0), judge)
                })
            }
            ::asynccmd::__rt::CommandSpec::of::<
                Pay,
            >(
                    "pay",
                    ::asynccmd::__rt::Location::new(
                        match ::core::option_env!("CARGO_PKG_NAME") {
                            ::core::option::Option::Some(package) => package,
                            ::core::option::Option::None => "",
                        },
                        ::core::module_path!(),
                        ::core::file!(),
                        ::core::line!(),
                        ::core::column!(),
                    ),
                    ::asynccmd::__rt::Handler::Blocking(__asynccmd_glue),
                )
                .pool("bank")
                .backoff(::asynccmd::__rt::Backoff::Exponential {
                    base: ::asynccmd::__rt::Duration::from_millis(5000u64),
                    cap: ::asynccmd::__rt::Duration::from_millis(3600000u64),
                    jitter: 0.5f64,
                })
                .retention(::asynccmd::__rt::Duration::from_millis(604800000u64))
        };
    }
    ::asynccmd::__rt::inventory::submit! {
        ::asynccmd::__rt::Registration::of:: < Pay > ()
    }
};
///Submits the command that `pay` runs. If `to` is a transaction, it exists once that commits.
#[cfg(feature = "pay")]
#[allow(clippy::too_many_lines)]
fn submit_pay<'to>(
    to: impl ::asynccmd::__rt::IntoTarget<'to>,
    r#type: String,
) -> ::asynccmd::__rt::Submit<'to, Pay> {
    ::asynccmd::__rt::stored::<String>();
    ::asynccmd::__rt::submit::<Pay>(to, Pay { r#type })
}
