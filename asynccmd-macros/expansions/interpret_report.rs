/// Interprets one lab report.
pub async fn interpret_report(
    report_id: i64,
    locale: String,
    model: Model,
    ctx: &Context,
) -> Result<Summary, AiError> {
    model.read(report_id, &locale, ctx).await
}
/// Interprets one lab report.
///
///This is the payload of the command that `interpret_report` runs.
#[derive(
    ::core::fmt::Debug,
    ::core::clone::Clone,
    ::asynccmd::__rt::serde::Serialize,
    ::asynccmd::__rt::serde::Deserialize,
)]
#[serde(crate = "::asynccmd::__rt::serde")]
pub struct InterpretReport {
    ///The argument `report_id`.
    pub report_id: i64,
    #[serde(default)]
    ///The argument `locale`.
    pub locale: String,
}
const _: () = {
    impl ::asynccmd::__rt::Command for InterpretReport {
        type Payload = InterpretReport;
        const TYPE: &'static str = "report.interpret";
        const DECLARATION: ::asynccmd::__rt::Declaration = ::asynccmd::__rt::Declaration::DEFAULT
            .unique(::asynccmd::__rt::Unique::UntilFinished)
            .mode(::asynccmd::__rt::Mode::Scheduled);
        fn biz_key(__asynccmd_payload: &Self::Payload) -> ::asynccmd::__rt::String {
            let mut __asynccmd_key = ::asynccmd::__rt::String::new();
            __asynccmd_key.push_str("report:");
            ::asynccmd::__rt::key_part(
                &mut __asynccmd_key,
                &__asynccmd_payload.report_id,
            );
            __asynccmd_key
        }
    }
    impl ::asynccmd::__rt::Handles for InterpretReport {
        type Command = InterpretReport;
        const SPEC: ::asynccmd::__rt::CommandSpec = {
            fn __asynccmd_glue<'a>(
                __asynccmd_payload: &str,
                __asynccmd_ctx: &'a ::asynccmd::__rt::Context,
            ) -> ::asynccmd::__rt::Prepared<'a> {
                let InterpretReport {
                    report_id: __asynccmd_argument_0,
                    locale: __asynccmd_argument_1,
                } = ::asynccmd::__rt::decode::<InterpretReport>(__asynccmd_payload)?;
                let __asynccmd_argument_2 = ::asynccmd::__rt::state::<
                    Model,
                >(__asynccmd_ctx)?;
                ::core::result::Result::Ok({
                    let __asynccmd_into_end = ::asynccmd::__rt::run::<_, _>;
                    __asynccmd_into_end(
                        interpret_report(
                            __asynccmd_argument_0,
                            __asynccmd_argument_1,
                            __asynccmd_argument_2,
                            __asynccmd_ctx,
                        ),
                    )
                })
            }
            ::asynccmd::__rt::CommandSpec::of::<
                InterpretReport,
            >(
                    "interpret_report",
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
                .needs(const { &[::asynccmd::__rt::StateNeed::of::<Model>()] })
        };
    }
    ::asynccmd::__rt::inventory::submit! {
        ::asynccmd::__rt::Registration::of:: < InterpretReport > ()
    }
};
/// Interprets one lab report.
///
///Submits the command that `interpret_report` runs. If `to` is a transaction, it exists once that commits.
pub fn submit_interpret_report<'to>(
    to: impl ::asynccmd::__rt::IntoTarget<'to>,
    report_id: i64,
    locale: String,
) -> ::asynccmd::__rt::Submit<'to, InterpretReport> {
    ::asynccmd::__rt::stored::<i64>();
    ::asynccmd::__rt::submit::<
        InterpretReport,
    >(
        to,
        InterpretReport {
            report_id,
            locale,
        },
    )
}
