pub(crate) async fn ship(order: shop::Order) -> Result<Outcome<()>, String> {
    Ok(Outcome::Success(()))
}
///This stands for the command that `ship` runs.
#[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
pub(crate) struct Ship;
const _: () = {
    impl ::asynccmd::__rt::Command for Ship {
        type Payload = shop::Order;
        const TYPE: &'static str = "order.ship";
        const DECLARATION: ::asynccmd::__rt::Declaration = ::asynccmd::__rt::Declaration::DEFAULT
            .mode(::asynccmd::__rt::Mode::Scheduled);
        fn biz_key(__asynccmd_payload: &Self::Payload) -> ::asynccmd::__rt::String {
            let mut __asynccmd_key = ::asynccmd::__rt::String::new();
            ::asynccmd::__rt::key_part(&mut __asynccmd_key, &__asynccmd_payload.id);
            __asynccmd_key
        }
    }
    impl ::asynccmd::__rt::Handles for Ship {
        type Command = Ship;
        const SPEC: ::asynccmd::__rt::CommandSpec = {
            fn __asynccmd_glue<'a>(
                __asynccmd_payload: &str,
                __asynccmd_ctx: &'a ::asynccmd::__rt::Context,
            ) -> ::asynccmd::__rt::Prepared<'a> {
                let __asynccmd_argument_0 = ::asynccmd::__rt::decode::<
                    Ship,
                >(__asynccmd_payload)?;
                ::core::result::Result::Ok({
                    let __asynccmd_into_end = ::asynccmd::__rt::run::<_, _>;
                    __asynccmd_into_end(ship(__asynccmd_argument_0))
                })
            }
            ::asynccmd::__rt::CommandSpec::of::<
                Ship,
            >(
                "ship",
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
        };
    }
    ::asynccmd::__rt::inventory::submit! {
        ::asynccmd::__rt::Registration::of:: < Ship > ()
    }
};
///Submits the command that `ship` runs. If `to` is a transaction, it exists once that commits.
pub(crate) fn submit_ship<'to>(
    to: impl ::asynccmd::__rt::IntoTarget<'to>,
    order: shop::Order,
) -> ::asynccmd::__rt::Submit<'to, Ship> {
    ::asynccmd::__rt::submit::<Ship>(to, order)
}
