//! Every case on PostgreSQL behind PgBouncer, whose few sessions all clients of a database share.

use asynccmd::{CommandError, Registry, Runtime, StartError, command};
use asynccmd_tests::harness::{Back as _, OnPgBouncer};

asynccmd_tests::conformance!(asynccmd_tests::harness::OnPgBouncer);

#[command(type = "pgbouncer.idle", mode = "async_pool")]
async fn idle() -> Result<(), CommandError> {
    Ok(())
}

/// What stands behind the other cases: PgBouncer does not take what asynccmd asks of a session.
#[tokio::test]
async fn a_pooler_that_asynccmd_is_not_told_of_refuses_its_sessions() {
    let back = OnPgBouncer::create().await;
    let pool = back.pool_of(2).await;
    let start = |database| {
        Runtime::builder(database).registry(Registry::builder().add::<Idle>().build()).start()
    };
    let Err(StartError::Store(refused)) = start((&pool).into()).await else {
        panic!("it started");
    };
    let said = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(said.contains("unsupported startup parameter"), "{refused}: {said}");
    start(OnPgBouncer::database_of(&pool)).await.unwrap().shutdown().await;
}
