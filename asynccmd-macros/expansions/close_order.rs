const _: () = {
    impl ::asynccmd::__rt::Command for CloseOrder {
        type Payload = Self;
        const TYPE: &'static str = "order.close";
        const DECLARATION: ::asynccmd::__rt::Declaration = ::asynccmd::__rt::Declaration::DEFAULT
            .max_retry(3u16)
            .unique(::asynccmd::__rt::Unique::UntilStarted);
        fn biz_key(__asynccmd_payload: &Self::Payload) -> ::asynccmd::__rt::String {
            let mut __asynccmd_key = ::asynccmd::__rt::String::new();
            __asynccmd_key.push_str("order:");
            ::asynccmd::__rt::key_part(&mut __asynccmd_key, &__asynccmd_payload.id);
            __asynccmd_key
        }
    }
};
/// Closes an order.
///
///Submits the command `CloseOrder`. If `to` is a transaction, it exists once that commits.
pub fn submit_close_order<'to>(
    to: impl ::asynccmd::__rt::IntoTarget<'to>,
    __asynccmd_payload: CloseOrder,
) -> ::asynccmd::__rt::Submit<'to, CloseOrder> {
    ::asynccmd::__rt::submit::<CloseOrder>(to, __asynccmd_payload)
}
