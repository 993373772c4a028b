async fn close(order: CloseOrder, bank: Bank) -> Result<(), BankError> {
    bank.close(order).await
}
///This stands for the handler `close`.
struct CloseOrderHandler;
const _: () = {
    const _: () = ::core::assert!(
        ::asynccmd::__rt::is_apart:: < CloseOrderHandler > (),
        "`shop::CloseOrder` has its handler already; `handles` takes a type with `#[derive(Command)]`"
    );
    impl ::asynccmd::__rt::Handles for CloseOrderHandler {
        type Command = shop::CloseOrder;
        const SPEC: ::asynccmd::__rt::CommandSpec = {
            fn __asynccmd_glue<'a>(
                __asynccmd_payload: &str,
                __asynccmd_ctx: &'a ::asynccmd::__rt::Context,
            ) -> ::asynccmd::__rt::Prepared<'a> {
                let __asynccmd_argument_0 = ::asynccmd::__rt::decode_for::<
                    CloseOrderHandler,
                    CloseOrder,
                >(__asynccmd_payload)?;
                let __asynccmd_argument_1 = ::asynccmd::__rt::state::<
                    Bank,
                >(__asynccmd_ctx)?;
                ::core::result::Result::Ok({
                    let __asynccmd_into_end = ::asynccmd::__rt::run::<_, _>;
                    __asynccmd_into_end(
                        close(__asynccmd_argument_0, __asynccmd_argument_1),
                    )
                })
            }
            ::asynccmd::__rt::CommandSpec::of::<
                CloseOrderHandler,
            >(
                    "close",
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
                    ::asynccmd::__rt::Handler::Async(__asynccmd_glue),
                )
                .mode(::asynccmd::__rt::Mode::Immediate)
                .timeout(::asynccmd::__rt::Duration::from_millis(30000u64))
                .needs(const { &[::asynccmd::__rt::StateNeed::of::<Bank>()] })
        };
    }
    ::asynccmd::__rt::inventory::submit! {
        ::asynccmd::__rt::Registration::of:: < CloseOrderHandler > ()
    }
};
