//! Commands of several types in one batch: boxes, from the option `portable`.

use asynccmd::{
    AnyCommand, Client, CommandError, Context, Filter, Registry, Status, SubmitError, command,
};

use crate::harness::{Back, Log};
use crate::setting::Setting;

#[command(type = "portable.file", mode = "async_pool", version = 7, max_retry = 2, portable)]
async fn file(report: i64, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &format!("file {report} of {}", ctx.metadata("ward").unwrap_or_default()));
    Ok(())
}

#[command(type = "portable.call", mode = "immediate", biz_key = "ward:{ward}", unique, portable)]
async fn call(ward: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &format!("call {ward}"));
    Ok(())
}

/// Submits the commands of its list with its own end.
#[command(type = "portable.all", mode = "async_pool")]
async fn all(list: Vec<Box<dyn AnyCommand>>, ctx: &Context) -> Result<(), CommandError> {
    ctx.client().submit_boxed(ctx, list).await?;
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<File>().add::<Call>().add::<All>().build()
}

fn boxes() -> Vec<Box<dyn AnyCommand>> {
    vec![
        Box::new(File { report: 1 }),
        Box::new(Call { ward: "3b".into() }),
        Box::new(File { report: 2 }),
        Box::new(Call { ward: "3b".into() }),
    ]
}

/// Each box becomes the row that its own submit would have made, and with the business change or not at
/// all.
pub async fn a_mixed_batch_submits_each_box_as_its_command<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let boxes = boxes();
    let mut tx = client.begin::<B::DB>().await.unwrap();
    B::execute_on(&mut tx, "insert into effect values (1, 'report')").await;
    client.submit_boxed(&mut tx, &boxes).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(back.number("select count(*) from async_command").await, 0);

    let mut tx = client.begin::<B::DB>().await.unwrap();
    let sent = client.submit_boxed(&mut tx, boxes.iter()).metadata("ward", "3b").await.unwrap();
    assert_eq!(tx.commit().await.unwrap().created, 3);
    let created: Vec<_> = sent.iter().map(|sent| sent.created).collect();
    assert_eq!(created, [true, true, true, false], "unique holds within the batch");
    assert_eq!(sent[3].id, sent[1].id);
    at.drain().await;
    let mut texts = at.log.texts();
    texts.sort_unstable();
    assert_eq!(texts, ["call 3b", "file 1 of 3b", "file 2 of 3b"]);
    let filed = at.get(sent[0].id()).await.row;
    assert_eq!((&*filed.command_type, &*filed.payload), ("portable.file", r#"{"report":1}"#));
    assert_eq!((&*filed.biz_key, filed.payload_version, filed.max_retry), ("", 7, 2));
    let called = at.get(sent[1].id()).await.row;
    assert_eq!((&*called.payload, &*called.biz_key), (r#"{"ward":"3b"}"#, "ward:3b"));
    assert_eq!((called.payload_version, called.max_retry), (1, 5));
    at.end().await;
}

/// A box that is refused is named by its place, and no row of its batch is there.
pub async fn a_refused_box_is_named_and_nothing_is_written<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut boxes = boxes();
    boxes.push(Box::new(Call { ward: "w".repeat(200) }));
    let refused = client.submit_boxed(&client, &boxes).await.unwrap_err();
    let SubmitError::InBatch { index: 4, source } = &refused else { panic!("{refused}") };
    assert!(matches!(**source, SubmitError::TooLong { limit: 128, .. }), "{refused}");
    let none: [Box<dyn AnyCommand>; 0] = [];
    assert_eq!(client.submit_boxed(&client, none).await.unwrap(), []);
    assert_eq!(back.number("select count(*) from async_command").await, 0);
}

/// Boxes can be a payload's own, and follow-ups.
pub async fn boxes_in_a_payload_are_submitted_with_its_success<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_all(&at.client(), boxes()).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Success);
    assert_eq!(at.log.entries().len(), 3);
    let admin = at.client().admin();
    let followed = admin.list(Filter::new().biz_key("ward:3b")).await.unwrap();
    assert_eq!(followed.len(), 1);
    assert_eq!(followed[0].parent, Some(id));
    at.end().await;
}
