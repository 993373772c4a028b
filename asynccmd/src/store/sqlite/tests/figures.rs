//! What the store costs. Run by hand: figures of a machine are no test of the code, except for the
//! plans, which must not depend on the size of the table.
//!
//! `cargo test -p asynccmd --lib figures -- --ignored --nocapture --test-threads 1`

use std::time::Instant;

use super::*;

/// The texts that run while a table is large must walk no more of it than they name.
#[tokio::test]
async fn hot_statements_scan_no_table() {
    let db = Db::new().await;
    for (name, sql) in [
        ("claim_probe", include_str!("../sql/claim_probe.sql")),
        ("claim_due", include_str!("../sql/claim_due.sql")),
        ("claim_ids", include_str!("../sql/claim_ids.sql")),
        ("claim_suspect", include_str!("../sql/claim_suspect.sql")),
        ("suspect_probe", include_str!("../sql/suspect_probe.sql")),
        ("suspect_dead", include_str!("../sql/suspect_dead.sql")),
        ("suspect_failure", include_str!("../sql/suspect_failure.sql")),
        ("finish_success", include_str!("../sql/finish_success.sql")),
        ("finish_delete", include_str!("../sql/finish_delete.sql")),
        ("finish_delete_rows", include_str!("../sql/finish_delete_rows.sql")),
        ("finish_output", include_str!("../sql/finish_output.sql")),
        ("finish_rows", include_str!("../sql/finish_rows.sql")),
        ("failures_delete", include_str!("../sql/failures_delete.sql")),
        ("insert_existing", include_str!("../sql/insert_existing.sql")),
        ("cancel_key", include_str!("../sql/cancel_key.sql")),
        ("held", include_str!("../sql/held.sql")),
        ("progress", include_str!("../sql/progress.sql")),
        ("receipt_drop", include_str!("../sql/receipt_drop.sql")),
        ("recover_failures", include_str!("../sql/recover_failures.sql")),
        ("recover_rows", include_str!("../sql/recover_rows.sql")),
        ("sweep_probe", include_str!("../sql/sweep_probe.sql")),
        ("sweep_delete", include_str!("../sql/sweep_delete.sql")),
        ("pending_types", include_str!("../sql/pending_types.sql")),
        ("due_and_running", include_str!("../sql/due_and_running.sql")),
        ("dead", include_str!("../sql/dead.sql")),
        ("list_dead", include_str!("../sql/list_dead.sql")),
        ("operate_found", include_str!("../sql/operate_found.sql")),
    ] {
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(format!("explain query plan {sql}")))
                .fetch_all(&db.pool)
                .await
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (.., step) in plan {
            // Alone the index of dead letters may be walked: it has nothing else in it.
            let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            let ours = matches!(
                scanned,
                Some(
                    "async_command"
                        | "async_command_failure"
                        | "async_command_claim"
                        | "c"
                        | "i"
                        | "o"
                )
            );
            assert!(!ours || step.contains("async_command_dead"), "{name}: {step}");
        }
    }
}

fn rate(rows: usize, start: Instant) -> u64 {
    (rows as f64 / start.elapsed().as_secs_f64()) as u64
}

#[tokio::test]
#[ignore = "a measurement"]
async fn drain() {
    const ROWS: usize = 100_000;
    const BATCH: usize = 500;
    for (name, end) in [
        ("kept", success()),
        ("deleted", deleted()),
        (
            "kept with output",
            End::Success {
                output: StoredOutput::Json("{\"n\":1}".into()),
                delete: false,
                follow_ups: Vec::new(),
            },
        ),
        ("failed", End::Retry { failure: failure("no"), wait: STALL }),
    ] {
        let db = Db::new().await;
        let all = drafts("a", ROWS);
        let start = Instant::now();
        for chunk in all.chunks(10_000) {
            db.store.insert(chunk).await.unwrap();
        }
        println!("{name}: insert in batches of 10,000: {} rows/s", rate(ROWS, start));
        let start = Instant::now();
        let (mut claiming, mut ended) = (Duration::ZERO, 0);
        while ended < ROWS {
            let at = Instant::now();
            let round = db.claim("a", BATCH).await;
            claiming += at.elapsed();
            ended += db.end(&round, end.clone()).await.len();
        }
        println!(
            "{name}: claim and finish in batches of {BATCH}: {} rows/s, {:.2} µs a row to claim",
            rate(ROWS, start),
            claiming.as_secs_f64() * 1e6 / ROWS as f64
        );
        db.audit().await;
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn idle_beside_a_million_future_rows() {
    let db = Db::new().await;
    for priority in [-1, 0, 1] {
        for _ in 0..34 {
            let batch: Vec<_> = drafts("a", 10_000)
                .into_iter()
                .map(|draft| Draft { priority, due: Due::After(STALL * 60), ..draft })
                .collect();
            db.store.insert(&batch).await.unwrap();
        }
    }
    let types: Vec<&'static str> =
        (0..49).map(|at| &*Box::leak(format!("t{at}").into_boxed_str())).chain(["a"]).collect();
    let wants: Vec<_> = types.iter().map(|name| want(&[name], 10)).collect();
    for wants in [&wants[49..], &wants[..]] {
        let start = Instant::now();
        for _ in 0..200 {
            let claim = db.store.claim(db.me, Token::random(), wants).await.unwrap();
            assert!(next_due(&claim).is_some() && rows(claim).is_empty());
        }
        println!("idle poll, {} types: {:?}", wants.len(), start.elapsed() / 200);
    }
    db.submit(&[Draft { priority: 2, ..draft("a") }]).await;
    let start = Instant::now();
    assert_eq!(db.claim("a", 500).await.rows.len(), 1);
    println!("the one due row behind them: {:?}", start.elapsed());
    let start = Instant::now();
    let swept = db.store.sweep(CommandId(0), 1_000, &Default::default()).await.unwrap();
    println!("a retention step over 1,000 rows: {:?}, {swept:?}", start.elapsed());
    let start = Instant::now();
    println!(
        "pending types: {:?} in {:?}",
        db.store.pending_types().await.unwrap(),
        start.elapsed()
    );
}

#[tokio::test]
#[ignore = "a measurement"]
async fn single_submits() {
    let db = Db::new().await;
    let start = Instant::now();
    for draft in drafts("a", 2_000) {
        db.store.insert(&[draft]).await.unwrap();
    }
    println!("single submits: {}/s", rate(2_000, start));
}
