//! From a submit to its end.

use asynccmd::{CommandError, Context, Registry, Status, command, testing};

use crate::harness::{Back, Log};

#[command(type = "basics.note", mode = "async_pool")]
async fn note(text: String, #[state] log: Log, ctx: &Context) -> Result<usize, CommandError> {
    log.add(ctx, &text);
    Ok(text.len())
}

/// A committed command runs once and keeps its output.
pub async fn a_committed_command_runs_once<B: Back>(back: B) {
    let log = Log::default();
    let runtime = back
        .runtime(Registry::builder().add::<Note>().build())
        .state(log.clone())
        .start()
        .await
        .unwrap();
    let client = runtime.client();
    let mut tx = client.begin::<B::DB>().await.unwrap();
    let sent = submit_note(&mut tx, "hello".into()).await.unwrap();
    tx.commit().await.unwrap();
    testing::drain(&runtime).await;
    let detail = client.admin().get(sent.id()).await.unwrap();
    assert_eq!(detail.row.status, Status::Success);
    assert_eq!(detail.row.result.as_deref(), Some("5"));
    assert_eq!(log.texts(), ["hello"]);
    runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}
