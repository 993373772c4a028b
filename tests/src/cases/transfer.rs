//! Commands as lines: out of one table, into another, all or none.

use std::time::Duration;

use asynccmd::{
    Client, CommandError, Context, Filter, ImportError, Level, LineFault, Registry, Status,
    SubmitExt as _, command,
};
use serde_json::Value;

use crate::harness::{Back, Log};
use crate::setting::Setting;

#[command(type = "transfer.file", mode = "async_pool", biz_key = "report:{report}", unique)]
async fn file(
    report: i64,
    note: String,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &format!("{report} {note} {}", ctx.idempotency_key()));
    if note == "dies" { Err(CommandError::fatal("it did")) } else { Ok(()) }
}

/// The same of tomorrow.
#[command(
    type = "transfer.store",
    aliases("transfer.file"),
    mode = "async_pool",
    version = 2,
    upgrade(noted),
    payload(Store)
)]
async fn store(report: i64, notes: Vec<String>, ctx: &Context) -> Result<(), CommandError> {
    let _ = (report, notes, ctx);
    Ok(())
}

fn noted(_: u32, mut payload: Value) -> Result<Value, CommandError> {
    let note = payload["note"].take();
    if !note.is_string() {
        return Err("no note".into());
    }
    Ok(serde_json::json!({ "report": payload["report"], "notes": [note] }))
}

#[command(type = "transfer.other", mode = "async_pool")]
async fn other() -> Result<(), CommandError> {
    Ok(())
}

fn registry() -> Registry {
    Registry::builder().add::<File>().build()
}

fn of(report: i64, note: &str) -> File {
    File { report, note: note.into() }
}

async fn export(client: &Client, filter: Filter) -> String {
    let mut lines = Vec::new();
    let count = client.admin().export(filter, &mut lines).await.unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count() as u64, count);
    lines
}

/// Imports into a table, commits what is whole.
async fn import<B: Back>(
    back: &B,
    lines: &str,
    registry: Registry,
    skip: bool,
) -> Result<asynccmd::Imported, ImportError> {
    let client = Client::new(back.database());
    let mut tx = client.begin::<B::DB>().await.unwrap();
    // Three bytes at a time: a line's parts come as they like.
    let lines = tokio::io::BufReader::with_capacity(3, lines.as_bytes());
    let import = client.admin().import(&mut tx, lines).registry(registry);
    let imported = if skip { import.skip_unknown().await } else { import.await }?;
    assert_eq!(tx.commit().await.unwrap().created, imported.created);
    Ok(imported)
}

/// The problems of a file that is refused, of which nothing is there afterwards.
async fn problems<B: Back>(back: &B, lines: &str) -> Vec<(u64, LineFault, String)> {
    let refused = import(back, lines, registry(), false).await.unwrap_err();
    assert_eq!(back.number("select count(*) from async_command").await, 0);
    let ImportError::Lines { problems, more: 0 } = refused else { panic!("{refused}") };
    problems
        .into_iter()
        .map(|problem| {
            let told = problem.to_string();
            (problem.line, problem.fault, told)
        })
        .collect()
}

/// What was exported is imported as it was: payload byte for byte, keys, options, identity and due time.
pub async fn an_export_is_imported_as_it_was<B: Back>(back: B) {
    let client = Client::new(back.database());
    let payload = r#"{"note": "ä\n😀", "report": 1}"#;
    let full = of(1, "x")
        .submit(&client)
        .delay(Duration::from_secs(3600))
        .priority(Level::High)
        .max_retry(9)
        .owner("lab")
        .shard_key("s")
        .metadata("ward", "3b")
        .await
        .unwrap();
    back.execute(format!(
        "update async_command set payload = '{payload}' where id = {}",
        full.id()
    ))
    .await;
    of(2, "plain").submit(&client).await.unwrap();
    submit_other(&client).await.unwrap();
    let lines = export(&client, Filter::new()).await;
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.lines().next().unwrap().contains(payload), "{lines}");

    let new = B::create().await;
    let known = Registry::builder().add::<File>().add::<Other>().build();
    let imported = import(&new, &lines, known.clone(), false).await.unwrap();
    assert_eq!((imported.created, imported.existing), (3, 0));
    let there = Client::new(new.database());
    for (old, new) in client
        .admin()
        .list(Filter::new())
        .await
        .unwrap()
        .iter()
        .zip(there.admin().list(Filter::new()).await.unwrap())
    {
        assert_eq!((&old.command_type, &old.payload), (&new.command_type, &new.payload));
        assert_eq!((&old.biz_key, old.unique), (&new.biz_key, new.unique));
        assert_eq!((old.uid, old.payload_version), (new.uid, new.payload_version));
        assert_eq!(
            (old.priority, old.shard, old.max_retry),
            (new.priority, new.shard, new.max_retry)
        );
        assert_eq!((&old.owner, &old.metadata), (&new.owner, &new.metadata));
        assert_eq!(old.next_run_at, new.next_run_at);
        assert_eq!(new.status, Status::Pending);
    }
    // Once more: unique ones are there, the others are again.
    let imported = import(&new, &lines, known, false).await.unwrap();
    assert_eq!((imported.created, imported.existing), (1, 2));
}

/// Dead letters go to another database, with a fixed text, and run there.
pub async fn exported_dead_letters_run_where_they_are_imported<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let mut uids = Vec::new();
    for (report, note) in [(1, "lives"), (2, "dies"), (3, "dies")] {
        uids.push(of(report, note).submit(&at.client()).await.unwrap().uid);
    }
    at.drain().await;
    let lines = export(&at.client(), Filter::new().status(Status::Dead)).await;
    assert_eq!(lines.lines().count(), 2);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["about"]["status"], &last["about"]["last_error"]),
        (&"DEAD".into(), &"it did".into())
    );
    at.end().await;

    let new = B::create().await;
    import(&new, &lines.replace("dies", "lives"), registry(), false).await.unwrap();
    let at = Setting::start(&new, registry()).await;
    at.drain().await;
    let mut texts = at.log.texts();
    texts.sort_unstable();
    assert_eq!(texts, [format!("2 lives {}", uids[1]), format!("3 lives {}", uids[2])]);
    at.end().await;
}

/// An older line of an old name is checked through the upgrade, and stored as it was under the new name.
pub async fn older_lines_are_imported_by_aliases_and_upgrades<B: Back>(back: B) {
    let newer = Registry::builder().add::<Store>().build();
    let lines = concat!(
        r#"{"type":"transfer.file","version":1,"payload":{"report":1,"note":"n"}}"#,
        "\n\n",
        r#"{"type":"transfer.store","payload":{"report":2,"notes":[]}}"#,
    );
    import(&back, lines, newer.clone(), false).await.unwrap();
    let rows = Client::new(back.database()).admin().list(Filter::new()).await.unwrap();
    let seen: Vec<_> = rows
        .iter()
        .rev()
        .map(|row| (&*row.command_type, row.payload_version, &*row.payload))
        .collect();
    assert_eq!(
        seen,
        [
            ("transfer.store", 1, r#"{"report":1,"note":"n"}"#),
            ("transfer.store", 2, r#"{"report":2,"notes":[]}"#)
        ]
    );
    let bad = r#"{"type":"transfer.file","version":1,"payload":{"report":1}}"#;
    let refused = import(&back, bad, newer.clone(), false).await.unwrap_err().to_string();
    assert!(
        refused.contains("line 1: no payload of `transfer.file`") && refused.contains("no note")
    );
    let newest = r#"{"type":"transfer.store","version":3,"payload":{}}"#;
    let refused = import(&back, newest, newer, false).await.unwrap_err().to_string();
    assert!(refused.contains("version 3") && refused.contains("up to 2"), "{refused}");
}

/// Broken lines are named, all of them at once, and nothing of their file is there; nor of the chunks
/// before them.
pub async fn a_file_with_broken_lines_is_refused_by_their_numbers<B: Back>(back: B) {
    let good = r#"{"type":"transfer.file","payload":{"report":1,"note":"n"}}"#;
    let mut lines: Vec<String> = (0..1200)
        .map(|report| {
            format!(r#"{{"type":"transfer.file","payload":{{"report":{report},"note":"n"}}}}"#)
        })
        .collect();
    lines.extend([
        r#"{"type":"transfer.fill","payload":{}}"#.to_owned(),
        good.to_owned(),
        "no json".to_owned(),
        r#"{"type":"transfer.file","payload":{"report":"1"}}"#.to_owned(),
        r#"{"type":"transfer.file","paylod":{}}"#.to_owned(),
        r#"{"type":"transfer.file"}"#.to_owned(),
        good.replace("}}", r#"},"priority":3}"#),
        good.replace("}}", r#"},"shard":64}"#),
        good.replace("}}", r#"},"max_retry":0}"#),
        good.replace("}}", r#"},"unique":"until_finished"}"#),
        good.replace("}}", r#"},"about":{"status":"SUCCESS"}}"#),
        " ".repeat(2_000_000),
    ]);
    let found = problems(&back, &lines.join("\n")).await;
    let numbers: Vec<_> = found.iter().map(|(line, ..)| *line).collect();
    assert_eq!(numbers, [1201, 1203, 1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211, 1212]);
    for ((_, _, told), parts) in found.iter().zip([
        &["line 1201: unknown type `transfer.fill`", "`transfer.file`", ".skip_unknown()"][..],
        &["expected"],
        &["no payload of `transfer.file`", "invalid type: string"],
        &["unknown field `paylod`"],
        &["`payload_text`"],
        &["priority 3"],
        &["shard 64"],
        &["max_retry 0"],
        &["`transfer.file`", "business key"],
        &["SUCCESS", "export by status"],
        &["longer than 1114112 bytes", "max_payload"],
    ]) {
        assert!(parts.iter().all(|part| told.contains(part)), "{parts:?} in {told}");
    }
    let many = "x\n".repeat(50);
    let refused = import(&back, &many, registry(), false).await.unwrap_err();
    assert!(matches!(&refused, ImportError::Lines { problems, more: 30 } if problems.len() == 20));
    assert!(refused.to_string().ends_with("and 30 more lines"), "{refused}");
    let nobody = import(&back, good, Registry::builder().build(), false).await.unwrap_err();
    assert!(nobody.to_string().contains("use handlers as _;"), "{nobody}");
}

/// Types that nobody here knows are left out on request, and told.
pub async fn unknown_types_are_skipped_on_request_only<B: Back>(back: B) {
    let good = r#"{"type":"transfer.file","payload":{"report":1,"note":"n"}}"#;
    let lines = format!(
        "{{\"type\":\"b\",\"payload\":1}}\n{good}\n{{\"type\":\"a\",\"payload\":1}}\r\n{{\"type\":\"b\",\"payload\":2}}\n"
    );
    assert_eq!(problems(&back, &lines).await.len(), 3);
    let imported = import(&back, &lines, registry(), true).await.unwrap();
    assert_eq!((imported.created, imported.existing), (1, 0));
    let skipped: Vec<_> = imported
        .skipped
        .iter()
        .map(|skipped| (&*skipped.command_type, skipped.first_line, skipped.lines))
        .collect();
    assert_eq!(skipped, [("a", 3, 1), ("b", 1, 2)]);
    let broken = format!("{lines}{{\"type\":\"transfer.file\",\"payload\":1}}");
    assert!(import(&back, &broken, registry(), true).await.is_err(), "nothing else is skipped");
}

/// Whatever a row has, it can be exported: the rest of the table with it.
pub async fn rows_that_cannot_be_decoded_are_exported_too<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut sent = Vec::new();
    for report in 0..250 {
        sent.push(of(report, "n").submit(&client).await.unwrap().id());
    }
    for (id, payload) in [(sent[0], "{"), (sent[1], ""), (sent[2], " {} "), (sent[3], "[1,\n2]")] {
        back.execute(format!("update async_command set payload = '{payload}' where id = {id}"))
            .await;
    }
    back.execute(format!("update async_command set metadata = 'no json' where id = {}", sent[4]))
        .await;
    let lines = export(&client, Filter::new()).await;
    let parsed: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = parsed.iter().map(|line| line["about"]["id"].as_i64().unwrap()).collect();
    assert_eq!(
        ids,
        sent.iter().map(|id| id.0).collect::<Vec<_>>(),
        "in the order of their submits"
    );
    let texts: Vec<_> = parsed[..5].iter().map(|line| line["payload_text"].as_str()).collect();
    assert_eq!(texts, [Some("{"), Some(""), Some(" {} "), Some("[1,\n2]"), None]);
    assert_eq!(export(&client, Filter::new().limit(101)).await.lines().count(), 101);
    let before = Filter::new().before(sent[10]).command_type("transfer.file");
    assert_eq!(export(&client, before).await.lines().count(), 10);
    assert_eq!(export(&client, Filter::new().biz_key("report:7")).await.lines().count(), 1);
}
