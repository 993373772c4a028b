//! What runs first.

use asynccmd::{Client, CommandError, Context, Level, Pool, Registry, command, testing};

use crate::gate::Gate;
use crate::harness::{Back, Log};

#[command(type = "order.plain", mode = "async_pool", pool = "narrow")]
async fn plain(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "order.urgent", mode = "async_pool", pool = "narrow", priority = -7)]
async fn urgent(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "order.idle", mode = "async_pool", pool = "narrow", priority = 100)]
async fn idle(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

#[command(type = "order.scheduled")]
async fn scheduled(
    text: String,
    #[state] log: Log,
    #[state] gate: Gate,
    ctx: &Context,
) -> Result<(), CommandError> {
    let _inside = gate.enter();
    log.add(ctx, &text);
    tokio::task::yield_now().await;
    Ok(())
}

async fn run<B: Back>(back: &B, log: &Log, gate: &Gate) {
    let registry =
        Registry::builder().add::<Plain>().add::<Urgent>().add::<Idle>().add::<Scheduled>().build();
    let builder = back.runtime(registry).state(log.clone()).state(gate.clone());
    let runtime = builder.pool(Pool::new("narrow").workers(1)).start().await.unwrap();
    testing::drain(&runtime).await;
    runtime.shutdown().await;
    back.assert_receipts_match_rows().await;
}

/// `.priority(level)` orders within the type; equals go by due time, then by number.
pub async fn levels_order_the_commands_of_a_type<B: Back>(back: B) {
    let client = Client::new(back.database());
    let levels =
        [Level::Low, Level::Normal, Level::Lowest, Level::Highest, Level::High, Level::Normal];
    for (at, level) in levels.into_iter().enumerate() {
        submit_plain(&client, format!("{level:?} {at}")).priority(level).await.unwrap();
    }
    let early = submit_plain(&client, "Normal early".into()).await.unwrap();
    back.execute(format!(
        "update async_command set next_run_at = {} where id = {}",
        B::later("next_run_at", -1_000_000),
        early.id()
    ))
    .await;
    let log = Log::default();
    run(&back, &log, &Gate::default()).await;
    assert_eq!(
        log.texts(),
        ["Highest 3", "High 4", "Normal early", "Normal 1", "Normal 5", "Low 0", "Lowest 2"]
    );
}

/// The attribute's `priority` orders the types of a pool.
pub async fn priorities_order_the_types_of_a_pool<B: Back>(back: B) {
    let client = Client::new(back.database());
    for at in 0..3 {
        submit_idle(&client, format!("idle {at}")).priority(Level::Highest).await.unwrap();
        submit_plain(&client, format!("plain {at}")).await.unwrap();
        submit_urgent(&client, format!("urgent {at}")).priority(Level::Lowest).await.unwrap();
    }
    let log = Log::default();
    run(&back, &log, &Gate::default()).await;
    let wanted: Vec<_> = ["urgent", "plain", "idle"]
        .iter()
        .flat_map(|name| (0..3).map(move |at| format!("{name} {at}")))
        .collect();
    assert_eq!(log.texts(), wanted);
}

/// Mode `scheduled`: one after another, in the order of the claim, also over its types.
pub async fn scheduled_commands_run_one_after_another_in_claim_order<B: Back>(back: B) {
    let client = Client::new(back.database());
    let texts: Vec<_> = (0..20).map(|at| format!("{at}")).collect();
    let payloads = texts.iter().map(|text| Scheduled { text: text.clone() });
    client.submit_all::<Scheduled>(&client, payloads).await.unwrap();
    let (log, gate) = (Log::default(), Gate::default());
    run(&back, &log, &gate).await;
    assert_eq!(log.texts(), texts);
    assert_eq!((gate.entered(), gate.most()), (20, 1));
}
