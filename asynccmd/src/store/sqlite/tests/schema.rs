use super::*;
use crate::error::{SchemaError, StoreError};

async fn open(options: SqliteConnectOptions) -> SqliteStore {
    SqliteStore::new(
        SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap(),
    )
}

#[tokio::test]
async fn migrations_are_idempotent_and_safe_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(open(options(&dir)).await);
    }
    let all = stores.iter().map(|store| store.migrate());
    for done in futures_util::future::join_all(all).await {
        done.unwrap();
    }
    let first = stores[0].check().await.unwrap();
    stores[1].migrate().await.unwrap();
    assert_eq!(stores[2].check().await.unwrap(), first);
    assert_eq!(first.len(), 32);
    let versions: Vec<i64> =
        sqlx::query_scalar("select version from async_command_migration order by 1")
            .fetch_all(&stores[0].pool)
            .await
            .unwrap();
    assert_eq!(versions, [0, 1]);
    let mut conn = stores[3].pool.acquire().await.unwrap();
    assert_eq!(super::super::migrate::identity(&mut conn).await.unwrap(), Some(first));
}

#[tokio::test]
async fn each_database_has_an_identity_of_its_own() {
    assert_ne!(
        Db::new().await.store.check().await.unwrap(),
        Db::new().await.store.check().await.unwrap()
    );
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let db = Db::new().await;
    sqlx::query("insert into async_command_migration values (99, 'later', 1)")
        .execute(&db.pool)
        .await
        .unwrap();
    let before = std::fs::read(db.dir.path().join("test.db")).unwrap();
    for refused in [db.store.migrate().await, db.store.check().await.map(drop)] {
        let newer = SchemaError::Newer { found: 99, known: 1 };
        assert!(
            matches!(&refused, Err(StoreError::Schema(error)) if *error == newer),
            "{refused:?}"
        );
    }
    assert_eq!(std::fs::read(db.dir.path().join("test.db")).unwrap(), before);
}

#[tokio::test]
async fn missing_and_older_tables_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(options(&dir)).await;
    let missing = store.check().await.unwrap_err();
    assert!(matches!(missing, StoreError::Schema(SchemaError::Missing)), "{missing:?}");
    let mut conn = store.pool.acquire().await.unwrap();
    assert_eq!(super::super::migrate::identity(&mut conn).await.unwrap(), None);
}

#[tokio::test]
async fn a_database_in_memory_takes_submits_but_no_runtime() {
    for url in ["sqlite::memory:", "sqlite:file:shared?mode=memory&cache=shared"] {
        let store = open(url.parse().unwrap()).await;
        store.migrate().await.unwrap();
        assert!(store.insert(&[draft("a")]).await.unwrap()[0].created);
        let refused = store.check().await.unwrap_err();
        assert!(matches!(refused, StoreError::InMemory), "{url}: {refused:?}");
        assert!(!refused.is_transient());
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told() {
    let db = Db::new().await;
    let store = open(options(&db.dir).create_if_missing(false).read_only(true)).await;
    store.migrate().await.expect("there is nothing to migrate");
    for refused in [store.check().await.map(drop), store.insert(&[draft("a")]).await.map(drop)] {
        assert!(matches!(&refused, Err(StoreError::ReadOnly(_))), "{refused:?}");
    }
    assert!(store.list(&Default::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("test.db"), "not a database, but long enough".repeat(100))
        .unwrap();
    let store = SqliteStore::new(SqlitePoolOptions::new().connect_lazy_with(options(&dir)));
    for refused in [
        store.migrate().await,
        store.check().await.map(drop),
        store.insert(&[draft("a")]).await.map(drop),
        store.register(InstanceId::random(), "x", STALL).await.map(drop),
    ] {
        assert!(matches!(&refused, Err(StoreError::Database(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_ends_nothing() {
    let db = Db::new().await;
    db.submit(&drafts("a", 500)).await;
    let round = db.claim("a", 500).await;
    // A copy that nobody has open: everything but its header and schema is overwritten.
    let file = db.dir.path().join("damaged.db");
    sqlx::query("vacuum into ?").bind(file.to_str()).execute(&db.pool).await.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096 * 2..].fill(0x5a);
    std::fs::write(&file, bytes).unwrap();

    let store = open(options(&db.dir).filename(&file)).await;
    let ending = Ending {
        id: round.rows[0].id,
        token: round.token,
        run_no: 1,
        instance: db.me,
        end: success(),
    };
    for refused in [
        store.claim(db.me, Token::random(), &[want(&["a"], 9)]).await.map(drop),
        store.finish(&[&ending], &[(round.token, 1)]).await.map(drop),
        store.recover(&["a"], None, 9).await.map(drop),
        store.census().await.map(drop),
    ] {
        assert!(matches!(&refused, Err(StoreError::Database(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn impossible_states_are_refused_by_the_table() {
    let db = Db::new().await;
    db.submit(&drafts("a", 1)).await;
    for edit in [
        "status = 'DONE'",
        "status = 'RUNNING'",
        "status = 'SUCCESS'",
        "claim_token = randomblob(16)",
        "claimed_by = 1",
        "finished_at = 1",
        "retry_count = -1",
        "run_no = 'many'",
        "unique_key = 'k'",
        "priority = 3",
        "uid = x'00'",
        "payload = null",
    ] {
        let edited = sqlx::query(sqlx::AssertSqlSafe(format!("update async_command set {edit}")))
            .execute(&db.pool)
            .await;
        assert!(edited.is_err(), "{edit}");
    }
}
