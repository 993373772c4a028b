//! What cannot work is said at the start, all of it at once, with place and cure.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, Poll, Pool, Problem, Registry, RuntimeBuilder, SchemaError,
    StartError, Status, StoreError, command,
};

use crate::harness::{Back, Log};
use crate::setting::Setting;

#[command(type = "start.plain", mode = "async_pool")]
async fn plain(#[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, "plain");
    Ok(())
}

#[command(type = "start.plain", mode = "async_pool")]
async fn twin() -> Result<(), CommandError> {
    Ok(())
}

#[command(type = "start.aliased", mode = "async_pool", aliases("start.plain"))]
async fn aliased() -> Result<(), CommandError> {
    Ok(())
}

#[command(type = "start.elsewhere", mode = "immediate", pool = "nowhere")]
async fn elsewhere() -> Result<(), CommandError> {
    Ok(())
}

/// Takes the client, which the runtime has always.
#[command(type = "start.client", mode = "async_pool")]
async fn takes_client(
    #[state] client: Client,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    submit_plain(&client).await?;
    log.add(ctx, "client");
    Ok(())
}

fn plainly() -> Registry {
    Registry::builder().add::<Plain>().build()
}

/// Refused, and nothing of it is left behind.
async fn refused<B: Back>(back: &B, builder: RuntimeBuilder) -> StartError {
    let refused = builder.start().await.expect_err("this cannot start");
    assert_eq!(back.number("select count(*) from async_command_instance").await, 0);
    refused
}

async fn problems<B: Back>(back: &B, builder: RuntimeBuilder) -> (Vec<Problem>, String) {
    match refused(back, builder).await {
        StartError::Registry(error) => (error.problems.clone(), error.to_string()),
        other => panic!("{other}"),
    }
}

/// Two handlers of a type, by name or by alias, with both places.
pub async fn two_handlers_of_a_type_are_refused_with_both_places<B: Back>(back: B) {
    for registry in [
        Registry::builder().add::<Plain>().add::<Twin>().build(),
        Registry::builder().add::<Plain>().add::<Aliased>().build(),
    ] {
        let (found, text) = problems(&back, back.runtime(registry).state(Log::default())).await;
        let [Problem::Duplicate { command_type, places, same_place: false }] = &found[..] else {
            panic!("{text}")
        };
        assert_eq!(command_type, "start.plain");
        assert!(places.iter().all(|place| place.contains("start.rs:") && text.contains(place)));
        assert_ne!(places[0], places[1]);
    }
}

/// A pool that the builder does not know, a state that nobody gave, a type that must be there, a limit
/// on none: all at once.
pub async fn everything_that_is_missing_is_named_at_once<B: Back>(back: B) {
    let registry = Registry::builder().add::<Plain>().add::<Elsewhere>().build();
    let builder = back.runtime(registry).require::<TakesClient>().type_limit("start.nobody", 1);
    let (found, text) = problems(&back, builder).await;
    assert_eq!(found.len(), 4, "{text}");
    for part in [
        "`nowhere`",
        "`start.elsewhere`",
        "Log",
        "`start.plain`",
        "start.rs:",
        "`start.client`",
        "`start.nobody`",
        "Pool::new(\"nowhere\")",
        ".state(",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// No command at all: usually the linker's doing.
pub async fn an_empty_registry_names_cause_and_cure<B: Back>(back: B) {
    let (found, text) = problems(&back, back.runtime(Registry::builder().build())).await;
    assert!(matches!(found[..], [Problem::Empty]));
    assert!(text.contains("use handlers as _;"), "{text}");
}

/// Every setting has a range; the refusal names setting, value and range.
pub async fn a_setting_out_of_range_is_refused<B: Back>(back: B) {
    let builder = || back.runtime(plainly()).state(Log::default());
    let ms = Duration::from_millis;
    let years = Duration::from_secs(366 * 24 * 3600);
    for (builder, setting, value) in [
        (builder().stall_timeout(ms(999)), "stall_timeout", "999ms"),
        (builder().stall_timeout(years), "stall_timeout", "366d"),
        (builder().grace(years), "grace", "366d"),
        (builder().poll(Poll::fixed_delay(ms(9))), "poll", "9ms"),
        (builder().poll(Poll::fixed_rate(Duration::ZERO)), "poll", "0s"),
        (builder().long_running(Duration::ZERO), "long_running", "0s"),
        (builder().name(""), "name", "\"\""),
        (builder().name("x".repeat(129)), "name", "xxx"),
        (builder().pool(Pool::new("")), "pool", "without a name"),
        (builder().pool(Pool::new("a").workers(0)), "pool(Pool::new(\"a\"))", "0 workers"),
        (builder().pool(Pool::new("a").workers(10_001)), "pool(Pool::new(\"a\"))", "10001"),
        (builder().pool(Pool::new("a").threads(0)), "pool(Pool::new(\"a\"))", "0 threads"),
        (builder().pool(Pool::new("a")).pool(Pool::new("a")), "pool", "given twice"),
        (builder().pool(Pool::new("scheduled")), "pool", "given twice"),
        (builder().type_limit("start.plain", 0), "type_limit", "0"),
        (builder().type_limit("start.plain", 1).type_limit("start.plain", 2), "type_limit", "2"),
    ] {
        let StartError::Config(error) = refused(&back, builder).await else { panic!("{setting}") };
        let text = error.to_string();
        assert!(text.contains(setting) && text.contains(value), "{setting} {value}: {text}");
        assert!(text.contains("give"), "{text}");
    }
}

/// Tables of a newer binary, or none: what to do is said, and `migrate` changes nothing of a newer one.
pub async fn strange_tables_are_refused_with_the_cure<B: Back>(back: B) {
    let builder = || back.runtime(plainly()).state(Log::default());
    back.execute("update async_command_migration set version = 99 where version > 0").await;
    let error = refused(&back, builder()).await;
    let StartError::Store(StoreError::Schema(SchemaError::Newer { found: 99, .. })) = error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("99"), "{error}");
    let migrated = asynccmd::migrate(back.database()).await.unwrap_err();
    assert!(matches!(migrated, StoreError::Schema(SchemaError::Newer { found: 99, .. })));
    back.execute("update async_command_migration set version = 1 where version > 0").await;

    back.execute("alter table async_command_migration rename to elsewhere").await;
    let error = refused(&back, builder()).await;
    assert!(matches!(error, StartError::Store(StoreError::Schema(SchemaError::Missing))));
    assert!(error.to_string().contains("asynccmd::migrate"), "{error}");
    back.execute("alter table elsewhere rename to async_command_migration").await;

    builder().start().await.unwrap().shutdown().await;
}

/// On every deploy, by every instance at once, and with commands in the table.
pub async fn a_migration_can_be_repeated_by_many_at_once<B: Back>(back: B) {
    let id = submit_plain(&Client::new(back.database())).await.unwrap().id();
    let migrations = (0..8).map(|_| {
        let database = back.database();
        tokio::spawn(async move { asynccmd::migrate(database).await.unwrap() })
    });
    for migration in migrations.collect::<Vec<_>>() {
        migration.await.unwrap();
    }
    let at = Setting::start(&back, plainly()).await;
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    assert_eq!(
        back.number("select count(*) from async_command_migration where version = 1").await,
        1
    );
    at.end().await;
}

/// The runtime's own client is state of every handler.
pub async fn the_runtimes_client_is_always_there<B: Back>(back: B) {
    let registry = Registry::builder().add::<Plain>().add::<TakesClient>().build();
    let at = Setting::start_with(&back, registry, |builder| builder.require::<Plain>()).await;
    submit_takes_client(&at.client()).await.unwrap();
    at.log.until(2).await;
    at.end().await;
}

/// Several runtimes in one process share the work of one database.
pub async fn runtimes_beside_each_other_share_the_work<B: Back>(back: B) {
    let one = Setting::start(&back, plainly()).await;
    let two = Setting::start(&back, plainly()).await;
    assert_ne!(one.runtime.instance(), two.runtime.instance());
    let (mine, yours) = (one.client(), two.client());
    for _ in 0..50 {
        submit_plain(&mine).await.unwrap();
        submit_plain(&yours).await.unwrap();
    }
    one.drain().await;
    two.drain().await;
    assert_eq!(one.log.entries().len() + two.log.entries().len(), 100, "each once");
    one.end().await;
    two.end().await;
}
